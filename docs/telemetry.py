"""Write the tables of telemetry.md from the names in the code.

Run it as it is to write the page. With `--check` nothing is written, and the exit
status says whether the page is up to date.
"""

import ast
import itertools
import sys
from pathlib import Path

from tenure.instrumentation import semconv

PAGE = Path(__file__).with_suffix(".md")
BEGIN, END = "<!-- generated: {} -->", "<!-- end -->"


def documented_names() -> dict[str, tuple[str, str]]:
    """Return each constant's value and docstring, in order."""
    body = ast.parse(Path(str(semconv.__file__)).read_text(encoding="utf-8")).body
    found: dict[str, tuple[str, str]] = {}
    for statement, below in itertools.pairwise(body):
        match statement, below:
            case (
                ast.AnnAssign(target=ast.Name(name), value=ast.Constant(value)),
                ast.Expr(value=ast.Constant(text)),
            ):
                found[name] = (str(value), " ".join(str(text).split()))
    return found


def table(rows: list[tuple[str, str]]) -> str:
    """Return a table of names and meanings."""
    lines = [f"| `{name}` | {text} |" for name, text in rows]
    return "\n".join(["| name | meaning |", "|---|---|", *lines])


def render(page: str) -> str:
    """Return `page` with its tables made anew."""
    names = documented_names()
    skipped = ("SCHEMA_URL", "RUNTIME_SCOPE", "DETECTORS_SCOPE", "VIOLATION_")
    tables = {
        "attributes": [
            pair
            for name, pair in names.items()
            if not name.startswith(("METRIC_", *skipped))
        ],
        "metrics": [pair for name, pair in names.items() if name.startswith("METRIC_")],
    }
    for title, rows in tables.items():
        begin = BEGIN.format(title)
        before, rest = page.split(begin)
        after = rest.split(END, 1)[1]
        page = f"{before}{begin}\n{table(rows)}\n{END}{after}"
    return page


def main() -> int:
    """Write the page, or check it."""
    page = PAGE.read_text(encoding="utf-8")
    made = render(page)
    if "--check" in sys.argv[1:]:
        return int(made != page)
    PAGE.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
