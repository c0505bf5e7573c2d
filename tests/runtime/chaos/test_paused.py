"""Owners that are paused right before a commit: they are refused when they wake up."""

import asyncio
import os
import signal
from collections import Counter
from pathlib import Path

import pytest

from tenure.instrumentation import Recorder
from tenure.runtime import (
    RunId,
    SqliteStore,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
)
from tenure.runtime import executor as as_executor

from .checked import Checked, check
from .exporting import exporting_to
from .processes import end, finish, start, tell

pytestmark = [
    pytest.mark.skipif(os.name != "posix", reason="there is no SIGSTOP"),
    pytest.mark.timeout(600),
]

PAUSES = int(os.environ.get("TENURE_CHAOS_PAUSES", "100"))
"""How many owners are paused right before a commit; `make chaos` pauses 2,000."""


@as_executor
async def usurp(left: int, ctx: WorkflowContext[int, int]) -> None:
    ctx.set_state("usurped", left)
    if left > 1:
        await ctx.send_message(left - 1)


async def take_over(
    store: SqliteStore, workflow: Workflow, key: str, steps: int
) -> None:
    """Claim, and commit so many supersteps; or claim and commit nothing at all."""
    if steps:
        await workflow.instance(key).run(steps, on_conflict="supersede")
    else:
        await store.claim(f"chaos/{key}", RunId("usurper"))


def pauses(directory: Path, kind: str, count: int) -> tuple[Counter[str], Checked]:
    """Let owners stop right before a commit, be replaced, and wake up.

    Returns:
        What became of them, and what `tenure check` says of both processes' spans.
    """
    files = [directory / "owner.jsonl", directory / "usurper.jsonl"]
    process = start("pause", directory, kind, files[0])
    provider = exporting_to(files[1])
    answers: Counter[str] = Counter()

    async def go() -> None:
        async with SqliteStore(directory) as store:
            recorder = Recorder("tenure/chaos", tracer_provider=provider)
            builder = WorkflowBuilder(
                "chaos", start=usurp, store=store, recorder=recorder
            )
            workflow = builder.add_edge(usurp, usurp).build()
            for number in range(count):
                key = f"k{number}"
                # The second to fifth commit; the first is the entry.
                tell(process, key, 2 + number % 4)
                _, status = os.waitpid(process.pid, os.WUNTRACED)  # noqa: ASYNC222
                assert os.WIFSTOPPED(status)
                await take_over(store, workflow, key, number % 4)
                before = await workflow.instance(key).history()
                process.send_signal(signal.SIGCONT)
                assert process.stdout is not None
                answers[process.stdout.readline().split()[0]] += 1
                after = await workflow.instance(key).history()
                answers["changed"] += after != before
                workflow.forget(key)

    try:
        asyncio.run(go())
        finish(process)
        provider.shutdown()
    finally:
        end(process)
    return answers, check(files)


def test_an_owner_that_was_paused_before_its_commit_is_refused_when_it_wakes_up(
    tmp_path: Path,
) -> None:
    """langchain-ai/langgraph#8894: a superseded owner has to be refused, visibly.

    Right: it is, at whichever commit it was paused, by the store and not by a clock.
    """
    answers, checked = pauses(tmp_path, "fenced", PAUSES)
    assert answers == {"refused": PAUSES, "changed": 0}
    # Nobody was killed: each of the refusals is in the spans, and nothing else is.
    assert checked.kinds == {("stale-discard/own-ledger", "averted", "certain"): PAUSES}
    assert len({one["instance"] for one in checked.findings}) == PAUSES
    # Every fourth owner was replaced by somebody whose claim is in no span.
    assert checked.status == 3
    assert {one.partition(": ")[2] for one in checked.document["missing"]} == {
        "the claim of epoch 2"
    }


def test_a_store_without_a_fence_is_caught_at_it(tmp_path: Path) -> None:
    """The negative control: it looks who owns the instance, and then writes."""
    answers, checked = pauses(tmp_path, "unfenced", 20)
    assert answers["changed"] == 20
    assert answers["accepted"] > 0
    assert checked.status == 1
    proven = Counter(one["anomaly"] for one in checked.proven)
    assert proven["stale-commit"] == 20
