"""The report of a demo: timelines, then one line per engine of what was lost."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from rich.console import Console
from rich.rule import Rule
from rich.text import Text

from tenure.cli._demo.described import deviations
from tenure.cli._demo.play import Played
from tenure.cli._demo.timeline import Timeline, mark

_COUNTABLE: Final = ("violation", "warning")
_STORY: Final = (
    "A web client asks a workflow to stream an answer, disconnects in the middle of a "
    "superstep, and asks again at once. A line beside a run: it owns the instance. "
    "{broken} it broke ownership, {averted} it asked to and was refused."
)


def print_story(console: Console) -> None:
    """Print what happens, and how to read a timeline of it."""
    broken, averted = (mark(console.options, name) for name in ("violation", "averted"))
    console.print(Text(_STORY.format(broken=broken, averted=averted)))
    console.print()


def print_timeline(console: Console, played: Played) -> None:
    """Print what happened on one engine."""
    characters = "-" if console.options.ascii_only else "─"
    console.print(Rule(Text(played.engine, "bold"), characters=characters, style=""))
    console.print(Timeline(played))
    for message in played.logged:
        console.print(Text(f"logged meanwhile: {message}", "dim"))
    console.print()


def print_outcome(console: Console, plays: Sequence[Played]) -> None:
    """Print how each engine differs from what is described, then what it lost.

    Args:
        console: Where to.
        plays: What the engines made of the story.
    """
    for played in plays:
        for deviation in deviations(played):
            console.print(Text(f"not as described on {played.engine}: {deviation}"))
    width = max(len(played.engine) for played in plays)
    for played in plays:
        console.print(_line(played, width), soft_wrap=True)


def _line(played: Played, width: int) -> Text:
    style = "bold red" if played.lost or played.leaked else "bold green"
    counted = Counter(finding.severity.value for finding in played.findings)
    found = ", ".join(
        f"{number} {severity}{'s' if number > 1 and severity in _COUNTABLE else ''}"
        for severity, number in counted.items()
    )
    return Text.assemble(
        (f"{played.engine:<{width}}  ", "bold"),
        (f"lost: {_listed(played.lost)}  leaked: {_listed(played.leaked)}", style),
        f"  {played.verdict.value} ({found or 'no findings'})",
    )


def _listed(keys: Sequence[str]) -> str:
    return ", ".join(keys) or "nothing"
