"""Who counts: processes, forks and successors."""

import os
import socket
import subprocess
import sys

import pytest

from tenure.instrumentation import process
from tenure.instrumentation.process import process_id


def test_a_process_keeps_its_identity():
    assert process_id() == process_id()
    assert str(os.getpid()) in process_id()


def test_another_process_has_another_identity():
    program = "from tenure.instrumentation.process import process_id as p; print(p())"
    other = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert other.stdout.strip() not in {"", process_id()}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_fork_has_an_identity_of_its_own():
    before = process_id()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writer, process_id().encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        identity = answer.read()
    os.waitpid(child, 0)
    assert f"-{child}-" in identity
    assert identity.rpartition("-")[2] != before.rpartition("-")[2]
    assert process_id() == before


def test_a_host_without_a_name_still_has_processes(monkeypatch):
    def refuse() -> str:
        raise OSError

    monkeypatch.setattr(socket, "gethostname", refuse)
    monkeypatch.setattr(process, "_identity", "")
    assert process_id().startswith("unknown-")
