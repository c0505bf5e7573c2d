"""The report as Markdown: safe in a comment, and never too long for one."""

import re

from tenure.detectors.report import render_markdown
from tenure.detectors.report.markdown import code, fenced

from .histories import HOSTILE, averted, calm, lost_write, many, report


def outside_code(markdown: str) -> str:
    """Return the text that Markdown would interpret."""
    without_blocks = re.sub(
        r"^(`{3,})text\n.*?^\1$", "", markdown, flags=re.MULTILINE | re.DOTALL
    )
    return re.sub(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "", without_blocks)


def test_the_verdict_stands_first_and_every_finding_has_its_proof():
    shown = render_markdown(report(lost_write(), sources=("trace.jsonl",)))
    assert shown.startswith("### ✗ tenure: violated\n\n**2 violations** in 14 oper")
    assert "#### 1. ✗ leaked write (violation, certain)" in shown
    assert "#### 2. ✗ stale discard (violation, certain)" in shown
    assert "however, epoch 1 discarded `answer:second` (cause: finalizer)" in shown
    assert "    9  ✗──▶│   ✗ epoch 1 discards (finalizer)" in shown
    assert "- `trace.jsonl`" in shown


def test_a_clean_check_says_so_and_shows_one_timeline():
    shown = render_markdown(report(calm(), calm(instance="b")))
    assert shown.startswith("### ✓ tenure: clean\n\n**no findings** in 20 operations")
    assert shown.count("<details>") == 1


def test_an_inconclusive_check_says_what_is_missing():
    told = [each for each in calm() if each.seq != 2]
    shown = render_markdown(report(told))
    assert shown.startswith("### ? tenure: inconclusive")
    assert "- `press/default: seq 2 of process host-1`" in shown


def test_what_a_stranger_wrote_stands_in_code_only():
    told = lost_write(HOSTILE, workflow=HOSTILE, instance=HOSTILE, process=HOSTILE)
    shown = render_markdown(report(told[:-1], sources=(HOSTILE,)))
    assert "@everyone" in shown
    said = outside_code(shown)
    for harm in ("@everyone", "](", "<script", "<img", "evil.test"):
        assert harm not in said


def test_a_code_span_holds_any_text():
    assert code("plain") == "`plain`"
    assert code("a`b") == "``a`b``"
    assert code("`") == "`` ` ``"
    assert code("two\nlines") == "`two\\nlines`"
    assert code("") == "` `"


def test_nothing_in_a_code_block_ends_it():
    assert fenced(["```", "x"]).startswith("````text\n")


def test_it_fits_a_comment_however_much_was_found():
    histories = [
        lost_write(f"key-{number}", instance=f"i{number}") for number in range(200)
    ]
    shown = render_markdown(report(*histories))
    assert len(shown) <= 60_000
    assert "and 380 more findings" in shown


def test_it_fits_a_small_comment_too_and_says_what_did_not():
    shown = render_markdown(report(many(5_000), averted(instance="b")), longest=3_000)
    assert len(shown) <= 3_000
    assert "did not fit here" in shown
