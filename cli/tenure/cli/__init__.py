"""The command line: `tenure demo` and its siblings.

This is the composition root, the only part that may import all others. `main` works in
a base installation too, where it says what to install.
"""

import sys

from tenure.cli._extras import is_installed

__all__ = ["main"]


def main() -> int:
    """Run the command line on `sys.argv`.

    Returns:
        The exit status: 0 clean or as described, 1 violations or not as described,
        2 bad usage or a missing extra, 3 inconclusive.
    """
    if not (is_installed("typer") and is_installed("rich")):
        sys.stderr.write(
            "tenure: the command line is not installed; run pip install 'tenure[cli]'\n"
        )
        return 2
    from tenure.cli._app import run

    return run(sys.argv[1:])
