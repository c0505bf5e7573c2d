"""Whom findings are told, how often, and what happens to those that do not listen."""

import json
import logging
import os
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tenure.detectors import Certainty, Detector, Finding, Severity
from tenure.detectors.sidecar import Settings
from tenure.detectors.sidecar.figures import Figures
from tenure.detectors.sidecar.hooks import (
    MAX_KEYS,
    Debounce,
    HookError,
    HookRunner,
    Program,
    Webhook,
)

from .conftest import PATIENCE, message, stale_discard

KEY = ("stale-discard", "press", "i")


def finding(
    instance: str = "i",
    severity: Severity = Severity.VIOLATION,
    certainty: Certainty = Certainty.CERTAIN,
) -> Finding:
    (found,) = Detector(announce=()).feed(stale_discard(1, instance))
    return replace(found, severity=severity, certainty=certainty)


class Ear:
    """A hook that hears, or fails as often as it is told to."""

    def __init__(self, fails: int = 0) -> None:
        self.name = "ear"
        self.heard: list[dict] = []
        self.fails = fails

    def call(self, document: bytes) -> None:
        if self.fails:
            self.fails -= 1
            raise HookError("deaf")
        self.heard.append(json.loads(document))

    def close(self) -> None:
        pass


def told(hook, *findings: Finding, **settings) -> dict[str, float]:
    """Offer findings to a hook; return how many had which result."""
    figures = Figures()
    runner = HookRunner(hook, Settings(**settings), figures)
    for each in findings:
        runner.offer(each)
    assert runner.finish(PATIENCE) == 0
    return {
        result: count
        for result in ("called", "held_back", "failed", "dropped")
        if (
            count := figures.registry.get_sample_value(
                "tenure_watch_hook_calls_total",
                {"hook": hook.name, "result": result},
            )
        )
    }


class TestDebounce:
    def test_the_first_one_goes_through_and_those_after_it_are_counted(self):
        now = [0.0]
        debounce = Debounce(10.0, lambda: now[0])

        assert debounce.admit(KEY) == 0
        assert debounce.admit(KEY) is None
        now[0] = 9.9
        assert debounce.admit(KEY) is None
        now[0] = 10.0
        assert debounce.admit(KEY) == 2
        assert debounce.admit(KEY) is None

    def test_another_instance_is_another_matter(self):
        debounce = Debounce(10.0, lambda: 0.0)

        assert debounce.admit(KEY) == 0
        assert debounce.admit(("stale-discard", "press", "j")) == 0
        assert debounce.admit(("leaked-write", "press", "i")) == 0

    def test_what_was_forgotten_goes_through_again(self):
        debounce = Debounce(10.0, lambda: 0.0)
        debounce.admit(KEY)
        debounce.forget(KEY)
        debounce.forget(KEY)

        assert debounce.admit(KEY) == 0

    def test_without_quiet_everything_goes_through(self):
        debounce = Debounce(0.0, lambda: 0.0)

        assert [debounce.admit(KEY) for _ in range(3)] == [0, 0, 0]

    def test_it_remembers_no_more_than_it_may(self):
        debounce = Debounce(10.0, lambda: 0.0)
        debounce.admit(KEY)
        for number in range(MAX_KEYS):
            debounce.admit(("stale-discard", "press", str(number)))

        assert debounce.admit(KEY) == 0


class TestRunner:
    def test_a_hook_gets_the_whole_finding(self):
        ear = Ear()

        assert told(ear, finding()) == {"called": 1.0}

        assert ear.heard == [{**finding().as_dict(), "held_back": 0}]

    def test_the_same_again_is_held_back(self):
        ear = Ear()

        counted = told(ear, finding(), finding(), finding(), finding("j"))

        assert counted == {"called": 2.0, "held_back": 2.0}
        assert [each["instance"] for each in ear.heard] == ["i", "j"]

    @pytest.mark.parametrize(
        ("least", "expected"),
        [
            (Severity.VIOLATION, ["violation"]),
            (Severity.WARNING, ["warning", "violation"]),
            (Severity.AVERTED, ["averted", "warning", "violation"]),
            (Severity.INFORMATION, ["information", "averted", "warning", "violation"]),
        ],
    )
    def test_a_hook_is_called_from_its_severity_on(self, least, expected):
        ear = Ear()
        findings = [finding(each.value, each) for each in Severity]

        told(ear, *findings, hook_severity=least)

        assert sorted(each["severity"] for each in ear.heard) == sorted(expected)

    def test_what_is_only_possible_calls_a_hook_if_asked_for(self):
        unproven = finding(certainty=Certainty.POSSIBLE)
        quiet, curious = Ear(), Ear()

        told(quiet, unproven)
        told(curious, unproven, hook_possible=True)

        assert quiet.heard == []
        assert len(curious.heard) == 1

    def test_after_a_call_that_failed_the_next_of_its_kind_tries_again(
        self, caplog, monkeypatch
    ):
        ear, failed = Ear(fails=1), threading.Event()
        runner = HookRunner(ear, Settings(), Figures())
        handler = logging.Handler()
        monkeypatch.setattr(handler, "emit", lambda _: failed.set())
        logger = logging.getLogger(HookRunner.__module__)
        logger.addHandler(handler)

        runner.offer(finding())
        assert failed.wait(PATIENCE)
        runner.offer(finding())
        logger.removeHandler(handler)

        assert runner.finish(PATIENCE) == 0
        assert len(ear.heard) == 1
        assert "The ear was not told: deaf" in caplog.text


class TestWebhook:
    def test_it_posts_json_with_the_headers_it_was_given(self, called):
        hook = Webhook(f"{called.url}/hook", {"authorization": "Bearer t"}, PATIENCE)

        assert told(hook, finding()) == {"called": 1.0}

        path, headers, body = called.next()
        assert path == "/hook"
        assert headers["content-type"] == "application/json"
        assert headers["authorization"] == "Bearer t"
        assert json.loads(body)["anomaly"] == "stale-discard"

    def test_an_answer_that_may_pass_is_asked_for_again(self, called):
        called.answers = [503, 429]
        hook = Webhook(called.url, {}, PATIENCE)

        hook.call(b"{}")

        assert [called.next()[2] for _ in range(3)] == [b"{}"] * 3

    def test_an_answer_that_will_not_pass_is_a_failure_at_once(self, called, caplog):
        called.answers = [404]
        hook = Webhook(f"{called.url}/s3cr3t", {}, PATIENCE)

        assert told(hook, finding()) == {"failed": 1.0}

        called.next()
        assert called.requests.empty()
        assert "The webhook was not told: status 404" in caplog.text
        assert "s3cr3t" not in caplog.text

    def test_nobody_there_is_a_failure_and_the_address_stays_secret(
        self, nobody, caplog
    ):
        hook = Webhook(f"http://{nobody}/s3cr3t", {}, PATIENCE)
        hook.close()  # one attempt only

        assert told(hook, finding()) == {"failed": 1.0}

        assert "ConnectError" in caplog.text
        assert "s3cr3t" not in caplog.text


class TestProgram:
    @pytest.fixture
    def script(self, tmp_path: Path):
        def write(source: str) -> tuple[str, ...]:
            path = tmp_path / "hook.py"
            path.write_text(source)
            return (sys.executable, str(path))

        return write

    def test_it_gets_the_finding_on_its_standard_input(self, script, tmp_path):
        kept = tmp_path / "kept.json"
        arguments = script(
            "import pathlib, sys\n"
            "pathlib.Path(sys.argv[1]).write_bytes(sys.stdin.buffer.read())\n"
            "print('noise')\n"
        )

        counted = told(Program((*arguments, str(kept)), PATIENCE), finding())

        assert counted == {"called": 1.0}
        assert json.loads(kept.read_text()) == {**finding().as_dict(), "held_back": 0}

    def test_no_shell_reads_its_arguments(self, script, tmp_path):
        arguments = script(
            "import json, pathlib, sys\n"
            "pathlib.Path(sys.argv[1]).write_text(json.dumps(sys.argv[2:]))\n"
        )
        kept = tmp_path / "kept.json"
        strange = ["$(touch x)", "; touch x", "*", "a b"]

        Program((*arguments, str(kept), *strange), PATIENCE).call(b"{}")

        assert json.loads(kept.read_text()) == strange

    def test_its_output_is_not_the_sidecars(self, script, capfd):
        Program(script("print('noise')"), PATIENCE).call(b"{}")

        assert capfd.readouterr().out == ""

    def test_one_that_does_not_read_is_no_failure(self, script):
        Program(script("pass"), PATIENCE).call(b"x" * (1 << 20))

    def test_a_status_other_than_zero_is_a_failure(self, script):
        with pytest.raises(HookError, match="status 3"):
            Program(script("raise SystemExit(3)"), PATIENCE).call(b"{}")

    def test_a_program_that_is_not_there_is_a_failure(self, tmp_path):
        with pytest.raises(HookError, match="cannot be run: No such file"):
            Program((str(tmp_path / "absent"),), PATIENCE).call(b"{}")

    def test_one_that_takes_too_long_is_killed_with_all_it_started(
        self, script, tmp_path
    ):
        fifo = tmp_path / "alive"
        os.mkfifo(fifo)
        # The grandchild holds the other end open for as long as it lives.
        arguments = script(
            "import subprocess, sys\n"
            "subprocess.run([sys.executable, '-c',"
            ' \'import signal, sys; f = open(sys.argv[1], "w"); f.write("x");'
            " f.flush(); signal.pause()', sys.argv[1]])\n"
        )
        reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        started = time.monotonic()
        try:
            with pytest.raises(HookError, match="took more than 2 s"):
                Program((*arguments, str(fifo)), 2.0).call(b"{}")
            os.set_blocking(reader, True)
            assert os.read(reader, 1) == b"x"
            assert os.read(reader, 1) == b""  # it is gone
        finally:
            os.close(reader)
        assert time.monotonic() - started < PATIENCE


def test_one_violation_told_many_times_is_one_call_of_each_hook(
    watch, called, tmp_path
):
    kept = tmp_path / "kept.jsonl"
    program = (
        sys.executable,
        "-c",
        "import sys; open(sys.argv[1], 'a').write(sys.stdin.read() + '\\n')",
        str(kept),
    )
    watched = watch(webhook=called.url, command=program)

    for seq in range(1, 6):
        watched.post(message(stale_discard(seq)).SerializeToString())
    drained = watched.sidecar.stop()

    assert drained.left == ()
    assert json.loads(called.next()[2])["instance"] == "i"
    assert called.requests.empty()
    assert len(kept.read_text().splitlines()) == 1
    for hook in ("webhook", "exec"):
        assert watched.figure("watch_hook_calls_total", hook=hook, result="called") == 1
        assert (
            watched.figure("watch_hook_calls_total", hook=hook, result="held_back") == 4
        )
