"""What all tests have in common: pytest's own fixture for tests of a plugin."""

pytest_plugins = ["pytester"]
