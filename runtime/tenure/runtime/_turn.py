"""What one executor gets and brings in one superstep."""

from typing import Any, Final

from tenure.runtime._checkpoint import PendingRequest
from tenure.runtime._dispatch import Dispatch
from tenure.runtime._handlers import Handler, ResponseHandler
from tenure.runtime._ledger import Ledger, Page
from tenure.runtime._mailbox import Delivery, Router, Sent
from tenure.runtime._requests import Answer
from tenure.runtime.errors import (
    MessageTypeError,
)


class Turn:
    """What one executor gets and brings in one superstep.

    Args:
        page: Where it stages; a failed attempt's is replaced.
        deliveries: Its messages, in order.
        dispatch: What finds its handlers.
        router: Where its own messages go.
        head: The checkpoint that the superstep follows, if there is one.
    """

    __slots__ = (
        "at",
        "begun_by",
        "deliveries",
        "dispatch",
        "head",
        "outputs",
        "page",
        "raised",
        "router",
        "sent",
        "settled",
    )

    def __init__(
        self,
        page: Page,
        deliveries: list[Delivery],
        dispatch: Dispatch,
        router: Router,
        head: str | None,
    ) -> None:
        self.page = page
        self.head: Final = head
        # Which of its messages is handled now, from 1.
        self.at = 0
        # The run whose message has led to that one.
        self.begun_by = ""
        self.deliveries: Final = deliveries
        self.dispatch: Final = dispatch
        self.router: Final = router
        # Invariant: each attempt has lists of its own, as it has a page of its own.
        self.sent: list[Sent] = []
        self.outputs: list[Any] = []
        self.raised: list[PendingRequest] = []
        self.settled: Final[list[str]] = []

    def handler_of(self, message: object) -> Handler | ResponseHandler:
        """Return the handler that takes `message`, which may be an answer.

        Raises:
            MessageTypeError: There is none: a factory's executors differ in what they
                take.
        """
        found: Handler | ResponseHandler | None
        if type(message) is Answer:
            data, response = message.request.data, message.response
            found = self.dispatch.find_responder(data, response)
        else:
            found = self.dispatch.find(message)
        if found is not None:
            return found
        takes = f"{self.page.executor!r} takes {self.dispatch.takes()}"
        raise MessageTypeError("", type(message).__qualname__, (takes,))

    def mark(self) -> tuple[Page, int, int, int]:
        """Return what was staged, sent, yielded and asked so far, for `begin_again`."""
        return self.page, len(self.sent), len(self.outputs), len(self.raised)

    def begin_again(self, ledger: Ledger, mark: tuple[Page, int, int, int]) -> None:
        """Let an attempt begin on a page of its own, with what was there before it.

        What a thread or a task that a failed attempt left behind still stages, sends or
        asks reaches nobody: that page is closed, and those lists are nobody's.

        Args:
            ledger: The run's ledger.
            mark: What was there before the first attempt.
        """
        before, sent, outputs, raised = mark
        page = before.branch()
        ledger.replace(self.page, page)
        self.page = page
        self.sent, self.raised = self.sent[:sent], self.raised[:raised]
        self.outputs = self.outputs[:outputs]
