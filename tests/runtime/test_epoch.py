"""Identities: unique here, in threads, and in a forked child."""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from tenure.runtime._epoch import new_instance_suffix, new_run_id


def test_run_ids_never_repeat_in_threads() -> None:
    with ThreadPoolExecutor(8) as pool:
        ids = list(pool.map(lambda _: new_run_id(), range(2000)))
    assert len(set(ids)) == len(ids)


def test_instances_of_workflows_with_one_name_are_told_apart() -> None:
    suffixes = [new_instance_suffix() for _ in range(100)]
    assert len(set(suffixes)) == 100


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_does_not_go_on_with_its_parents_ids() -> None:
    before = new_run_id()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:  # no clean-up of the parent's tests may run in the child
        os.write(write, new_run_id().encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        told = pipe.read()
    assert os.waitpid(child, 0)[1] == 0
    # Both continue the same count: without a new prefix these would be one id.
    assert told
    assert told != new_run_id()
    assert told.split("-")[0] != before.split("-")[0]
