"""The page of users' reports and the tests that replay them name the same reports."""

import ast
import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reports.md"
REPLAYS = ROOT / "tests" / "runtime" / "reports"
LINK = re.compile(r"https://github\.com/([\w.-]+/[\w.-]+)/(?:issues|pull)/(\d+)")
NAME = re.compile(r"[\w.-]+/[\w.-]+#\d+")
TEST = re.compile(r"\[([^]]+)\]\((\.\./tests/[^)]+\.py)\)")


class Row(NamedTuple):
    reports: set[str]
    tests: list[tuple[Path, str]]


def rows() -> list[Row]:
    """Return what each row of the page says: which reports, and which tests."""
    return [
        Row(
            {f"{repository}#{number}" for repository, number in LINK.findall(line)},
            [
                ((PAGE.parent / file).resolve(), f"test_{name.replace(' ', '_')}")
                for name, file in TEST.findall(line)
            ],
        )
        for line in PAGE.read_text("utf-8").splitlines()
        if LINK.search(line)
    ]


def named_by_tests() -> dict[tuple[Path, str], set[str]]:
    """Return, for each test of the runtime, which reports its docstring names."""
    return {
        (file, node.name): set(NAME.findall(ast.get_docstring(node) or ""))
        for file in sorted((ROOT / "tests" / "runtime").rglob("test_*.py"))
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
    }


def test_every_report_stands_in_a_row_of_its_own() -> None:
    found = [report for row in rows() for report in row.reports]
    assert found
    assert len(found) == len(set(found))


def test_the_page_and_the_tests_name_the_same_reports() -> None:
    of_tests = set[str]().union(*named_by_tests().values())
    assert {report for row in rows() for report in row.reports} == of_tests


def test_the_tests_of_a_row_are_there_and_name_its_reports() -> None:
    named = named_by_tests()
    for row in rows():
        assert row.tests, f"no test replays {row.reports}"
        missing = [test for test in row.tests if test not in named]
        assert missing == []
        assert all(named[test] & row.reports for test in row.tests), row.tests
        assert set[str]().union(*(named[test] for test in row.tests)) == row.reports


def test_every_replay_names_its_report_and_stands_on_the_page() -> None:
    replays = {test for test in named_by_tests() if REPLAYS in test[0].parents}
    assert replays
    assert replays <= {test for row in rows() for test in row.tests}
