"""Many processes on one instance: real ones, over files in a directory.

`tests/runtime/chaos` stops and kills processes at random; here each does what a user's
did.
"""

import asyncio
import json
import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tenure.runtime import CheckpointInfo, SqliteStore

PROGRAM = Path(__file__).with_name("worker.py")
NAME = "office/default"


class Worker:
    """A process; see `worker.py`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    def tell(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n".encode())

    async def hear(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        return json.loads(await self.process.stdout.readline())

    async def result(self) -> dict[str, Any]:
        """Hear how a run ended, whatever its executors say meanwhile."""
        while "said" in (heard := await self.hear()):
            pass
        return heard

    async def ask(self, line: str) -> dict[str, Any]:
        self.tell(line)
        return await self.hear()

    async def end(self) -> None:
        if self.process.returncode is None:
            self.process.kill()
        await self.process.communicate()


Hire = Callable[[int], Awaitable[list[Worker]]]


@pytest.fixture
async def hire(tmp_path: Path) -> AsyncIterator[Hire]:
    """Start so many workers on the directory of the test."""
    hired: list[Worker] = []

    async def start() -> Worker:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            str(PROGRAM),
            str(tmp_path),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        worker = Worker(process)
        hired.append(worker)
        assert await worker.hear() == {"said": "ready"}
        return worker

    async def some(count: int) -> list[Worker]:
        return await asyncio.gather(*(start() for _ in range(count)))

    yield some
    await asyncio.gather(*(worker.end() for worker in hired))


async def line_of(directory: Path) -> list[CheckpointInfo]:
    """Return the checkpoints, oldest first, which must be one line without a fork."""
    async with SqliteStore(directory) as store:
        line = list(reversed(await store.history(NAME)))
    assert [one.parent_id for one in line] == [
        None,
        *(one.checkpoint_id for one in line[:-1]),
    ]
    assert [one.position for one in line] == list(range(1, len(line) + 1))
    assert [one.epoch for one in line] == sorted(one.epoch for one in line)
    return line


async def state_of(directory: Path) -> dict[str, Any]:
    async with SqliteStore(directory) as store:
        return (await store.load(NAME))[1]


def published(directory: Path) -> Counter[str]:
    file = directory / "published"
    lines = file.read_text().splitlines() if file.exists() else []
    return Counter(line.split()[0] for line in lines)


async def test_of_two_processes_that_go_on_from_one_checkpoint_one_succeeds(
    hire: Hire, tmp_path: Path
) -> None:
    """langchain-ai/langgraph#8796: two processes both succeeded, and the line forked.

    Both wrote children of one checkpoint, both were told that it had worked, and what
    one of them had written could not be reached any more.

    Right: the one that was replaced is refused, and there is one line.
    """
    one, other = await hire(2)
    assert (await one.ask("run hold reject"))["said"] == "holding"
    assert (await other.ask("run count supersede"))["done"] == ["count"]
    assert await one.ask("release") == {"refused": "OwnershipLostError"}
    assert {item.epoch for item in await line_of(tmp_path)} == {1, 2}
    assert await state_of(tmp_path) == {"count": 1}
    assert published(tmp_path) == {"count": 1}


async def test_a_superseded_owner_is_refused_until_it_claims_again(
    hire: Hire, tmp_path: Path
) -> None:
    """langchain-ai/langgraph#8894: a superseded owner has to be refused, visibly.

    Stores accepted whatever a worker wrote whose place another one had taken.

    Right: a typed error, nothing kept, however late it comes; by a new claim it may go
    on from what its successor has done.
    """
    one, other = await hire(2)
    assert (await one.ask("run hold reject"))["said"] == "holding"
    assert (await other.ask("count 3 supersede"))["counted"] == 3
    before = await line_of(tmp_path)
    # The successor has ended and gone: that gives the old owner nothing back.
    await other.end()
    assert await one.ask("release") == {"refused": "OwnershipLostError"}
    assert await line_of(tmp_path) == before
    assert (await one.ask("run count reject"))["epoch"] == 5
    assert await state_of(tmp_path) == {"count": 4}


async def test_a_run_whose_process_is_killed_when_it_has_started_is_gone_on_with(
    hire: Hire, tmp_path: Path
) -> None:
    """langchain-ai/langgraph#8764: an accepted run was gone with its process.

    It died before its first checkpoint. Recovery found nothing, not even a failure.

    Right: what has been told as started is in the store, with its input.
    """
    one, other = await hire(2)
    one.tell("die")
    assert await one.process.wait() == -9
    [entry] = await line_of(tmp_path)
    assert entry.kind == "entry"
    other.tell("release")
    assert (await other.ask("resume reject"))["said"] == "holding"
    assert (await other.hear())["done"] == ["hold"]
    assert await state_of(tmp_path) == {"count": 1}
    assert published(tmp_path) == {"hold": 1}


async def test_workers_that_change_one_state_lose_no_change(
    hire: Hire, tmp_path: Path
) -> None:
    """redis-developer/langgraph-redis#79: of two workers' updates one was lost.

    Both loaded the newest checkpoint, changed it, and wrote it back. A lock inside one
    process does not keep out the other.

    Right: who waits begins with what the one before has committed, in any process.
    """
    workers = await hire(3)
    # In turn, so that what each remembers is out of date; then all at once.
    for _ in range(3):
        for one in workers:
            assert (await one.ask("run count reject"))["done"] == ["count"]
    assert await state_of(tmp_path) == {"count": 9}
    answers = await asyncio.gather(*(one.ask("count 7 wait") for one in workers))
    assert answers == [{"counted": 7}] * 3
    assert await state_of(tmp_path) == {"count": 30}
    line = await line_of(tmp_path)
    assert {one.epoch for one in line} == set(range(1, 31))
    assert published(tmp_path) == {"count": 30}


async def test_another_process_cannot_drive_an_instance_that_is_being_driven(
    hire: Hire, tmp_path: Path
) -> None:
    """bytedance/deer-flow#4415: a side job changed the thread of a run at work.

    It asked whether a run was in flight, in the memory of its own process; the run was
    in another one.

    Right: the store says who owns the instance, whatever wants to drive it.
    """
    one, other = await hire(2)
    [request] = (await one.ask("run ask reject"))["requests"]
    assert (await one.ask("run hold reject"))["said"] == "holding"
    before = await line_of(tmp_path)
    for command in (
        f"withdraw {request} reject",
        f"answer {request} reject",
        "run count reject",
        "resume reject",
    ):
        assert await other.ask(command) == {"refused": "WorkflowBusyError"}
    assert await line_of(tmp_path) == before
    answer = await one.ask("release")
    assert (answer["done"], answer["requests"]) == (["hold"], [request])
    assert (await other.ask(f"withdraw {request} reject"))["requests"] == []
    assert await state_of(tmp_path) == {"count": 1}


async def test_of_many_processes_that_answer_at_once_one_goes_on(
    hire: Hire, tmp_path: Path
) -> None:
    """mastra-ai/mastra#20443: the work after a resume was done by each who resumed.

    A guard in memory did not help where the two requests came to two processes.

    Right: one answer is taken, and what follows is done once.
    """
    workers = await hire(4)
    [request] = (await workers[0].ask("run ask reject"))["requests"]
    answers = await asyncio.gather(
        *(one.ask(f"answer {request} reject") for one in workers)
    )
    assert [one["done"] for one in answers if "done" in one] == [["answered"]]
    refused = {one["refused"] for one in answers if "refused" in one}
    assert refused <= {"WorkflowBusyError", "UnknownRequestError"}
    assert published(tmp_path) == {"answered": 1}
    assert await state_of(tmp_path) == {"count": 1}


async def test_of_two_processes_that_recover_one_run_one_brings_its_result(
    hire: Hire, tmp_path: Path
) -> None:
    """dbos-inc/dbos-transact-ts#1205: two recoveries of a run had different results.

    Both were under way at once, and which result was kept depended on timing
    (dbos-inc/dbos-transact-ts#1206).

    Right: of recoveries at once one commits; the others are refused or find it done.
    """
    one, *others = await hire(3)
    one.tell("die")
    assert await one.process.wait() == -9
    for worker in others:
        worker.tell("release")
        worker.tell("resume reject")
    answers = await asyncio.gather(*(worker.result() for worker in others))
    done = [answer["done"] for answer in answers if "done" in answer]
    assert sorted(done) in ([["hold"]], [[], ["hold"]])
    refused = {answer["refused"] for answer in answers if "refused" in answer}
    assert refused <= {"WorkflowBusyError"}
    for worker in others:
        assert (await worker.ask("resume reject"))["done"] == []
    assert published(tmp_path) == {"hold": 1}
    await line_of(tmp_path)
    assert await state_of(tmp_path) == {"count": 1}
