"""The report for people: files, instances, timelines with proofs, and the verdict."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from tenure.cli._plain import plain
from tenure.detectors import Finding, Severity, Verdict
from tenure.detectors.offline import FileReport, InstanceReport, Report, Sighting
from tenure.detectors.report import Line, Tone, draw, render_text, section_lines
from tenure.detectors.report import Report as Drawn
from tenure.instrumentation.operations import RunRef

_MOST: Final = 20
"""How many of a kind are listed; the other formats have them all."""
_TIMELINES: Final = 10
_LONGEST: Final = 40
"""How many rows a timeline has at most if it is shown as a whole."""
_AROUND: Final = 5
_INDENT: Final = 4
_GRAVE: Final = frozenset({Severity.VIOLATION, Severity.WARNING})
_TONES: Final[Mapping[Tone, str]] = {
    Tone.PLAIN: "",
    Tone.DIM: "dim",
    Tone.STRONG: "bold",
    Tone.VIOLATION: "bold red",
    Tone.WARNING: "bold yellow",
    Tone.AVERTED: "bold green",
    Tone.INFORMATION: "cyan",
}
_STYLE: Final = {
    Verdict.CLEAN: "bold green",
    Verdict.VIOLATED: "bold red",
    Verdict.INCONCLUSIVE: "bold yellow",
}
_COUNTABLE: Final = frozenset({"violation", "warning"})


def print_report(console: Console, report: Report) -> None:
    """Print what was read, what was found, and what is missing.

    Args:
        console: Where to.
        report: What a check has to say.
    """
    for file in report.files:
        _print_file(console, file)
    drawn = _print_timelines(console, report)
    _print_findings(console, report, drawn)
    _print_instances(console, report.instances)
    _print_missing(console, report)
    console.print(_outcome(report), soft_wrap=True)


def _print_file(console: Console, file: FileReport) -> None:
    formats = ", ".join(file.formats) or "nothing that could be read"
    if file.spans:
        formats += f": {_counted(file.spans, 'span')}"
        formats += f", {_counted(file.operations, 'operation')}"
    elif not file.problem_count:
        formats = "no spans"
    console.print(Text.assemble((plain(file.name), "bold"), f"  {formats}"))
    wrong = [
        f"line {problem.line}: {problem.reason}" if problem.line else problem.reason
        for problem in file.problems
    ]
    hidden = file.problem_count - len(wrong)
    if hidden:
        wrong.append(f"… and {_counted(hidden, 'place')} more that cannot be read")
    wrong.extend(str(lack) for lack in file.unreadable)
    _print_list(console, wrong)


def _print_timelines(console: Console, report: Report) -> set[int]:
    """Draw what is around the gravest findings; return which are proved there."""
    grave = [each for each in report.findings if each.severity in _GRAVE]
    instances = list(dict.fromkeys(map(_instance, grave)))[:_TIMELINES]
    findings = [each for each in report.findings if _instance(each) in instances]
    if not findings:
        return set()
    kept = report.operations_kept
    drawn = Drawn(
        verdict=report.verdict,
        findings=tuple(findings),
        operations=tuple(each for each in kept if _instance(each.run) in instances),
    )
    picture = draw(drawn)
    if console.options.ascii_only:
        console.print()
        console.print(Text(render_text(drawn, ascii_only=True).rstrip()))
        return set(map(id, findings))
    for section in picture.sections:
        console.print()
        for line in section_lines(picture, section, longest=_LONGEST, around=_AROUND):
            console.print(_styled(line))
    return set(map(id, findings))


def _instance(named: Finding | RunRef) -> tuple[str, str, str]:
    return named.engine, named.workflow, named.instance


def _styled(line: Line) -> Padding:
    """Return a line of a timeline; what is too long for it goes on below its start."""
    indent = 0
    segments = list(line)
    if len(segments) > 1 and segments[0].text.isspace():
        indent = len(segments.pop(0).text)
    text = Text()
    for segment in segments:
        text.append(segment.text, _TONES[segment.tone])
    return Padding(text, (0, 0, 0, indent), expand=False)


def _print_findings(console: Console, report: Report, drawn: set[int]) -> None:
    rest = [each for each in report.sightings if id(each.finding) not in drawn]
    if not rest:
        return
    console.print()
    console.print(Text("Other findings" if drawn else "Findings", "bold"))
    _print_list(console, [_sighted(each) for each in rest[:_MOST]])
    # Of those that a report does not hold, none was drawn.
    hidden = sum(report.finding_counts.values()) - len(drawn) - min(len(rest), _MOST)
    if hidden > 0:
        _print_list(console, [f"… and {hidden} more; --format json lists them"])


def _sighted(sighting: Sighting) -> str:
    at = f", line {sighting.line}" if sighting.line else ""
    return f"{sighting.finding} ({sighting.file}{at})"


def _print_instances(console: Console, instances: Sequence[InstanceReport]) -> None:
    if not instances:
        return
    console.print()
    console.print(Text("Instances", "bold"))
    width = max(len(each.verdict.value) for each in instances[:_MOST])
    for instance in instances[:_MOST]:
        low, high = instance.epochs
        span = f"epoch {low}" if low == high else f"epochs {low} to {high}"
        found = f", {_listed(instance.findings)}" if instance.findings else ""
        line = Text.assemble(
            (f"{instance.verdict.value:<{width}}", _STYLE[instance.verdict]),
            f"  {plain(instance.title)} on {plain(instance.engine)}: "
            f"{_counted(instance.operations, 'operation')}, {span}{found}",
        )
        console.print(Padding(line, (0, 0, 0, _INDENT), expand=False))
    hidden = len(instances) - _MOST
    if hidden > 0:
        _print_list(console, [f"… and {hidden} more; --format json lists them"])


def _print_missing(console: Console, report: Report) -> None:
    if not report.missing:
        return
    console.print()
    console.print(Text("Missing", "bold"))
    _print_list(console, report.missing[:_MOST])
    hidden = len(report.missing) - _MOST
    if hidden > 0:
        _print_list(console, [f"… and {hidden} more; --format json lists them"])


def _print_list(console: Console, lines: Iterable[str]) -> None:
    for line in lines:
        console.print(
            Padding(
                Text(_shown(console, plain(line))), (0, 0, 0, _INDENT), expand=False
            )
        )


def _shown(console: Console, text: str) -> str:
    return text.replace("…", "...") if console.options.ascii_only else text


def _outcome(report: Report) -> Text:
    counts = [
        _counted(len(report.files), "file"),
        _counted(report.spans, "span"),
        _counted(report.operations, "operation"),
        f"{report.unreadable} unreadable",
    ]
    if report.problems:
        counts.append(_counted(report.problems, "place") + " not read")
    found = _listed(report.finding_counts) or "no findings"
    return Text.assemble(
        "\n",
        (report.verdict.value, _STYLE[report.verdict]),
        f": {found} in {', '.join(counts)}",
    )


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(
        _counted(count, severity) if severity in _COUNTABLE else f"{count} {severity}"
        for severity, count in counts.items()
    )


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
