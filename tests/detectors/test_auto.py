"""Zero code: `opentelemetry-instrument python app.py`, and nothing else.

Each program runs in a process of its own, as OpenTelemetry's providers are global.
"""

import json
import os
import subprocess
import sys
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import tenure.detectors.auto
from tenure.detectors import Channel
from tenure.detectors.auto import announce_from_environment, detect_from_environment
from tenure.instrumentation import TelemetryConfigError
from tenure.instrumentation.agent_framework import AgentFrameworkInstrumentor

COMMAND = Path(sys.executable).parent / "opentelemetry-instrument"
PROGRAMS = Path(__file__).parent / "programs"

RACE = (PROGRAMS / "told.py").read_text("utf-8")
AGENTS = (PROGRAMS / "agents.py").read_text("utf-8")

RUNTIME = """
import asyncio
from tenure.runtime import Executor, WorkflowBuilder, WorkflowContext, handler

class Writer(Executor):
    @handler
    async def write(self, message: str, context: WorkflowContext[None, str]) -> None:
        context.set_state("draft", message)
        await context.yield_output(message)

workflow = WorkflowBuilder("press", start=Writer(id="w")).build()
print(asyncio.run(workflow.run("a")).outputs)
"""

VERDICT = """
from tenure.detectors.auto import detector
print("verdict", detector() and detector().verdict)
"""

SILENT = {f"OTEL_{signal}_EXPORTER": "none" for signal in ("TRACES", "METRICS", "LOGS")}
TO_THE_CONSOLE = {**SILENT, "OTEL_LOGS_EXPORTER": "console"}
NO_SDK = {"OTEL_PYTHON_CONFIGURATOR": "nobody"}


def run(
    program: str, command: tuple[object, ...] = (COMMAND,), **variables: str
) -> subprocess.CompletedProcess[str]:
    others = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OTEL", "TENURE"))
    }
    # What OpenTelemetry's own packages warn of is their affair.
    strict = ["-W", "error::UserWarning:tenure"]
    return subprocess.run(
        [*command, sys.executable, *strict, "-c", program],
        env={**others, **variables},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )


def records(printed: str) -> list[dict]:
    """Return the log records among what was printed to the console."""
    found, decoder = [], json.JSONDecoder()
    while (start := printed.find("{\n")) >= 0:
        record, end = decoder.raw_decode(printed[start:])
        found.append(record)
        printed = printed[start + end :]
    return found


def found_in(done: subprocess.CompletedProcess[str]) -> list[str]:
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return [
        record["attributes"]["tenure.anomaly"]
        for record in records(done.stdout)
        if record.get("event_name") == "tenure.violation"
    ]


@pytest.mark.parametrize(
    "sampling",
    [
        {},
        {"OTEL_TRACES_SAMPLER": "always_off"},
        {
            "OTEL_TRACES_SAMPLER": "tenure_record_ownership",
            "OTEL_TRACES_SAMPLER_ARG": "always_off",
        },
        {
            "OTEL_TRACES_SAMPLER": "tenure_record_ownership",
            "OTEL_TRACES_SAMPLER_ARG": "parentbased_traceidratio=0.01",
        },
    ],
)
def test_a_race_is_announced_whatever_is_sampled(sampling):
    done = run(RACE + VERDICT, **TO_THE_CONSOLE, **sampling)

    assert found_in(done) == ["stale-discard"]
    assert done.stdout.startswith("verdict violated\n")
    assert done.stderr == ""


def test_an_engine_that_people_already_run_is_watched_without_a_line_of_code():
    done = run(AGENTS, **TO_THE_CONSOLE, OTEL_TRACES_SAMPLER="always_off")

    assert {"stale-discard", "leaked-write"} <= set(found_in(done))


def test_a_program_without_races_is_called_clean():
    done = run(RUNTIME + VERDICT, **TO_THE_CONSOLE)

    assert found_in(done) == []
    assert done.stdout == "('a',)\nverdict clean\n"


def test_the_sampler_that_the_environment_names_shows_processors_what_is_sampled_out():
    program = """
from opentelemetry import trace
from opentelemetry.sdk.trace import SpanProcessor

class Seen(SpanProcessor):
    def on_end(self, span):
        print(span.name, span.context.trace_flags.sampled)

trace.get_tracer_provider().add_span_processor(Seen())
"""
    done = run(
        program + RACE,
        **SILENT,
        OTEL_TRACES_SAMPLER="tenure_record_ownership",
        OTEL_TRACES_SAMPLER_ARG="always_off",
    )

    assert done.stderr == ""
    assert set(done.stdout.splitlines()) == {
        "own press False",
        "discard False",
        "run press False",
    }


def test_where_no_sdk_takes_findings_they_are_in_pythons_own_log():
    done = run(RACE + VERDICT, **NO_SDK)

    assert done.returncode == 0
    assert done.stdout == "verdict violated\n"
    assert "stale discard (violation, certain) in press/i (engine/1.2): let" in (
        done.stderr
    )


def test_findings_go_where_the_environment_says():
    done = run(RACE, **TO_THE_CONSOLE, TENURE_ANNOUNCE="span, warning")

    assert found_in(done) == []
    assert "RaceWarning: stale discard" in done.stderr

    done = run(RACE + VERDICT, **TO_THE_CONSOLE, TENURE_ANNOUNCE="none")

    assert (done.stdout, done.stderr) == ("verdict violated\n", "")


def test_the_detector_can_be_turned_off():
    done = run(RACE + VERDICT, **TO_THE_CONSOLE, TENURE_DETECT="off")

    assert (done.stdout, done.stderr) == ("verdict None\n", "")


@pytest.mark.parametrize(
    ("variable", "value", "remedy"),
    [
        ("TENURE_DETECT", "perhaps", "use on or off"),
        (
            "TENURE_ANNOUNCE",
            "log,pigeon",
            "use some of log, metric, span, warning with commas between them",
        ),
        ("TENURE_DETAIL", "all", "use one of ownership, supersteps, executors"),
        ("TENURE_KEYS", "secret", "use one of plain, hashed, off"),
    ],
)
def test_a_value_that_cannot_be_used_is_an_error_in_the_log_and_ends_nothing(
    variable, value, remedy
):
    done = run(RACE + RUNTIME + VERDICT, **TO_THE_CONSOLE, **{variable: value})

    assert found_in(done) == ["stale-discard"]
    assert done.stdout.startswith("('a',)\nverdict violated\n")
    assert done.stderr == (
        f"{variable}={value!r} cannot be used: {done.stderr.partition(': ')[2]}"
    )
    assert remedy in done.stderr
    assert "Until then, the default holds" in done.stderr


def test_every_variable_can_be_wrong_at_once():
    done = run(
        AGENTS + RACE,
        **TO_THE_CONSOLE,
        TENURE_DETECT="x",
        TENURE_ANNOUNCE="x",
        TENURE_DETAIL="x",
        TENURE_KEYS="x",
        OTEL_TRACES_SAMPLER="tenure_record_ownership",
        OTEL_TRACES_SAMPLER_ARG="x",
    )

    assert {"stale-discard", "leaked-write"} <= set(found_in(done))
    assert len(done.stderr.splitlines()) == 5


def test_without_the_command_nothing_is_started():
    done = run(RACE + VERDICT, **TO_THE_CONSOLE, command=())

    assert (done.stdout, done.stderr) == ("verdict None\n", "")


def test_an_engine_that_is_not_installed_or_not_known_is_left_alone():
    # OpenTelemetry reads this extra, and would stop at an instrumentor that raises.
    asked = [
        requirement
        for requirement in map(Requirement, requires("tenure") or ())
        if requirement.marker and requirement.marker.evaluate({"extra": "instruments"})
    ]
    (known,) = AgentFrameworkInstrumentor().instrumentation_dependencies()

    assert [(one.name, one.specifier) for one in asked] == [
        (Requirement(known).name, Requirement(known).specifier)
    ]


@pytest.fixture
def nobody_started(monkeypatch):
    """Whatever a test starts is stopped, and forgotten, at its end."""
    monkeypatch.setattr(tenure.detectors.auto, "_detector", None)
    yield
    started = tenure.detectors.auto.detector()
    if started is not None:
        started.close()


@pytest.mark.usefixtures("nobody_started")
def test_starting_twice_starts_one_detector():
    tenure.detectors.auto.start()
    first = tenure.detectors.auto.detector()
    tenure.detectors.auto.start()

    assert first is not None
    assert tenure.detectors.auto.detector() is first


@pytest.mark.parametrize(
    ("value", "channels"),
    [
        ("", {"log", "metric", "span"}),
        ("none", set()),
        (" None ", set()),
        ("LOG", {"log"}),
        ("warning,log, log", {"warning", "log"}),
    ],
)
def test_the_ways_of_announcing_are_names_with_commas_between(
    value, channels, monkeypatch
):
    monkeypatch.setenv("TENURE_ANNOUNCE", value)
    assert announce_from_environment() == {Channel(name) for name in channels}


@pytest.mark.parametrize("value", ["none,log", "log,", "log span"])
def test_a_list_of_ways_that_is_half_right_is_refused(value, monkeypatch):
    monkeypatch.setenv("TENURE_ANNOUNCE", value)
    with pytest.raises(TelemetryConfigError, match="TENURE_ANNOUNCE="):
        announce_from_environment()


@pytest.mark.parametrize(
    ("value", "wanted"), [("", True), (" ON ", True), ("off", False)]
)
def test_the_switch_is_on_or_off(value, wanted, monkeypatch):
    monkeypatch.setenv("TENURE_DETECT", value)
    assert detect_from_environment() is wanted
