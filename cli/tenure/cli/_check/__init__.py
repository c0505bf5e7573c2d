"""The reports of `tenure check`: one module per format."""
