"""Requests of executors to the outside, and answers to them. Pure."""

import importlib.util
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tenure.runtime._checkpoint import PendingRequest
from tenure.runtime._dispatch import Dispatch
from tenure.runtime._types import accepts, describe
from tenure.runtime.errors import ResponseTypeError, UnknownRequestError


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
    return [Answer(one, coerced(responses[one.request_id], one)) for one in requests]


def coerced(response: Any, request: PendingRequest) -> Any:  # noqa: ANN401
    """Return `response` as the type that was asked for.

    Plain data, such as parsed JSON, is converted to numbers, dates, enumerations,
    dataclasses and the like, if msgspec is installed.

    Raises:
        ResponseTypeError: It is of another type and cannot be converted.
    """
    wanted = request.response_type
    if accepts(wanted, response):
        return response
    if importlib.util.find_spec("msgspec") is not None:
        import msgspec

        try:
            return msgspec.convert(response, wanted, strict=False)
        except (msgspec.ValidationError, TypeError) as exc:
            raise _refused(response, request) from exc
    raise _refused(response, request)


def restored(request: PendingRequest, dispatch: Dispatch) -> PendingRequest:
    """Return a request of a checkpoint with the type that its name stands for.

    Args:
        request: Its `response_type` is the name of a type.
        dispatch: The handlers of the executor that asked.
    """
    for candidate in dispatch.response_types(request.data):
        if describe(candidate) == request.response_type:
            return PendingRequest(
                request.request_id, request.executor_id, request.data, candidate
            )
    return request


def _refused(response: object, request: PendingRequest) -> ResponseTypeError:
    return ResponseTypeError(
        request.request_id,
        describe(request.response_type),
        type(response).__qualname__,
    )
