"""Random stories of questions and answers: a model knows what must wait and be joined.

Each word that a run is given raises three questions, two of them deep inside of a
sub-workflow, and their answers meet in two fan-ins. They are answered in any order and
in parts, asked again, withdrawn and failed; by new processes, after going back in time,
in forks.
"""

import asyncio
import copy
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tenure.detectors import Detector, Severity, Verdict
from tenure.runtime import (
    Executor,
    ExecutorError,
    Instance,
    MemoryStore,
    SqliteStore,
    Store,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    executor,
    handler,
    response_handler,
)

Answers = dict[str, str]
STEPS = 15


class Asker(Executor):
    """Asks, and sends on what is answered, asks again, or fails."""

    @handler
    async def ask(self, word: str, ctx: WorkflowContext[Answers, None]) -> None:
        await ctx.request_info(f"{self.id} {word}", str)

    @response_handler
    async def answered(
        self, request: str, response: str, ctx: WorkflowContext[Answers, None]
    ) -> None:
        if response == "fail":
            raise RuntimeError("refused on request")
        if response == "again":
            await ctx.request_info(request, str)
        else:
            await ctx.send_message({request: response})


@executor
async def split(word: str, ctx: WorkflowContext[str, None]) -> None:
    await ctx.send_message(word)


@executor
async def join(parts: list[Answers], ctx: WorkflowContext[None, Answers]) -> None:
    together = parts[0] | parts[1]
    for part in parts:
        part.clear()  # what it is given is its own
    await ctx.yield_output(together)


def joining(
    name: str, left: Executor, right: Executor, store: Store | None = None
) -> Workflow:
    builder = WorkflowBuilder(name, start=split, store=store)
    both = [left, right]
    return builder.add_fan_out(split, both).add_fan_in(both, join).build()


def drawn(store: Store | None) -> Workflow:
    child = joining("child", Asker("a"), Asker("b"))
    middle = WorkflowBuilder("middle", start=WorkflowExecutor(child)).build()
    return joining("outer", WorkflowExecutor(middle), Asker("c"), store)


@dataclass
class Model:
    """What must wait, and what of each word was answered."""

    waiting: set[str] = field(default_factory=set)
    answered: dict[str, Answers] = field(default_factory=dict)
    # Whether a run has failed on an answer that is saved and not handled.
    undone: bool = False

    def ask(self, word: str) -> None:
        self.waiting |= {f"{name} {word}" for name in "abc"}
        self.answered[word] = {}
        self.undone = False

    def answer(self, answers: Answers) -> list[Answers]:
        """Take answers; return what they complete."""
        self.undone = False
        for question, answer in answers.items():
            if answer != "again":
                self.waiting.remove(question)
                self.answered[question.split()[1]][question] = answer
        words = {one.split()[1] for one, text in answers.items() if text != "again"}
        return [self.answered[one] for one in words if len(self.answered[one]) == 3]


class Story:
    """One instance after the other, and what the model says of it."""

    def __init__(self, random: Random, make: Callable[[], Store | None]) -> None:
        self.random = random
        self.make = make
        self.store = make()
        self.instance: Instance = drawn(self.store).instance("first")
        self.model = Model()
        # Checkpoints of the instance, with what the model said then.
        self.saved: list[tuple[str, Model]] = []

    async def go(self) -> None:
        acts = [self.ask, self.answer, self.answer, self.answer, self.withdraw]
        if self.store is not None:
            acts += [self.begin_anew, self.resume, self.go_back, self.fork]
        for step in range(STEPS):
            await self.random.choice(acts)(step)
            waiting = [one.data for one in self.instance.pending_requests]
            assert sorted(waiting) == sorted(self.model.waiting)
            if self.store is not None and not self.model.undone:
                newest = (await self.instance.history())[:1]
                self.saved += [
                    (one.checkpoint_id, copy.deepcopy(self.model)) for one in newest
                ]

    def some(self) -> dict[str, str]:
        """Choose questions that wait, and return their ids."""
        ids = {one.data: one.request_id for one in self.instance.pending_requests}
        chosen = self.random.sample(
            sorted(ids), self.random.randint(min(1, len(ids)), len(ids))
        )
        return {question: ids[question] for question in chosen}

    async def ask(self, step: int) -> None:
        self.model.ask(f"w{step}")
        assert (await self.instance.run(f"w{step}")).outputs == ()

    async def answer(self, step: int) -> None:
        ids = self.some()
        answers = {
            question: self.random.choice(["yes", "no", "later", "never", "again"])
            for question in ids
        }
        if answers and self.random.random() < 0.2:
            answers[self.random.choice(sorted(answers))] = "fail"
        responses = {ids[question]: answer for question, answer in answers.items()}
        if "fail" in answers.values():
            try:
                await self.instance.run(responses=responses)
            except ExecutorError:
                self.model.undone = self.store is not None
            return
        expected = self.model.answer(answers)
        outputs = (await self.instance.run(responses=responses)).outputs
        assert len(outputs) == len(expected)
        assert all(one in expected for one in outputs)

    async def withdraw(self, step: int) -> None:
        ids = self.some()
        await self.instance.cancel_requests(ids.values())
        self.model.waiting -= ids.keys()
        self.model.undone = False

    async def begin_anew(self, step: int) -> None:
        if isinstance(self.store, SqliteStore):
            await self.store.aclose()
            self.store = self.make()
        self.instance = drawn(self.store).instance(self.instance.key)
        await self.instance.refresh()

    async def resume(self, step: int) -> None:
        if not await self.instance.history():
            return
        try:
            assert (await self.instance.resume()).outputs == ()
        except ExecutorError:
            assert self.model.undone

    async def go_back(self, step: int) -> None:
        if self.saved:
            checkpoint_id, then = self.random.choice(self.saved)
            result = await self.instance.run(checkpoint_id=checkpoint_id)
            assert result.outputs == ()
            self.model = copy.deepcopy(then)

    async def fork(self, step: int) -> None:
        if self.saved:
            checkpoint_id, then = self.random.choice(self.saved)
            self.instance = await self.instance.fork(checkpoint_id, f"fork {step}")
            self.model, self.saved = copy.deepcopy(then), []


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(random=st.randoms(use_true_random=False), kind=st.integers(0, 2))
def test_what_is_asked_waits_and_what_is_answered_meets_its_own(
    random: Random, kind: int
) -> None:
    detector = Detector()
    with tempfile.TemporaryDirectory() as directory, detector.listen():
        memory = MemoryStore()

        def make() -> Store | None:
            if kind < 2:
                return (None, memory)[kind]
            return SqliteStore(directory, blocking=True)

        async def tell() -> None:
            story = Story(random, make)
            await story.go()
            if isinstance(story.store, SqliteStore):
                await story.store.aclose()

        asyncio.run(tell())
    assert [
        one for one in detector.findings if one.severity is not Severity.AVERTED
    ] == []
    assert detector.verdict is Verdict.CLEAN
