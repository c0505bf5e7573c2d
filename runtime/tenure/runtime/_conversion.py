"""Plain data, such as parsed JSON, becomes the type that was asked for."""

import importlib.util
from typing import Any

from tenure.runtime._types import accepts, alternatives, describe


def converted(data: Any, wanted: Any) -> Any:  # noqa: ANN401 - any types
    """Return `data` as the type `wanted`.

    Numbers, dates, enumerations, dataclasses and the like are made by msgspec, if it is
    installed, pydantic models by themselves, also where they are part of another type.
    Of a union that only fields tell apart, that member is taken which alone fits.

    Args:
        data: Plain data.
        wanted: An annotation.

    Raises:
        TypeError: Nothing here makes values of that type.
        ValueError: It cannot be converted, and why.
    """
    if hasattr(wanted, "model_validate"):
        return _model(wanted, data)
    if importlib.util.find_spec("msgspec") is None:
        raise TypeError("plain data is converted if msgspec is installed")
    import msgspec

    try:
        return msgspec.convert(data, wanted, strict=False, dec_hook=_of_another_kind)
    except msgspec.ValidationError as exc:
        raise ValueError(str(exc)) from exc
    except TypeError:
        # msgspec does not choose between types that look alike from outside.
        members = alternatives(wanted)
        if len(members) == 1:
            raise
        return _only_fit(data, members)


def _of_another_kind(wanted: Any, data: Any) -> Any:  # noqa: ANN401 - any types
    """Make what msgspec does not know."""
    if hasattr(wanted, "model_validate"):
        return _model(wanted, data)
    if accepts(wanted, data):
        return data
    raise ValueError(f"{describe(wanted)} is not made of plain data")


def _model(wanted: Any, data: Any) -> Any:  # noqa: ANN401 - any types
    """Have a pydantic model made by its class."""
    try:
        return wanted.model_validate(data)
    except Exception as exc:
        # Validators of users may raise anything.
        errors: Any = getattr(exc, "errors", tuple)()
        problems = [
            f"{'.'.join(map(str, one['loc'])) or 'it'}: {one['msg']}" for one in errors
        ]
        raise ValueError("; ".join(problems) or str(exc)) from exc


def _only_fit(data: Any, members: tuple[Any, ...]) -> Any:  # noqa: ANN401 - any types
    fits: dict[str, Any] = {}
    problems: list[str] = []
    for member in members:
        try:
            fits[describe(member)] = converted(data, member)
        except (TypeError, ValueError) as exc:
            problems.append(f"{describe(member)}: {exc}")
    if not fits:
        raise ValueError("; ".join(problems))
    if len(fits) > 1:
        raise ValueError(f"it fits {' and '.join(fits)} alike")
    return next(iter(fits.values()))
