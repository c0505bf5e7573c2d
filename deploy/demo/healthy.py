"""Ask an address whether it is well: `python healthy.py URL`. A health check."""

import sys
from urllib.request import urlopen

with urlopen(sys.argv[1], timeout=2) as answer:
    sys.exit(answer.status != 200)
