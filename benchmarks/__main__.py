"""`python -m benchmarks` and `python benchmarks` do what `benchmarks/run.py` does."""

import sys
from pathlib import Path

# The scripts here import each other by name, as each can be started by itself.
sys.path.insert(0, str(Path(__file__).resolve().parent))

from run import main

sys.exit(main())
