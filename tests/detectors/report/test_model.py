"""Operations and findings become lanes, bars, marks and arrows: by position only."""

import random
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenure.detectors import Detector, Severity, Verdict
from tenure.detectors.report import Gap, Kind, Mark, Picture, Report, Section, draw
from tenure.instrumentation import operations as vocabulary
from tenure.instrumentation.operations import Claim, Operation, Outcome, Owner

from .histories import (
    Teller,
    averted,
    calm,
    every_kind,
    lost_write,
    many,
    of_processes,
    report,
)


def only(picture: Picture) -> Section:
    (section,) = picture.sections
    return section


def marks(section: Section) -> list[Mark]:
    return [row for row in section.rows if isinstance(row, Mark)]


def seqs(section: Section) -> list[int | None]:
    return [mark.operation.seq for mark in marks(section)]


class TestOrder:
    def test_rows_stand_in_the_order_of_positions_whatever_arrived_first(self):
        told = lost_write()
        shuffled = random.Random(3).sample(told, len(told))
        assert seqs(only(draw(report(shuffled)))) == list(range(1, 15))

    def test_clocks_that_run_backwards_change_nothing(self):
        told = lost_write()
        backwards = [replace(each, time=-(each.seq or 0)) for each in told]
        drawn = only(draw(report(backwards)))
        assert seqs(drawn) == list(range(1, 15))
        assert drawn.lanes == only(draw(report(told))).lanes

    def test_an_operation_that_arrives_twice_is_drawn_once(self):
        told = lost_write()
        again = [replace(each, span=None, time=0) for each in told]
        assert seqs(only(draw(report(told, again)))) == list(range(1, 15))

    def test_a_process_keeps_its_order_and_claims_stand_in_the_order_of_epochs(self):
        told = list(of_processes(calm(6), "a", "b"))
        drawn = only(draw(report(reversed(told))))
        for process in ("a", "b"):
            counted = [
                mark.operation.seq
                for mark in marks(drawn)
                if mark.operation.run.process == process
            ]
            assert counted == sorted(counted)
        claims = [
            mark.operation.run.epoch for mark in marks(drawn) if mark.kind is Kind.CLAIM
        ]
        assert claims == [1, 2, 3, 4, 5, 6]

    def test_an_operation_is_drawn_after_the_claim_of_the_owner_that_it_saw(self):
        teller = Teller()
        first, second = teller.run(1, process="a"), teller.run(2, process="b")
        teller.claim(first)
        teller.claim(second, superseded=1)
        late = teller.tell(
            vocabulary.Commit, first, writes=vocabulary.WriteSet((("k", 1),))
        )
        assert late.owner == Owner(2, "run-2")
        drawn = [
            (mark.operation.run.process, mark.kind)
            for mark in marks(only(draw(report([late, *teller.told]))))
        ]
        assert drawn == [("a", Kind.CLAIM), ("b", Kind.CLAIM), ("a", Kind.COMMIT)]

    def test_operations_without_positions_keep_the_order_of_arrival(self):
        told = [replace(each, seq=None) for each in lost_write()]
        drawn = only(draw(report(told)))
        assert [mark.operation for mark in marks(drawn)] == told

    def test_what_is_missing_has_a_row_of_its_own(self):
        told = [each for each in lost_write() if each.seq not in (3, 4, 8)]
        drawn = only(draw(report(told)))
        gaps = [row for row in drawn.rows if isinstance(row, Gap)]
        assert [(gap.first, gap.last) for gap in gaps] == [(3, 4), (8, 8)]
        assert [row.place for row in drawn.rows] == list(range(len(drawn.rows)))

    def test_instances_that_had_one_name_after_each_other_are_told_apart(self):
        picture = draw(report(calm(3), calm(2, run_prefix="later")))
        assert [
            (section.life, len(section.lanes), seqs(section))
            for section in picture.sections
        ] == [(1, 3, list(range(1, 16))), (2, 2, list(range(1, 11)))]


class TestLanes:
    def test_a_tenure_is_drawn_from_claim_to_release(self):
        first, second = only(draw(report(lost_write()))).bars
        assert (first.first, first.last, first.outcome) == (0, 3, Outcome.ABANDONED)
        assert (second.first, second.last) == (4, 13)
        assert first.claimed
        assert first.released

    def test_a_run_that_acts_late_has_a_lane_beyond_its_bar(self):
        drawn = only(draw(report(lost_write())))
        assert drawn.lanes[0].last == 9 > drawn.bars[0].last

    def test_a_superstep_reaches_from_its_begin_to_its_end_though_the_run_is_gone(self):
        steps = only(draw(report(lost_write()))).supersteps
        assert [(step.lane, step.first, step.last) for step in steps] == [
            (0, 2, 9),
            (1, 6, 12),
        ]

    def test_a_claim_that_supersedes_ends_a_bar_whose_release_is_lost(self):
        told = [each for each in averted() if each.seq != 2]
        first, _ = only(draw(report(told))).bars
        assert first.released
        assert first.outcome is Outcome.SUPERSEDED

    def test_a_bar_that_nothing_ends_overlaps_the_next_claim_and_says_so(self):
        teller = Teller()
        teller.claim(teller.run(1))
        teller.calm_run(2)
        drawn = only(draw(report(teller.told)))
        first, second = drawn.bars
        assert not first.released
        assert first.last == second.first

    def test_a_run_that_never_owned_has_a_lane_and_no_bar(self):
        late = [each for each in lost_write() if each.seq in (5, 8, 9)]
        drawn = only(draw(report(late)))
        assert [lane.run.epoch for lane in drawn.lanes] == [2, 1]
        assert [drawn.lanes[bar.lane].run.epoch for bar in drawn.bars] == [2]

    def test_runs_in_one_column_never_overlap(self):
        drawn = only(draw(report(many(3_000))))
        by_column: dict[int, list[tuple[int, int]]] = {}
        for number, lane in enumerate(drawn.lanes):
            by_column.setdefault(drawn.column(number), []).append((
                lane.first,
                lane.last,
            ))
        assert len(drawn.lanes) > 100
        assert drawn.columns < 20
        for spans in by_column.values():
            for before, after in pairwise(sorted(spans)):
                assert before[1] < after[0]

    def test_a_few_runs_have_a_column_each(self):
        drawn = only(draw(report(calm(12))))
        assert sorted(lane.column for lane in drawn.lanes) == list(range(12))

    def test_few_processes_have_columns_of_their_own_and_many_share_them(self):
        few = only(draw(report(of_processes(calm(9), "a", "b", "c"))))
        assert len(few.groups) == 3
        several = [f"p{number}" for number in range(40)]
        drawn = only(draw(report(of_processes(calm(80), *several))))
        assert len(drawn.groups) == 1
        assert drawn.columns < 20

    def test_every_operation_of_the_vocabulary_has_a_mark(self):
        drawn = marks(only(draw(report(every_kind()))))
        assert {mark.kind for mark in drawn} == set(Kind)
        kinds = {
            value
            for value in vars(vocabulary).values()
            if isinstance(value, type)
            and issubclass(value, Operation)
            and value is not Operation
        }
        from tenure.detectors.report._shapes import _KINDS
        from tenure.detectors.report._wording import _WORDS

        assert set(_KINDS) == set(_WORDS) == kinds


class TestFindings:
    def test_a_stale_discard_points_from_the_culprit_to_the_bar_of_its_victim(self):
        picture = draw(report(lost_write()))
        drawn = only(picture)
        discard = next(
            arrow
            for arrow in drawn.arrows
            if picture.findings[arrow.finding].finding.anomaly == "stale-discard"
        )
        assert drawn.lanes[discard.lane].run.epoch == 1
        assert drawn.lanes[discard.to_lane].run.epoch == 2
        assert discard.place == discard.to_place == 8
        assert discard.says == "stale discard: answer:second"

    def test_a_leaked_write_points_back_to_where_its_writer_owned(self):
        picture = draw(report(lost_write()))
        leak = next(
            arrow
            for arrow in only(picture).arrows
            if picture.findings[arrow.finding].finding.anomaly == "leaked-write"
        )
        assert (leak.place, leak.to_place) == (5, 3)

    def test_a_refused_discard_points_at_the_owner(self):
        (arrow,) = only(draw(report(averted()))).arrows
        assert (arrow.lane, arrow.to_lane) == (0, 1)

    def test_an_epoch_that_is_used_twice_points_at_the_earlier_claim(self):
        teller = Teller()
        teller.calm_run(1)
        teller.run_prefix = "other"
        teller.calm_run(1)
        picture = draw(report(teller.told))
        number = next(
            number
            for number, placed in enumerate(picture.findings)
            if placed.finding.anomaly == "epoch-reuse"
        )
        arrow = next(each for each in only(picture).arrows if each.finding == number)
        assert (arrow.place, arrow.to_place) == (5, 0)

    def test_a_conflict_within_a_run_points_at_the_write_that_came_first(self):
        teller = Teller()
        run = teller.run(1)
        teller.claim(run)
        written = vocabulary.WriteSet((("draft", 1),))
        first, second = (
            teller.tell(vocabulary.Execute, run, executor=name, index=1, writes=written)
            for name in ("writer", "critic")
        )
        commit = teller.tell(vocabulary.Commit, run, writes=written, index=1)
        full = report(teller.told)
        finding = report(lost_write()).findings[0]
        within = replace(
            finding,
            culprit_epoch=1,
            owner_epoch=1,
            victim_epoch=1,
            evidence=(commit, second, first, teller.told[0]),
        )
        (arrow,) = only(draw(replace(full, findings=(within,)))).arrows
        assert (arrow.lane, arrow.place) == (0, 3)
        assert (arrow.to_lane, arrow.to_place) == (0, 1)

    def test_the_worst_comes_first(self):
        picture = draw(
            report(calm(instance="a"), averted(instance="b"), lost_write(instance="c"))
        )
        assert [section.instance for section in picture.sections] == ["c", "b", "a"]
        assert [placed.finding.severity for placed in picture.findings] == [
            Severity.VIOLATION,
            Severity.VIOLATION,
            Severity.AVERTED,
        ]

    def test_evidence_is_drawn_though_its_operations_were_not_kept(self):
        full = report(lost_write())
        bare = replace(full, operations=())
        picture = draw(bare)
        drawn = only(picture)
        assert [
            drawn.rows[placed.place].operation.seq for placed in picture.findings
        ] == [6, 9]
        assert len(drawn.arrows) == 2

    def test_nothing_at_all_is_a_picture_too(self):
        picture = draw(Report(verdict=Verdict.CLEAN, findings=(), operations=()))
        assert picture.sections == picture.findings == ()


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_operations_in_any_order_with_any_loss_can_be_drawn(data):
    told = [*many(60, seed=data.draw(st.integers(0, 50))), *lost_write(instance="b")]
    kept = data.draw(st.lists(st.sampled_from(told), max_size=80))
    blank = data.draw(st.sampled_from(["seq", "owner", "span"]))
    kept = [
        replace(each, **{blank: None}) if data.draw(st.booleans()) else each
        for each in kept
    ]
    detector = Detector(announce=())
    for each in kept:
        detector.feed(each)
    picture = draw(Report.of(detector, kept))
    assert len(picture.findings) == len(detector.findings)
    for section in picture.sections:
        last = len(section.rows) - 1
        for bar in section.bars:
            assert 0 <= bar.first <= bar.last <= last
        for lane in section.lanes:
            assert 0 <= lane.first <= lane.last <= last
        for arrow in section.arrows:
            target = section.lanes[arrow.to_lane]
            assert target.first <= arrow.to_place <= target.last


def test_the_claim_of_a_section_is_what_its_bars_begin_with():
    drawn = only(draw(report(many(500))))
    for bar in drawn.bars:
        row = drawn.rows[bar.first]
        assert isinstance(row, Mark)
        assert isinstance(row.operation, Claim)
        assert row.lane == bar.lane


@pytest.mark.parametrize("count", [1, 500])
def test_a_picture_has_every_operation_exactly_once(count):
    told = many(count)
    assert sorted(
        (mark.operation for mark in marks(only(draw(report(told))))),
        key=lambda each: each.seq or 0,
    ) == sorted(told, key=lambda each: each.seq or 0)
