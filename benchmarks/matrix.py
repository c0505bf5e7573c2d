"""What is measured, against what, and what it may cost: data only."""

from dataclasses import dataclass
from typing import Final, Literal

FLOOR: Final = "asyncio"
SUBJECT: Final = "tenure"
NEIGHBOUR: Final = "agent-framework"
SAVING_NEIGHBOUR: Final = "langgraph"
"""Whom checkpoints are compared with; it has an environment of its own."""

SCRIPTS: Final = {
    FLOOR: "bench_asyncio.py",
    SUBJECT: "bench_tenure.py",
    NEIGHBOUR: "bench_agent_framework.py",
    SAVING_NEIGHBOUR: "bench_langgraph.py",
}
"""The script of each peer."""


@dataclass(frozen=True, slots=True)
class Spec:
    """One measurement: a peer and its command line."""

    peer: str
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table.

    Attributes:
        label: Its short name, for the command line.
        title: What a reader sees.
        unit: What one number is for.
        subject: What is judged.
        floor: What it is compared with; `None` where nothing is.
        neighbour: Another engine doing the same.
        target: What the ratio, or the growth in megabytes, may be at most.
        figure: What is read off: processor time, time by the clock where a disk takes
            part, or growth of memory.
        share: By what times are divided, where a unit has several parts.
        brief: Whether it belongs into the short table.
    """

    label: str
    title: str
    unit: str
    subject: Spec
    floor: Spec | None
    neighbour: Spec | None = None
    target: float | None = None
    figure: Literal["time", "wall", "growth"] = "time"
    share: int = 1
    brief: bool = False

    @property
    def specs(self) -> tuple[Spec, ...]:
        """What is measured for it, in the order of one repetition."""
        specs = (self.floor, self.subject, self.neighbour)
        return tuple(spec for spec in specs if spec is not None)


def _against_asyncio(
    label: str,
    title: str,
    unit: str,
    command: str,
    *,
    opts: str = "",
    target: float | None = None,
    neighbour: str = "",
    share: int = 1,
    brief: bool = True,
) -> Row:
    return Row(
        label=label,
        title=title,
        unit=unit,
        subject=Spec(SUBJECT, f"{command} {opts}".strip()),
        floor=Spec(FLOOR, command),
        neighbour=Spec(NEIGHBOUR, neighbour) if neighbour else None,
        target=target,
        share=share,
        brief=brief,
    )


_CHAIN: Final = "chain 1000 --rounds 9"
_FOREIGN: Final = "chain 300 --rounds 7"
_TRACED: Final = "traced 1000 --rounds 5"
_SAVED: Final = "checkpoint 200 --warm 100 --rounds 15"
_FAN: Final = "fan 10 --workers 1000 --warm 1 --rounds 5"

MATRIX: Final = (
    _against_asyncio(
        "chain",
        "chain, no telemetry",
        "superstep",
        _CHAIN,
        target=1.5,
        neighbour="chain 300 --rounds 3",
    ),
    _against_asyncio(
        "stream", "chain, live stream", "superstep", _CHAIN, opts="--opt stream=1",
        target=5,
    ),
    _against_asyncio(
        "listen", "chain, detector listening, no SDK", "superstep", _CHAIN,
        opts="--opt listen=1", target=2.5,
    ),
    _against_asyncio(
        "traced",
        "chain, SDK, full detail, against as many spans by hand",
        "superstep",
        _TRACED,
        target=2,
    ),
    Row(
        label="traced-equal",
        title="the same, against spans by hand with as many attributes",
        unit="superstep",
        subject=Spec(SUBJECT, _TRACED),
        floor=Spec(FLOOR, f"{_TRACED} --opt attributes=12"),
    ),
    Row(
        label="traced-detect",
        title="the same, with a detector over the spans",
        unit="superstep",
        subject=Spec(SUBJECT, f"{_TRACED} --opt detect=1"),
        floor=Spec(FLOOR, _TRACED),
    ),
    _against_asyncio(
        "fan-10",
        "fan-out and fan-in, 10 workers",
        "run",
        "fan 50 --rounds 7",
        neighbour="fan 20 --rounds 3",
        brief=False,
    ),
    _against_asyncio(
        "fan-1000",
        "fan-out and fan-in, 1000 workers",
        "worker",
        _FAN,
        target=3,
        neighbour="fan 3 --workers 1000 --warm 1 --rounds 1",
        share=1000,
    ),
    _against_asyncio(
        "state",
        "10 keys written and read",
        "superstep",
        "state 1000 --rounds 7",
        target=3,
        neighbour="state 300 --rounds 3",
    ),
    _against_asyncio(
        "runs",
        "run of 3 supersteps",
        "run",
        "runs 300 --rounds 7",
        neighbour="runs 100 --rounds 3",
    ),
    _against_asyncio(
        "concurrent",
        "1000 runs at once, 3 supersteps each",
        "run",
        "concurrent 1000 --rounds 5",
        target=3,
        neighbour="concurrent 1000 --rounds 1",
    ),
    Row(
        label="instrumented",
        title="agent-framework, chain: the instrumentor, nobody listens",
        unit="superstep",
        subject=Spec(NEIGHBOUR, f"{_FOREIGN} --opt instrumented=1"),
        floor=Spec(NEIGHBOUR, _FOREIGN),
        target=1.15,
    ),
    Row(
        label="instrumented-detect",
        title="the same, with a detector that listens",
        unit="superstep",
        subject=Spec(NEIGHBOUR, f"{_FOREIGN} --opt listen=1"),
        floor=Spec(NEIGHBOUR, _FOREIGN),
        target=1.4,
    ),
    Row(
        label="checkpoint",
        title="1 KB saved in SQLite, against a bare fenced transaction, by the clock",
        unit="superstep",
        subject=Spec(SUBJECT, _SAVED),
        floor=Spec(FLOOR, _SAVED),
        neighbour=Spec(SAVING_NEIGHBOUR, "checkpoint 100 --rounds 3"),
        target=1.3,
        figure="wall",
    ),
    Row(
        label="checkpoint-threads",
        title="the same, against a bare fenced transaction in a worker thread",
        unit="superstep",
        subject=Spec(SUBJECT, _SAVED),
        floor=Spec(FLOOR, f"{_SAVED} --opt thread=1"),
        target=1.3,
        figure="wall",
    ),
    Row(
        label="checkpoint-blocking",
        title="the same, the event loop waiting for the disk, against a bare one",
        unit="superstep",
        subject=Spec(SUBJECT, f"{_SAVED} --opt blocking=1"),
        floor=Spec(FLOOR, _SAVED),
        target=1.3,
        figure="wall",
    ),
    Row(
        label="checkpoint-memory",
        title="1 KB saved in memory",
        unit="superstep",
        subject=Spec(SUBJECT, "checkpoint 1000 --rounds 7 --opt memory=1"),
        floor=Spec(FLOOR, "checkpoint 1000 --rounds 7 --opt memory=1"),
    ),
    Row(
        label="growth-chain",
        title="a superstep of 10 000, against one of 1000",
        unit="superstep",
        subject=Spec(SUBJECT, "chain 10000 --rounds 3"),
        floor=Spec(SUBJECT, _CHAIN),
        target=1.1,
    ),
    Row(
        label="growth-state",
        title="10 of 100 000 keys written, against 10 of 10",
        unit="superstep",
        subject=Spec(SUBJECT, "state 1000 --opt held=100000 --rounds 7"),
        floor=Spec(SUBJECT, "state 1000 --rounds 7"),
        target=1.1,
    ),
    Row(
        label="memory-chain",
        title="memory gained over the last 8000 of 10 000 supersteps",
        unit="MB",
        subject=Spec(SUBJECT, "chain 10000 --opt memory=1"),
        floor=None,
        target=0.5,
        figure="growth",
    ),
    Row(
        label="memory-runs",
        title="memory gained over the last 8000 of 10 000 runs",
        unit="MB",
        subject=Spec(SUBJECT, "runs 10000 --opt memory=1"),
        floor=None,
        target=0.5,
        figure="growth",
    ),
)  # fmt: skip
"""Everything, in the order of the table."""
