"""The table of the page about agent-framework: made from cells, and read back. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tenure.detectors.anomalies import CATALOGUE

Cell = Mapping[str, Any]

VERSIONS = ("1.20.0", "1.21.0", "1.22.0", "1.23.0")
"""What the page has a column for."""

BEGIN, END = "<!-- begin matrix -->", "<!-- end matrix -->"
GOOD, BAD = "\N{CHECK MARK}", "\N{BALLOT X}"


def table(
    titles: Mapping[str, str],
    right: Mapping[str, Cell],
    cells: Mapping[str, Mapping[str, Cell]],
) -> str:
    """Return the table.

    Args:
        titles: What happens in each story.
        right: What each should come to.
        cells: What each came to, by version.
    """
    head = ["", "what happens", "right", *cells]
    lines = [_line(head), _line(["---"] * len(head))]
    for name, title in titles.items():
        found = [_result(by_story[name], right[name]) for by_story in cells.values()]
        lines.append(_line([name, title, _left(right[name]), *found]))
    return "\n".join(lines)


def put(page: str, made: str) -> str:
    """Return the page with a new table between its marks."""
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}\n{made}\n{END}{rest.split(END, 1)[1]}"


def differences(page: str, made: str) -> list[str]:
    """Say where the page differs from a table, which may have fewer versions.

    Args:
        page: The page.
        made: The table that it should have.
    """
    kept = _columns(page.split(BEGIN)[1].split(END)[0])
    return [
        f"{key[0] or 'head'}, {key[1]}: the page has {kept.get(key)!r}, not {text!r}"
        for key, text in _columns(made).items()
        if kept.get(key) != text
    ]


def _columns(text: str) -> dict[tuple[str, str], str]:
    """Return each cell of a table by the names of its row and its column."""
    lines = [
        [part.strip() for part in line.strip("|").split("|")]
        for line in text.strip().splitlines()
    ]
    head, _, *rows = lines
    return {
        (row[0], column): part
        for row in rows
        for column, part in zip(head, row, strict=True)
    }


def _line(parts: Sequence[str]) -> str:
    return f"| {' | '.join(parts)} |"


def _result(cell: Cell, right: Cell) -> str:
    """Return how a cell differs from what is right, and what was found."""
    wrong = ", ".join(_differing(cell, right))
    result = f"{BAD} {wrong}" if wrong else GOOD
    found = _found(cell["findings"])
    return f"{result}<br>{found}" if found else result


def _differing(cell: Cell, right: Cell) -> Iterator[str]:
    if cell.get("status") == "raised":
        yield f"the next run raises `{cell['notes'][-1]}`"
        return
    if cell["state"] != right["state"]:
        yield _state(cell["state"])
    if cell["outputs"] != right["outputs"]:
        yield _values("outputs", cell["outputs"])
    if cell.get("notes") != right.get("notes"):
        yield _values("saw", cell["notes"])
    if cell.get("entry") != right.get("entry"):
        yield _checkpoint(cell["entry"])


def _left(right: Cell) -> str:
    """Return what a story should leave."""
    parts = [_state(right["state"])]
    if right["outputs"]:
        parts.append(_values("outputs", right["outputs"]))
    return ", ".join(parts)


def _state(state: Mapping[str, Any]) -> str:
    shown = (
        key if isinstance(value, str) else f"{key}: {value}"
        for key, value in sorted(state.items())
    )
    return f"`{{{', '.join(shown)}}}`"


def _values(word: str, values: Sequence[Any]) -> str:
    return f"{word} `{values}`".replace("'", "")


def _checkpoint(entry: Mapping[str, Mapping[str, str]]) -> str:
    parts = (f"{part} of {snapshot['run']}" for part, snapshot in entry.items())
    return f"checkpoint `{', '.join(parts)}`"


def _found(findings: Sequence[str]) -> str:
    """Return the anomalies, violations in bold and first."""
    severities: dict[str, str] = {}
    for finding in findings:
        kind, severity = finding.split()[:2]
        anomaly = kind.partition("/")[0]
        if severities.get(anomaly) != "violation":
            severities[anomaly] = severity
    shown = {
        "violation": [f"**{_title(one)}**" for one in _having(severities, "violation")],
        "warning": [_title(one) for one in _having(severities, "warning")],
        "information": [
            f"*{_title(one)}*" for one in _having(severities, "information")
        ],
    }
    return ", ".join(one for names in shown.values() for one in names)


def _having(severities: Mapping[str, str], severity: str) -> list[str]:
    return [anomaly for anomaly, known in severities.items() if known == severity]


def _title(anomaly: str) -> str:
    return CATALOGUE[anomaly].title
