"""Reports for machines: JSON, JUnit's XML, SARIF 2.1.0."""

import json
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote
from xml.etree import ElementTree as ET

from tenure.cli._plain import plain
from tenure.detectors import CATALOGUE, Anomaly, Certainty, Severity, Verdict
from tenure.detectors.offline import InstanceReport, Problem, Report, Sighting

_SARIF_SCHEMA: Final = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/"
    "sarif-schema-2.1.0.json"
)
_MOST_NOTICES: Final = 100


def as_json(report: Report) -> str:
    """Return the report as one document of JSON."""
    return json.dumps(report.as_dict(), indent=2) + "\n"


# JUnit.


def as_junit(report: Report) -> str:
    """Return the report as XML that CI systems show as test results.

    Every file and every instance is a test case; so is the recording as a whole. What
    is violated has failed, what is unreadable or inconclusive is in error.
    """
    root = ET.Element("testsuites", name="tenure check")
    _suite(root, "files", _file_cases(report))
    _suite(root, "instances", _instance_cases(report))
    _suite(root, "recording", [_recording_case(report)])
    for count in ("tests", "failures", "errors"):
        root.set(count, str(sum(int(suite.get(count, "0")) for suite in root)))
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=False) + "\n"


def _suite(root: ET.Element, name: str, cases: Iterable[ET.Element]) -> None:
    suite = ET.SubElement(root, "testsuite", name=name)
    suite.extend(cases)
    suite.set("tests", str(len(suite)))
    suite.set("failures", str(len(suite.findall("testcase/failure"))))
    suite.set("errors", str(len(suite.findall("testcase/error"))))


def _case(classname: str, name: str) -> ET.Element:
    return ET.Element("testcase", classname=plain(classname), name=plain(name))


def _say(case: ET.Element, tag: str, kind: str, lines: Iterable[str]) -> None:
    shown = [plain(line) for line in lines]
    said = ET.SubElement(case, tag, type=kind, message=shown[0])
    said.text = "\n".join(shown)


def _file_cases(report: Report) -> Iterator[ET.Element]:
    for file in report.files:
        case = _case("files", file.name)
        if file.problems or file.unreadable:
            problems = [str(problem) for problem in file.problems]
            lacking = [f"{file.name}: {lack}" for lack in file.unreadable]
            _say(case, "error", "unreadable", problems + lacking)
        yield case


def _instance_cases(report: Report) -> Iterator[ET.Element]:
    found: dict[tuple[str, str, str], list[Sighting]] = {}
    for sighting in report.sightings:
        finding = sighting.finding
        key = (finding.engine, finding.workflow, finding.instance)
        found.setdefault(key, []).append(sighting)
    for instance in report.instances:
        key = (instance.engine, instance.workflow, instance.instance)
        yield _instance_case(instance, found.get(key, []))


def _instance_case(instance: InstanceReport, found: list[Sighting]) -> ET.Element:
    case = _case(f"{instance.engine}.{instance.workflow}", instance.instance)
    proven = [sighting for sighting in found if sighting.proven]
    if instance.verdict is Verdict.VIOLATED:
        # There may be more findings than a report holds.
        lines = [_sentence(sighting) for sighting in proven] or ["violations"]
        _say(case, "failure", "violated", lines)
    elif instance.verdict is Verdict.INCONCLUSIVE:
        lacking = [f"inconclusive, missing: {each}" for each in instance.missing]
        _say(case, "error", "inconclusive", lacking or ["inconclusive: data was lost"])
    rest = [_sentence(sighting) for sighting in found if not sighting.proven]
    if rest:
        ET.SubElement(case, "system-out").text = "\n".join(map(plain, rest))
    return case


def _recording_case(report: Report) -> ET.Element:
    case = _case("recording", "complete")
    if report.missing:
        _say(case, "error", "inconclusive", [f"missing: {m}" for m in report.missing])
    return case


def _sentence(sighting: Sighting) -> str:
    place = Problem(sighting.file, sighting.line, str(sighting.finding))
    return str(place)


# SARIF.


def as_sarif(report: Report) -> str:
    """Return the report in the static analysis results interchange format, 2.1.0."""
    run: dict[str, Any] = {
        "tool": {
            "driver": {
                "name": "tenure",
                "version": version("tenure"),
                "rules": [_rule(anomaly) for anomaly in CATALOGUE.values()],
            }
        },
        "columnKind": "unicodeCodePoints",
        "invocations": [
            {
                "executionSuccessful": not report.refused,
                "toolExecutionNotifications": list(_notices(report)),
            }
        ],
        "results": [_result(sighting) for sighting in report.sightings],
        "properties": {"verdict": report.verdict.value},
    }
    document = {"$schema": _SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(document, indent=2) + "\n"


_RULE_INDEX: Final = {slug: index for index, slug in enumerate(CATALOGUE)}
_LEVEL: Final = {
    Severity.VIOLATION: "error",
    Severity.WARNING: "warning",
    Severity.AVERTED: "note",
    Severity.INFORMATION: "note",
}


def _rule(anomaly: Anomaly) -> dict[str, Any]:
    return {
        "id": anomaly.slug,
        "shortDescription": {"text": anomaly.title},
        "fullDescription": {"text": f"{anomaly.rule}. Implies: {anomaly.implies}."},
        "defaultConfiguration": {"level": _LEVEL[anomaly.severity]},
    }


def _result(sighting: Sighting) -> dict[str, Any]:
    finding = sighting.finding
    level = _LEVEL[finding.severity]
    if level == "error" and finding.certainty is Certainty.POSSIBLE:
        level = "warning"
    instance = f"{finding.workflow}/{finding.instance}"
    return {
        "ruleId": finding.anomaly,
        "ruleIndex": _RULE_INDEX[finding.anomaly],
        "level": level,
        "message": {"text": plain(str(finding))},
        "locations": [
            {
                **_location(sighting.file, sighting.line),
                "logicalLocations": [
                    {"fullyQualifiedName": plain(instance), "kind": "object"}
                ],
            }
        ],
        "properties": finding.as_dict(),
    }


def _notices(report: Report) -> Iterator[dict[str, Any]]:
    for file in report.files:
        for problem in file.problems:
            yield {
                "level": "error",
                "message": {"text": plain(problem.reason)},
                "locations": [_location(problem.file, problem.line)],
            }
    for missing in report.missing[:_MOST_NOTICES]:
        yield {"level": "warning", "message": {"text": plain(f"missing: {missing}")}}


def _location(file: str, line: int) -> dict[str, Any]:
    found: dict[str, Any] = {"artifactLocation": {"uri": _uri(file)}}
    if line:
        found["region"] = {"startLine": line}
    return {"physicalLocation": found}


def _uri(file: str) -> str:
    path = Path(file)
    if path.is_absolute():
        return path.as_uri()
    # A colon in the first part would read as a scheme.
    return quote(path.as_posix().encode("utf-8", "surrogateescape"), safe="/")
