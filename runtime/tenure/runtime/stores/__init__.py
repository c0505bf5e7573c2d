"""Where instances are kept."""

from typing import TYPE_CHECKING, Any

from tenure.runtime.stores.memory import MemoryStore

if TYPE_CHECKING:
    from tenure.runtime.stores.sqlite import SqliteStore

__all__ = ["MemoryStore", "SqliteStore"]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - what a module holds has any type
    if name == "SqliteStore":
        from tenure.runtime.stores.sqlite import SqliteStore

        return SqliteStore
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
