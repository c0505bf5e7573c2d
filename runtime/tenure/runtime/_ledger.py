"""Staged writes: one ledger per epoch, one page per executor. Pure.

No two runs share a ledger, so nothing here has to tell runs apart: a page that is
closed takes no more writes, and a ledger that was swept has nothing to commit.
"""

from collections.abc import Mapping
from typing import Any

from tenure.runtime._epoch import Epoch
from tenure.runtime._isolation import isolate
from tenure.runtime._keys import DELETED, MISSING, PURE, Reducer
from tenure.runtime.errors import WriteConflictError

_NOTHING: Mapping[str, Any] = {}


class Page:
    """What one executor stages in one superstep, over the state it started from.

    Used by one executor, which may be a thread. Closing it is atomic.

    Args:
        executor: The executor.
        base: Committed state as of the start of the superstep.
    """

    __slots__ = ("base", "executor", "open", "reducers", "writes")

    def __init__(self, executor: str, base: Mapping[str, Any]) -> None:
        self.executor = executor
        self.base = base
        self.writes: dict[str, Any] = {}
        self.reducers: dict[str, Reducer] | None = None
        self.open = True

    def stage(self, key: str, value: object, reducer: Reducer | None = None) -> None:
        """Stage `value`; with a reducer, join it to what this executor staged before.

        Args:
            key: The state key.
            value: An isolated value, or `DELETED`.
            reducer: How siblings' writes of the key are joined, if at all.
        """
        if reducer is not None:
            value = self._accumulated(key, value, reducer)
        elif self.reducers is not None:
            self.reducers.pop(key, None)
        self.writes[key] = value

    def _accumulated(self, key: str, value: object, reducer: Reducer) -> object:
        """Join `value` to the executor's own earlier write of `key`.

        A plain write or a deletion replaced the committed value: what is joined to it
        replaces the committed value too.
        """
        if self.reducers is None:
            self.reducers = {}
        before = self.writes.get(key, MISSING)
        if before is MISSING:
            self.reducers[key] = reducer
            return value
        return reducer(None if before is DELETED else before, value)

    def read(self, key: str) -> Any:  # noqa: ANN401 - state holds any value
        """Return the executor's own value, else the committed one, else `MISSING`."""
        staged = self.writes.get(key, MISSING)
        if staged is MISSING:
            return self.base.get(key, MISSING)
        if staged is DELETED:
            return MISSING
        if self.reducers is not None and key in self.reducers:
            reducer = self.reducers[key]
            if reducer not in PURE:
                staged = isolate(staged, f"state key {key!r}")
            return _reduce(reducer, key, self.base.get(key), staged)
        return staged


class Ledger:
    """The staged writes of one run, in the superstep that it is in.

    Not safe to share between threads, except `close`.

    Args:
        epoch: Whose ledger it is.
    """

    __slots__ = ("_pages", "closed", "epoch")

    def __init__(self, epoch: Epoch) -> None:
        self.epoch = epoch
        self.closed = False
        # Invariant: all pages are of the current superstep, in graph order.
        self._pages: list[Page] = []

    def page(self, executor: str, base: Mapping[str, Any]) -> Page:
        """Open a page; call it in graph order.

        Args:
            executor: The executor that will stage.
            base: Committed state as of the start of the superstep.
        """
        page = Page(executor, base)
        if self.closed:
            page.open = False
        self._pages.append(page)
        return page

    def merge(self, committed: Mapping[str, Any]) -> dict[str, Any]:
        """Join all pages in graph order and begin the next superstep.

        Args:
            committed: Committed state, which reducers start from.

        Returns:
            Each key to commit and its value, or `DELETED`.

        Raises:
            WriteConflictError: Two executors staged a key that has no reducer, or not
                the same one. The pages stay, to be discarded.
        """
        pages = self._pages
        if len(pages) == 1:
            merged = _reduced(pages[0], committed)
        else:
            merged = _joined(pages, committed)
        for page in pages:
            page.open = False
        self._pages = []
        return merged

    def staged(self) -> dict[str, int]:
        """Return each staged key and the epoch that staged it."""
        epoch = int(self.epoch)
        return {key: epoch for page in self._pages for key in page.writes}

    def discard(self, epoch: Epoch) -> dict[str, int]:
        """Throw away what is staged, if `epoch` is the ledger's own.

        Args:
            epoch: Whose ledger is meant.

        Returns:
            What was thrown away: each key and the epoch that staged it.
        """
        if epoch != self.epoch:
            return {}
        thrown = self.staged()
        for page in self._pages:
            page.open = False
        self._pages = []
        return thrown

    def close(self) -> dict[str, int]:
        """Throw away what is staged and take no more, for ever."""
        self.closed = True
        return self.discard(self.epoch)


def _reduced(page: Page, committed: Mapping[str, Any]) -> dict[str, Any]:
    if page.reducers is None:
        return page.writes
    return {
        key: _reduce(page.reducers[key], key, committed.get(key), value)
        if key in page.reducers
        else value
        for key, value in page.writes.items()
    }


def _joined(pages: list[Page], committed: Mapping[str, Any]) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    stagers: dict[str, Page] = {}
    for page in pages:
        reducers = page.reducers or _NOTHING
        for key, value in page.writes.items():
            first = stagers.setdefault(key, page)
            reducer = reducers.get(key)
            if first is not page and not _joinable(first, reducer, key):
                raise WriteConflictError(key, first.executor, page.executor)
            if reducer is None:
                merged[key] = value
            elif first is page:
                merged[key] = _reduce(reducer, key, committed.get(key), value)
            else:
                merged[key] = reducer(merged[key], value)
    return merged


def _joinable(first: Page, reducer: Reducer | None, key: str) -> bool:
    """Say whether two siblings agree on how to join their writes of `key`."""
    return reducer is not None and (first.reducers or _NOTHING).get(key) == reducer


def _reduce(
    reducer: Reducer,
    key: str,
    committed: Any,  # noqa: ANN401 - state holds any value
    staged: Any,  # noqa: ANN401
) -> Any:  # noqa: ANN401
    """Join a staged value to the committed one, which stays as it is.

    A reducer may work in place, as `operator.iadd` does: it gets a copy of what
    snapshots and a failed superstep's successor still look at.
    """
    if reducer not in PURE:
        committed = isolate(committed, f"state key {key!r}")
    return reducer(committed, staged)
