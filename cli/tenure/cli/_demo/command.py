"""What `tenure demo` does: set up, play, report."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from rich.text import Text

from tenure.cli import _console
from tenure.cli._demo.described import deviations
from tenure.cli._demo.play import Played, play
from tenure.cli._demo.report import print_outcome, print_story, print_timeline
from tenure.cli._demo.spans import Spans
from tenure.cli._demo.story import Engine, StoryError
from tenure.cli._status import CommandError, Status
from tenure.instrumentation import TelemetryConfigError, UnsupportedEngineError


def run_demo(
    names: Sequence[str], output: Path, *, as_json: bool, watch: bool = True
) -> Status:
    """Play the story on the named engines and report.

    Args:
        names: `agent-framework`, `tenure`, or both.
        output: Where the spans go.
        as_json: Whether one JSON document is printed instead of timelines.
        watch: Whether instrumentors are attached to the engines that need one.

    Returns:
        The exit status: clean if everything turned out as described.

    Raises:
        CommandError: The output cannot be written, a variable cannot be used, the
            instrumentor does not know the installed engine, or a story did not end.
    """
    console = _console.output()
    spans = Spans(output)
    if not as_json:
        print_story(console)
    plays: list[Played] = []
    try:
        for played in _each(names, watch=watch):
            plays.append(played)
            if not as_json:
                print_timeline(console, played)
    finally:
        wrong = spans.close()
    if as_json:
        _print_json(plays)
    else:
        console.print(Text(_told(spans)))
        print_outcome(console, plays)
    for sentence in wrong:
        sys.stderr.write(f"tenure: {sentence}\n")
    return _status(plays, spans)


def _each(names: Sequence[str], *, watch: bool) -> Iterator[Played]:
    for name in names:
        try:
            yield play(_ENGINES[name](), watch=watch)
        except (TelemetryConfigError, UnsupportedEngineError) as error:
            raise CommandError(str(error)) from error
        except StoryError as error:
            raise CommandError(str(error), Status.INCONCLUSIVE) from error


def _agent_framework() -> Engine:
    from tenure.cli._demo.agent_framework import AgentFramework

    return AgentFramework()


def _tenure() -> Engine:
    from tenure.cli._demo.tenure import Tenure

    return Tenure()


_ENGINES: Final[Mapping[str, Callable[[], Engine]]] = {
    "agent-framework": _agent_framework,
    "tenure": _tenure,
}


def _print_json(plays: Sequence[Played]) -> None:
    document = {"engines": [played.as_dict() for played in plays]}
    sys.stdout.write(json.dumps(document, indent=2) + "\n")
    sys.stdout.flush()


def _told(spans: Spans) -> str:
    told = f"{spans.written} spans in {spans.output}"
    return told if spans.reached is None else f"{told}, and live to {spans.reached}"


def _status(plays: Sequence[Played], spans: Spans) -> Status:
    if spans.lost:
        return Status.UNUSABLE
    if any(deviations(played) for played in plays):
        return Status.VIOLATED
    return Status.CLEAN
