"""Frozen dataclasses at the price of ordinary objects.

The constructor of a frozen dataclass sets every field through `object.__setattr__`:
1.0 microseconds for a commit, six times what plain assignments cost, and a superstep
tells four operations. A builder assigns to a draft, whose class has the layout of the
made one and is not frozen, and then turns the draft into it. Nobody else ever sees a
draft, so what is made is as frozen as before.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

_P = ParamSpec("_P")
_T = TypeVar("_T")


def builder(operation: Callable[_P, _T]) -> Callable[_P, _T]:
    """Return a faster constructor of `operation`, by keywords only.

    Args:
        operation: A frozen dataclass with slots, such as an operation, which has no
            `__post_init__`. A field whose default is computed has to be given.

    Raises:
        TypeError: `operation` is another kind of class.
    """
    made = cast("type[Any]", operation)
    if not dataclasses.is_dataclass(made) or "__slots__" not in vars(made):
        msg = f"{operation!r} is not a dataclass with slots"
        raise TypeError(msg)
    if hasattr(made, "__post_init__"):
        msg = f"{operation!r} has a __post_init__, which a builder would skip"
        raise TypeError(msg)
    names: dict[str, Any] = {
        "_new": object.__new__,
        "_operation": made,
        "_draft": type(
            made.__name__,
            (made,),
            {
                "__slots__": (),
                # Both, or the interpreter keeps calling the frozen ones.
                "__setattr__": object.__setattr__,
                "__delattr__": object.__delattr__,
            },
        ),
    }
    exec(_source(made, names), names)  # noqa: S102 - of field names, as dataclasses do
    return cast("Callable[_P, _T]", names["build"])


def _source(made: type[Any], names: dict[str, Any]) -> str:
    parameters: list[str] = []
    assignments: list[str] = []
    for field in dataclasses.fields(made):
        if field.default is dataclasses.MISSING:
            parameters.append(field.name)
        else:
            names[f"_default_{field.name}"] = field.default
            parameters.append(f"{field.name}=_default_{field.name}")
        assignments.append(f"    draft.{field.name} = {field.name}\n")
    return (
        f"def build(*, {', '.join(parameters)}):\n"
        "    draft = _new(_draft)\n"
        f"{''.join(assignments)}"
        "    draft.__class__ = _operation\n"
        "    return draft\n"
    )
