"""Requests of executors to the outside, and answers to them. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

from tenure.runtime._checkpoint import PendingRequest
from tenure.runtime._conversion import converted
from tenure.runtime._dispatch import Dispatch
from tenure.runtime._isolation import explain, isolate
from tenure.runtime._types import accepts, alternatives, describe
from tenure.runtime.errors import (
    CheckpointError,
    ResponseTypeError,
    UnknownRequestError,
)

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
    responses: Mapping[str, Any],
    pending: Mapping[str, PendingRequest],
    askers: Mapping[str, Dispatch],
) -> list[Answer]:
    """Match responses with requests, each of the type that was asked for.

    Args:
        responses: Answers by request id.
        pending: Requests that wait, by id.
        askers: What finds the handlers of the graph's executors.

    Raises:
        UnknownRequestError: A request does not wait for an answer.
        ResponseTypeError: An answer is of another type and cannot be converted, or of
            one that the executor which asked does not take.
        CheckpointError: That executor is not there any more, because the graph has
            changed.
    """
    return [
        _answer(responses[one.request_id], one, askers.get(one.executor_id))
        for one in find_requests(responses, pending)
    ]


def _answer(response: Any, request: PendingRequest, asker: Dispatch | None) -> Answer:  # noqa: ANN401
    if asker is None:
        raise _orphaned(request, "is not in this graph")
    responders = asker.responders_to(request.data)
    if not responders:
        raise _orphaned(request, "takes no answer to it in this graph")
    what = f"answer to request {request.request_id}"
    response = isolate(coerced(response, request), what)
    if asker.find_responder(request.data, response) is None:
        kind = type(request.data).__qualname__
        takes = " or ".join(describe(one.response) for one in responders)
        reason = f"{request.executor_id!r} takes {takes} as answer to {kind}"
        raise _refused(response, request, reason)
    return Answer(request, response)


def coerced(response: Any, request: PendingRequest) -> Any:  # noqa: ANN401
    """Return `response` as the type that was asked for, as `converted` makes it.

    Raises:
        ResponseTypeError: It is of another type and cannot be converted; or the type is
            not known here.
    """
    wanted = request.response_type
    if type(wanted) is str:
        raise _refused(response, request, "no handler here names that type any more")
    if accepts(wanted, response):
        return response
    try:
        return converted(response, wanted)
    except Exception as exc:
        # Constructors and validators of users may raise anything.
        raise _refused(response, request, explain(exc)) from exc


def awaited(requests: Mapping[str, PendingRequest]) -> frozenset[str]:
    """Return the runs whose messages have led to requests that wait."""
    return frozenset(one.begun_by for one in requests.values())


def revived(request: PendingRequest, askers: Mapping[str, Dispatch]) -> PendingRequest:
    """Return a request as it was asked, if whoever asked is still there.

    Args:
        request: The request as a store had it.
        askers: What finds the handlers of the graph's executors.
    """
    asker = askers.get(request.executor_id)
    return request if asker is None else restored(request, asker)


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


def name_of(response_type: Any) -> str:  # noqa: ANN401
    """Return what `restored` finds the type by; a name that it did not find stays."""
    return response_type if type(response_type) is str else describe(response_type)


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


def _refused(
    response: object, request: PendingRequest, reason: str
) -> ResponseTypeError:
    return ResponseTypeError(
        request.request_id,
        name_of(request.response_type),
        type(response).__qualname__,
        " ".join(reason.split()),
    )


def _orphaned(request: PendingRequest, reason: str) -> CheckpointError:
    one = request.request_id
    return CheckpointError(
        f"request {one} cannot be answered",
        f"{request.executor_id!r}, which asked, {reason}. Answer it with the graph "
        f"that it was asked in, or withdraw it: cancel_requests([{one!r}])",
    )
