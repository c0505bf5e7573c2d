"""Victims, started and told what to do from the tests beside this file."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

VICTIM = Path(__file__).with_name("victim.py")


def start(*arguments: object, **variables: str) -> subprocess.Popen[str]:
    """Start a victim, with only those variables of telemetry that are given."""
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OTEL", "TENURE"))
    }
    return subprocess.Popen(
        [sys.executable, str(VICTIM), *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=None,
        text=True,
        bufsize=1,
        env={**clean, **variables},
    )


def end(process: subprocess.Popen[str]) -> None:
    """Kill a victim, stopped or not."""
    _close(process)
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGCONT)
        process.kill()
    process.wait()


def finish(process: subprocess.Popen[str]) -> None:
    """Let a victim come to its own end: it exports what it has to tell."""
    _close(process)
    assert process.wait(timeout=30) == 0


def _close(process: subprocess.Popen[str]) -> None:
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with contextlib.suppress(BrokenPipeError):
                stream.close()


def ask(process: subprocess.Popen[str], *words: object) -> str:
    """Tell a victim something and return its answer."""
    tell(process, *words)
    assert process.stdout is not None
    return process.stdout.readline().strip()


def tell(process: subprocess.Popen[str], *words: object) -> None:
    """Tell a victim something."""
    assert process.stdin is not None
    process.stdin.write(" ".join(map(str, words)) + "\n")
