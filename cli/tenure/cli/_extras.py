"""Whether what a command needs is installed."""

from importlib.util import find_spec

from tenure.cli._status import CommandError


def require(extra: str, *modules: str) -> None:
    """Say which extra to install where one of `modules` is missing.

    Args:
        extra: The extra of tenure that brings them.
        modules: Top-level modules.

    Raises:
        CommandError: One is missing.
    """
    missing = [module for module in modules if not is_installed(module)]
    if missing:
        raise CommandError(
            f"{' and '.join(missing)} not installed; run pip install 'tenure[{extra}]'"
        )


def is_installed(module: str) -> bool:
    """Say whether `module` could be imported, without importing it."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the parent of a dotted name is missing
        return False
