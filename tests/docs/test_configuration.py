"""The page on configuration names every variable that the code reads."""

import re
from pathlib import Path

import tenure

PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"


def test_the_page_names_every_variable_that_the_code_reads_and_no_other():
    sources = [
        source for root in tenure.__path__ for source in Path(root).rglob("*.py")
    ]
    read = {
        name
        for source in sources
        for name in re.findall(r'"(TENURE_[A-Z_]+)"', source.read_text("utf-8"))
    }
    table = re.findall(r"^\| `(TENURE_[A-Z_]+)` \|", PAGE.read_text(), re.MULTILINE)

    assert read
    assert set(table) == read
    assert len(table) == len(read)
