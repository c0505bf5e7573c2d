"""Requests of executors to the outside, and answers to them. Pure."""

import importlib.util
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

from tenure.runtime._checkpoint import PendingRequest
from tenure.runtime._dispatch import Dispatch
from tenure.runtime._isolation import isolate
from tenure.runtime._types import accepts, alternatives, describe
from tenure.runtime.errors import ResponseTypeError, UnknownRequestError

_BUILTINS: Final[Mapping[str, Any]] = {
    one.__name__: one for one in (bool, int, float, str, bytes, list, dict, tuple, set)
}


class Answer(NamedTuple):
    """The answer to a request, on its way to the executor that asked.

    Attributes:
        request: What was asked.
        response: What was answered.
    """

    request: PendingRequest
    response: Any


def find_requests(
    ids: Iterable[str], pending: Mapping[str, PendingRequest]
) -> list[PendingRequest]:
    """Return the requests of those ids.

    Args:
        ids: What is asked for.
        pending: Requests that wait, by id.

    Raises:
        UnknownRequestError: Some do not wait: they never did, or were answered.
    """
    wanted = list(ids)
    unknown = tuple(one for one in wanted if one not in pending)
    if unknown:
        raise UnknownRequestError(unknown, tuple(pending))
    return [pending[one] for one in wanted]


def answers_to(
    responses: Mapping[str, Any], pending: Mapping[str, PendingRequest]
) -> list[Answer]:
    """Match responses with requests, each of the type that was asked for.

    Args:
        responses: Answers by request id.
        pending: Requests that wait, by id.

    Raises:
        UnknownRequestError: A request does not wait for an answer.
        ResponseTypeError: An answer is of another type and cannot be converted.
    """
    requests = find_requests(responses, pending)
    return [
        Answer(
            one, isolate(coerced(responses[one.request_id], one), f"answer to {one}")
        )
        for one in requests
    ]


def coerced(response: Any, request: PendingRequest) -> Any:  # noqa: ANN401
    """Return `response` as the type that was asked for.

    Plain data, such as parsed JSON, is converted to numbers, dates, enumerations,
    dataclasses and the like, if msgspec is installed, and to pydantic models.

    Raises:
        ResponseTypeError: It is of another type and cannot be converted; or the type is
            not known here.
    """
    wanted = request.response_type
    if type(wanted) is str:
        raise _refused(response, request)
    if accepts(wanted, response):
        return response
    try:
        return _converted(response, wanted)
    except Exception as exc:
        # Validators of users may raise anything, and libraries have their own errors.
        raise _refused(response, request) from exc


def _converted(response: Any, wanted: Any) -> Any:  # noqa: ANN401 - any types
    if hasattr(wanted, "model_validate"):
        return wanted.model_validate(response)
    if importlib.util.find_spec("msgspec") is None:
        raise TypeError("plain data is converted if msgspec is installed")
    import msgspec

    return msgspec.convert(response, wanted, strict=False)


def restored(request: PendingRequest, dispatch: Dispatch) -> PendingRequest:
    """Return a request of a checkpoint with the type that its name stands for.

    Args:
        request: Its `response_type` may be the name of a type. It stays that if nothing
            here has it, as in a graph that has changed: then it cannot be answered.
        dispatch: The handlers of the executor that asked.
    """
    name = request.response_type
    if type(name) is not str:
        return request
    found = type_named(name, dispatch.response_types(request.data))
    return request if found is None else replace(request, response_type=found)


def shown(request: PendingRequest) -> PendingRequest:
    """Return a copy for somebody outside: changing its data changes nothing else."""
    what = f"request of {request.executor_id!r}"
    return replace(request, data=isolate(request.data, what))


def type_named(name: str, annotations: Iterable[Any]) -> Any:  # noqa: ANN401
    """Return the type that `describe` gives that name; `None` if it is not known.

    Args:
        name: What `describe` returned.
        annotations: What is looked through, besides built-in types.
    """
    for annotation in annotations:
        for candidate in (annotation, *alternatives(annotation)):
            if describe(candidate) == name:
                return candidate
    return _BUILTINS.get(name)


def _refused(response: object, request: PendingRequest) -> ResponseTypeError:
    wanted = request.response_type
    return ResponseTypeError(
        request.request_id,
        wanted if type(wanted) is str else describe(wanted),
        type(response).__qualname__,
    )
