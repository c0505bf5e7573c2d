"""Staged writes: one ledger per epoch, one page per executor. Pure.

No two runs share a ledger, so nothing here has to tell runs apart: a page that is
closed takes no more writes, and a ledger that was swept has nothing to commit.
"""

from collections.abc import Mapping
from typing import Any

from tenure.runtime._epoch import Epoch
from tenure.runtime._isolation import explain, isolate
from tenure.runtime._keys import DELETED, MISSING, PURE, Reducer
from tenure.runtime.errors import ReducerError, WriteConflictError


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
        # Invariant: each key that `reducers` names has a list here: what was staged, in
        # order, to be joined one by one. Others have the value, or `DELETED`.
        self.writes: dict[str, Any] = {}
        self.reducers: dict[str, Reducer] | None = None
        self.open = True

    def stage(self, key: str, value: object, reducer: Reducer | None = None) -> None:
        """Stage `value`; with a reducer, after what this executor staged before.

        Args:
            key: The state key.
            value: An isolated value, or `DELETED`.
            reducer: How writes of the key are joined, if at all.

        Raises:
            ReducerError: The reducer cannot join it to an earlier write.
        """
        if reducer is None:
            if self.reducers is not None:
                self.reducers.pop(key, None)
            self.writes[key] = value
            return
        if self.reducers is None:
            self.reducers = {}
        before = self.writes.get(key, MISSING)
        if before is MISSING:
            self.reducers[key] = reducer
            self.writes[key] = [value]
        elif self.reducers.get(key) == reducer:
            before.append(value)
        else:
            # A write that replaced the committed value: what is joined to it replaces
            # the committed value too.
            so_far = self.read(key)
            self.reducers.pop(key, None)
            self.writes[key] = self._fold(key, reducer, _or_none(so_far), [value])

    def branch(self) -> "Page":
        """Return a page that goes on from what is staged here, and leaves it alone."""
        page = Page(self.executor, self.base)
        page.writes = dict(self.writes)
        if self.reducers is not None:
            page.reducers = dict(self.reducers)
            for key in page.reducers:
                page.writes[key] = list(self.writes[key])
        return page

    def read(self, key: str) -> Any:  # noqa: ANN401 - state holds any value
        """Return the executor's own value, else the committed one, else `MISSING`."""
        staged = self.writes.get(key, MISSING)
        if staged is MISSING:
            return self.base.get(key, MISSING)
        if staged is DELETED:
            return MISSING
        if self.reducers is None or key not in self.reducers:
            return staged
        reducer = self.reducers[key]
        if reducer not in PURE:
            staged = isolate(staged, f"state key {key!r}")
        return self._fold(key, reducer, self.base.get(key), staged)

    def joined(self, key: str, so_far: object) -> Any:  # noqa: ANN401 - any value
        """Return what to commit for `key`, which this page stages.

        Args:
            key: The state key.
            so_far: The committed value, or what earlier siblings made of it.

        Raises:
            ReducerError: The key's reducer cannot join what was staged.
        """
        staged = self.writes[key]
        reducer = None if self.reducers is None else self.reducers.get(key)
        return staged if reducer is None else self._fold(key, reducer, so_far, staged)

    def _fold(
        self, key: str, reducer: Reducer, so_far: object, staged: list[Any]
    ) -> Any:  # noqa: ANN401 - state holds any value
        """Join staged values to the value so far, which stays as it is.

        A reducer may work in place, as `operator.iadd` does: it gets a copy of what
        snapshots and a failed superstep's successor still look at.
        """
        if reducer not in PURE:
            so_far = isolate(so_far, f"state key {key!r}")
        try:
            for value in staged:
                so_far = reducer(so_far, value)
        except Exception as exc:
            raise ReducerError(key, self.executor, explain(exc)) from exc
        return so_far


class Ledger:
    """The staged writes of one run, in the superstep that it is in.

    Not safe to share between threads, except `close`.

    Args:
        epoch: Whose ledger it is.
    """

    __slots__ = ("_pages", "_refused", "closed", "epoch")

    def __init__(self, epoch: Epoch) -> None:
        self.epoch = epoch
        self.closed = False
        # Invariant: all pages are of the current superstep, in graph order.
        self._pages: list[Page] = []
        # Keys that were merged and then not committed: a store has refused them.
        self._refused: tuple[str, ...] = ()

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

    def replace(self, page: Page, successor: Page) -> None:
        """Have `successor` stand for `page`, which takes no more.

        Args:
            page: A page of this superstep.
            successor: A branch of it.
        """
        page.open = False
        self._pages = [successor if one is page else one for one in self._pages]
        # Looked at last, because another thread may close it meanwhile.
        if self.closed:
            successor.open = False

    def merge(self, committed: Mapping[str, Any]) -> dict[str, Any]:
        """Join all pages in graph order and begin the next superstep.

        Args:
            committed: Committed state, which reducers start from.

        Returns:
            Each key to commit and its value, or `DELETED`.

        Raises:
            ReducerError: A reducer cannot join what was staged.
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
        keys = {key: epoch for page in self._pages for key in page.writes}
        return {**keys, **dict.fromkeys(self._refused, epoch)}

    def take_back(self, merged: Mapping[str, Any]) -> None:
        """Count as staged what `merge` returned and nobody has committed.

        Args:
            merged: What `merge` returned; it is there to be discarded.
        """
        self._refused = tuple(merged)

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
        self._pages, self._refused = [], ()
        return thrown

    def close(self) -> dict[str, int]:
        """Throw away what is staged and take no more, for ever."""
        self.closed = True
        return self.discard(self.epoch)


def _reduced(page: Page, committed: Mapping[str, Any]) -> dict[str, Any]:
    if page.reducers is None:
        return page.writes
    return {key: page.joined(key, committed.get(key)) for key in page.writes}


def _joined(pages: list[Page], committed: Mapping[str, Any]) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    stagers: dict[str, Page] = {}
    for page in pages:
        for key in page.writes:
            first = stagers.setdefault(key, page)
            if first is page:
                merged[key] = page.joined(key, committed.get(key))
            elif _agree(first, page, key):
                merged[key] = page.joined(key, merged[key])
            else:
                raise WriteConflictError(key, first.executor, page.executor)
    return merged


def _agree(first: Page, second: Page, key: str) -> bool:
    """Say whether two siblings declare the same way to join their writes of `key`."""
    if first.reducers is None or second.reducers is None or key not in first.reducers:
        return False
    return first.reducers[key] == second.reducers.get(key)


def _or_none(value: object) -> object:
    return None if value is MISSING else value
