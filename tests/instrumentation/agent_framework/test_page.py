"""The page about agent-framework says what the matrix expects."""

from pathlib import Path

import pytest

from . import page
from .cells import Expected
from .stories import STORIES

DOCS = Path(__file__).parents[3] / "docs"


@pytest.fixture
def made() -> str:
    """The table, of all versions, as it is expected."""
    expected = Expected()
    return page.table(
        {name: story.title for name, story in STORIES.items()},
        {name: expected.right(name) for name in STORIES},
        {
            version: {name: expected.cell(name, version) for name in STORIES}
            for version in page.VERSIONS
        },
    )


def test_the_page_has_the_table_that_is_expected(made: str) -> None:
    text = (DOCS / "agent-framework.md").read_text(encoding="utf-8")
    assert page.differences(text, made) == []
    assert page.put(text, made) == text


def test_a_page_that_says_something_else_is_refused(made: str) -> None:
    wrong = page.put(f"{page.BEGIN}{page.END}", made.replace("| ✓ |", "| ✗ |", 1))
    (difference,) = page.differences(wrong, made)
    assert "✗" in difference
