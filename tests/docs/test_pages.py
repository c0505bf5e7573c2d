"""The examples of README and docs run as they stand."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCKS = [
    pytest.param(block, id=f"{page.relative_to(ROOT)}:{number}")
    for page in PAGES
    for number, block in enumerate(
        re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
    )
]


@pytest.mark.parametrize("block", BLOCKS)
def test_a_python_example_runs_as_it_stands(block: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", block],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    expected = re.findall(r"^ *print\(.*\)  # (.+)$", block, re.MULTILINE)
    assert done.stdout.splitlines() == expected


def test_every_relative_link_leads_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_tables_of_the_telemetry_page_are_those_of_the_code() -> None:
    check = [sys.executable, str(ROOT / "docs" / "telemetry.py"), "--check"]
    assert subprocess.run(check, timeout=50, check=False).returncode == 0, (
        "run python docs/telemetry.py"
    )
