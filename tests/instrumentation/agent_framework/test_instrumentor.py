"""Putting the wrappers in, and refusing an engine that is not known."""

import subprocess
import sys
from importlib.metadata import PackageNotFoundError, entry_points
from typing import Any

import pytest
from agent_framework._workflows._edge_runner import FanInEdgeRunner
from agent_framework._workflows._state import State
from agent_framework._workflows._workflow import Workflow
from opentelemetry.instrumentation.dependencies import DependencyConflictError
from opentelemetry.instrumentation.instrumentor import BaseInstrumentor

from tenure.instrumentation import UnsupportedEngineError
from tenure.instrumentation.agent_framework import AgentFrameworkInstrumentor, _engine
from tenure.instrumentation.agent_framework._patches import wrap_points
from tenure.instrumentation.agent_framework._registry import Registry
from tenure.instrumentation.operations import Claim, Operation
from tenure.instrumentation.recorder import Recorder

from . import stories
from .conftest import instrumentation
from .stories import settled


def pretend(monkeypatch: pytest.MonkeyPatch, version: str | None) -> None:
    """Have the engine's distribution report another version, or none."""

    def reported(name: str) -> str:
        if version is None:
            raise PackageNotFoundError(name)
        return version

    monkeypatch.setattr(_engine, "version", reported)


def untouched() -> bool:
    return not hasattr(vars(State)["discard"], "__wrapped__")


def test_it_is_an_opentelemetry_instrumentor_that_names_its_dependency() -> None:
    instrumentor = AgentFrameworkInstrumentor()
    assert isinstance(instrumentor, BaseInstrumentor)
    assert list(instrumentor.instrumentation_dependencies()) == [
        "agent-framework-core >= 1.20, < 1.24"
    ]


def test_opentelemetry_finds_it_by_its_entry_point() -> None:
    (point,) = entry_points(
        group="opentelemetry_instrumentor", name="tenure_agent_framework"
    )
    assert point.load() is AgentFrameworkInstrumentor


def test_importing_it_does_not_load_the_engine() -> None:
    found = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, tenure.instrumentation.agent_framework\n"
            "loaded = {name.partition('.')[0] for name in sys.modules}\n"
            "sys.exit('agent_framework' in loaded)",
        ],
        check=False,
    )
    assert found.returncode == 0


def test_every_wrap_point_is_there_in_the_installed_engine() -> None:
    points = wrap_points(Registry(Recorder("agent-framework/test")))
    assert [point.name for point in points if point.find() is None] == []
    assert len(points) > 20


async def test_it_tells_the_engine_and_its_version(heard: list[Operation]) -> None:
    with instrumentation():
        await settled(stories.chain())
    assert {told.run.engine for told in heard} == {
        f"agent-framework/{_engine.installed_version()}"
    }


def test_it_puts_everything_back() -> None:
    before = {
        (place, name): vars(place)[name]
        for place in (State, Workflow)
        for name in vars(place)
    }
    with instrumentation():
        assert not untouched()
    for (place, name), method in before.items():
        assert vars(place)[name] is method


def test_what_others_put_on_top_is_left_in_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[str] = []
    with instrumentation():
        ours = vars(State)["set"]

        def theirs(self: State, *args: Any, **kwargs: Any) -> None:
            calls.append("theirs")
            ours.__get__(self, State)(*args, **kwargs)

        monkeypatch.setattr(State, "set", theirs)
    state = State()
    state.set("key", 1)
    assert calls == ["theirs"]
    assert state.get("key") == 1
    monkeypatch.undo()
    State.set = ours.__wrapped__


async def test_a_second_instrumentation_counts_for_itself(
    heard: list[Operation],
) -> None:
    gates = stories.Gates()
    workflow = stories.one_executor(gates)
    gates["b go"].set()
    for _ in range(2):
        with instrumentation():
            await stories.play(workflow)
    claims = [told for told in heard if isinstance(told, Claim)]
    assert [(claim.run.epoch, claim.seq) for claim in claims] == [(1, 1), (1, 1)]
    assert len({claim.run.instance for claim in claims}) == 2


def test_a_missing_engine_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, None)
    with pytest.raises(UnsupportedEngineError, match="not installed"):
        AgentFrameworkInstrumentor().instrument(on_unknown_version="warn")
    assert untouched()


@pytest.mark.parametrize("version", ["1.19.4", "1.24.0", "2.0.0", "1.2"])
def test_an_unknown_version_is_refused_and_nothing_is_wrapped(
    monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    pretend(monkeypatch, version)
    with pytest.raises(UnsupportedEngineError) as caught:
        AgentFrameworkInstrumentor().instrument()
    assert caught.value.version == version
    assert untouched()


async def test_an_unknown_version_is_used_with_a_warning_where_that_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, heard: list[Operation]
) -> None:
    pretend(monkeypatch, "1.24.0")
    instrumentor = AgentFrameworkInstrumentor()
    with pytest.warns(RuntimeWarning, match=r"1\.24\.0 is not a version") as warned:
        instrumentor.instrument(on_unknown_version="warn")
    try:
        await settled(stories.chain())
    finally:
        instrumentor.uninstrument()
    assert warned[0].filename == __file__
    assert {told.run.engine for told in heard} == {"agent-framework/1.24.0"}


async def test_a_method_that_is_gone_is_named_and_does_not_break_a_run(
    monkeypatch: pytest.MonkeyPatch, heard: list[Operation]
) -> None:
    pretend(monkeypatch, "1.24.0")
    monkeypatch.delattr(State, "clear")
    monkeypatch.delattr(FanInEdgeRunner, "_is_ready_to_send")
    with (
        pytest.warns(RuntimeWarning, match=r"State\.clear.*_is_ready_to_send"),
        instrumentation(on_unknown_version="warn"),
    ):
        told = await settled(stories.lost_write())
    assert told.outputs == ["b"]
    assert "commit" in {operation.name for operation in heard}


def test_a_known_version_that_lacks_a_method_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(State, "clear")
    with pytest.raises(UnsupportedEngineError):
        AgentFrameworkInstrumentor().instrument()
    assert untouched()


def test_opentelemetrys_launcher_is_told_of_a_conflict_in_its_own_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_engine, "REQUIREMENT", "agent-framework-core >= 99")
    with pytest.raises(DependencyConflictError):
        AgentFrameworkInstrumentor().instrument(raise_exception_on_conflict=True)
    assert untouched()
