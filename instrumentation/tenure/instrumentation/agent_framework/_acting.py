"""On whose behalf does this call act? Bound to what acts, never to who happens to call.

A finalizer runs in a copy of the context of whoever dropped the last reference: another
run, another thread, the garbage collector's victim. So the epoch is bound to

1. the frame of the run's own generator, searched upwards from the call, and only then
2. a context variable that is set around every single step of that generator, so that
   the tasks and threads which are born in a step inherit it, and
3. the context object that the engine handed to an executor, where code has carried it
   to a thread or a task that inherited nothing.
"""

import inspect
from contextvars import ContextVar, Token
from typing import Final, NamedTuple

from tenure.instrumentation.agent_framework._frames import bound
from tenure.instrumentation.agent_framework._tenures import Execution, Instance, Tenure

_NESTED: Final = 16
"""How many instances deep runs may be nested and still be told apart."""


class Acting(NamedTuple):
    """Who acts in one instance.

    Attributes:
        tenure: The run.
        execution: The executor invocation, where one is running.
    """

    tenure: Tenure
    execution: Execution | None


Stack = tuple[Acting, ...]

# Innermost first, at most one entry per instance: a sub-workflow has a state of its
# own, and a chain of runs that start each other must not grow without bound.
_ambient: Final[ContextVar[Stack]] = ContextVar("tenure.agent_framework", default=())


def enter(acting: Acting) -> Token[Stack]:
    """Act for a run in this context until `leave`.

    Args:
        acting: The run, and the executor invocation where there is one.

    Returns:
        What `leave` needs.
    """
    stack = _ambient.get()
    if not stack:
        return _ambient.set((acting,))
    instance = acting.tenure.instance
    if len(stack) == 1 and stack[0].tenure.instance is instance:
        return _ambient.set((acting,))
    others = [one for one in stack if one.tenure.instance is not instance]
    return _ambient.set((acting, *others[:_NESTED]))


def leave(token: Token[Stack]) -> None:
    """Undo `enter`; where the step was closed in another context, do nothing.

    A coroutine that the collector closes ends wherever the collector runs, and what was
    set in its own context is gone with that context.
    """
    try:
        _ambient.reset(token)
    except ValueError:
        return


def nobody() -> bool:
    """Say whether no run at all acts according to the context of this call."""
    return not _ambient.get()


def anybody_fenced() -> bool:
    """Say whether a run acts in this context that should no longer write."""
    for acting in _ambient.get():  # noqa: SIM110 - a generator costs three times as much
        if acting.tenure.fenced:
            return True
    return False


def ambient(instance: Instance) -> Acting | None:
    """Return who acts in `instance` according to the context of this call."""
    for acting in _ambient.get():
        if acting.tenure.instance is instance:
            return acting
    return None


def acting(instance: Instance) -> Acting | None:
    """Return who acts in `instance`: by frame first, then by context.

    Args:
        instance: What is acted on.
    """
    around, only = ambient(instance), instance.only
    if only is not None and (around is None or around.tenure is only):
        return around or Acting(only, None)
    frame = inspect.currentframe()
    while frame is not None:
        entry = bound.get(id(frame))
        if entry is not None and entry[0] is frame.f_code:
            owner = entry[1]
            if isinstance(owner, Tenure) and owner.instance is instance:
                same = around is not None and around.tenure is owner
                return around if same else Acting(owner, None)
        frame = frame.f_back
    return around
