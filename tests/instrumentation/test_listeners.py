"""Who hears operations in this process."""

from tenure.instrumentation import Recorder, add_listener, remove_listener
from tenure.instrumentation.listeners import anyone_listens
from tenure.instrumentation.operations import Owner


def claim(epoch: int = 1) -> None:
    """Tell one operation."""
    run = Recorder("engine/1.2").instance("press", "default").run(f"r{epoch}")
    run.claim(Owner(epoch, f"r{epoch}"))


def test_a_listener_that_raises_is_logged_and_removed(listen, heard, caplog):
    calls: list[object] = []

    def raising(operation: object) -> None:
        calls.append(operation)
        raise RuntimeError

    listen(raising)
    claim(1)
    claim(2)
    assert len(calls) == 1
    assert len(heard) == 2
    (record,) = caplog.records
    assert "RuntimeError" in record.getMessage()


def test_listeners_behind_one_that_raises_still_hear(listen):
    def raising(_operation: object) -> None:
        raise RuntimeError

    behind: list[object] = []
    listen(raising)
    listen(behind.append)
    claim()
    assert len(behind) == 1


def test_a_listener_added_twice_hears_once(listen):
    heard: list[object] = []
    listen(heard.append)
    listen(heard.append)
    claim()
    assert len(heard) == 1


def test_a_removed_listener_hears_nothing_more():
    heard: list[object] = []
    add_listener(heard.append)
    assert anyone_listens()
    remove_listener(heard.append)
    remove_listener(heard.append)
    claim()
    assert heard == []
    assert not anyone_listens()


def test_a_listener_may_leave_and_others_may_come_while_it_is_told(listen):
    newcomer: list[object] = []
    first: list[object] = []

    def leaving(operation: object) -> None:
        first.append(operation)
        remove_listener(leaving)
        listen(newcomer.append)

    listen(leaving)
    claim(1)
    assert (len(first), len(newcomer)) == (1, 0)
    claim(2)
    assert (len(first), len(newcomer)) == (1, 1)
