"""The timeline as text, for terminals and logs."""

import pytest

from tenure.detectors.report import (
    Tone,
    draw,
    render_text,
    section_lines,
    text_lines,
)

from .histories import (
    HOSTILE,
    averted,
    calm,
    every_kind,
    lost_write,
    many,
    of_processes,
    report,
)

LOST = """\
violated: 2 violations in 14 operations of 1 instance
from: trace.jsonl

press / default on model/1
    1  ┬       epoch 1 claims
    2  ●       epoch 1 commits at run entry: nothing
    3  ├       epoch 1 superstep 1 begins
    4  ┴       epoch 1 releases (abandoned)
    5      ┬   epoch 2 claims, supersedes epoch 1
    6   ◀──✗   ✗ epoch 2 commits at run entry: answer:first of epoch 1
           leaked write (violation, certain)
           let epoch 1 be run run-1 and epoch 2 be run run-2;
           then epoch 1 had staged `answer:first` and had not committed, and epoch 2 \
had not inherited it;
           however, epoch 2 committed `answer:first` in the engine's own commit at \
run entry at seq 6 of host-1, so that every later run starts on it
    7      ├   epoch 2 superstep 1 begins
    8  ○   │   epoch 1 answerer ends with CancelledError
    9  ✗──▶│   ✗ epoch 1 discards (finalizer): answer:second of epoch 2
           stale discard (violation, certain)
           let epoch 1 be run run-1 and epoch 2 be run run-2;
           then epoch 2 owned the instance at seq 9 of host-1, and had staged \
`answer:second`;
           however, epoch 1 discarded `answer:second` (cause: finalizer)
   10  ├   │   epoch 1 superstep 1 ends
   11      ○   epoch 2 answerer ends
   12      ●   epoch 2 commits: nothing
   13      ├   epoch 2 superstep 1 ends
   14      ┴   epoch 2 releases (completed)
"""


def test_a_lost_write_reads_as_an_arrow_from_the_culprit_to_its_victim():
    assert render_text(report(lost_write(), sources=("trace.jsonl",))) == LOST


def test_a_terminal_without_unicode_gets_the_same_in_ascii():
    shown = render_text(report(lost_write(), averted(instance="é")), ascii_only=True)
    assert shown.isascii()
    assert "  x-->|   x epoch 1 discards (finalizer)" in shown
    assert "press / \\xe9 on model/1" in shown


def test_a_mark_says_what_its_tone_says():
    lines = list(text_lines(draw(report(lost_write(), averted(instance="b")))))
    for line in lines:
        text = "".join(segment.text for segment in line)
        tones = {segment.tone for segment in line}
        if Tone.VIOLATION in tones:
            assert "✗" in text or "viol" in text
        if Tone.AVERTED in tones:
            assert "✓" in text or "averted" in text


def test_what_a_stranger_wrote_cannot_move_the_cursor_or_break_a_line():
    told = lost_write(HOSTILE, workflow=HOSTILE, instance=HOSTILE, process=HOSTILE)
    shown = render_text(report(told, sources=(HOSTILE,)))
    assert "\\x1b[31m" in shown
    assert all(character.isprintable() or character == "\n" for character in shown)
    assert shown.count("\n") == LOST.count("\n")
    shown.encode("utf-8")


def test_a_key_without_end_is_cut():
    shown = render_text(report(lost_write("k" * 1_000_000)))
    assert len(shown) < 20_000
    assert "more characters)" in shown


def test_a_long_timeline_is_cut_to_what_surrounds_its_findings():
    shown = render_text(report(many(4_000)))
    rows = [line for line in shown.splitlines() if line[:5].strip().isdigit()]
    assert 100 < len(rows) < 2_500
    assert shown.count(" rows …") > 5
    hidden = sum(
        int(line.split("…")[1].split()[0])
        for line in shown.splitlines()
        if line.endswith(" rows …")
    )
    assert hidden + len(rows) == len(many(4_000))


def test_a_long_timeline_without_findings_shows_how_it_began_and_ended():
    lines = render_text(report(calm(100))).splitlines()
    assert "epoch 1 claims" in lines[3]
    assert "epoch 100 releases" in lines[-1]
    assert any(line.endswith(" rows …") for line in lines)


def test_timelines_without_findings_are_counted_where_others_have_some():
    calm_ones = [calm(instance=f"calm-{number}") for number in range(30)]
    shown = render_text(report(lost_write(), *calm_ones))
    assert "calm-" not in shown
    assert "30 more timelines are not shown" in shown


def test_positions_of_several_processes_name_their_process():
    shown = render_text(report(of_processes(calm(4), "host-a", "host-b")))
    assert "p1 = process host-b" in shown
    assert "p2:1" in shown


def test_what_is_missing_is_said_at_its_place():
    told = [each for each in lost_write() if each.seq not in (2, 11, 12)]
    shown = render_text(report(told))
    assert "seq 2 of process host-1 is not in this report" in shown
    assert "seq 11-12 of process host-1 are not in this report" in shown
    assert "missing: press/default: seq 2 of process host-1" in shown


def test_a_section_can_be_shown_without_proofs():
    picture = draw(report(lost_write()))
    lines = section_lines(picture, picture.sections[0], proofs=False)
    shown = "\n".join("".join(part.text for part in line) for line in lines)
    assert "stale discard (violation, certain)" in shown
    assert "however" not in shown


@pytest.mark.parametrize(
    "says",
    [
        "claims",
        "superstep 1 begins",
        "writer ends",
        "reads draft of epoch 1",
        "gets the output of epoch 1",
        "saves checkpoint c1",
        "discards (sweep): nothing",
        "commits: draft",
        "releases (completed)",
        "late output",
        "discard (finalizer) refused",
    ],
)
def test_every_operation_is_said_in_few_words(says):
    assert f"epoch 2 {says}\n" in render_text(report(every_kind()))
