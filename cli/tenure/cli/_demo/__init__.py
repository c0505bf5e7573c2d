"""One story, played on several engines, and what a person sees of it."""
