"""Errors of runs; `errors` shows the whole tree."""

from tenure.runtime._error_roots import RunError


class WorkflowBusyError(RunError):
    """Another run owns the instance, and the policy is to refuse.

    This is not `OwnershipLostError`: the run that raises has never started.

    Args:
        workflow: Name of the workflow.
        instance: Key of the instance.
        owner: Identity of the run that owns it.
        epoch: That run's epoch; 0 if it has claimed in this process only, and the
            store has yet to give it one.
    """

    def __init__(self, workflow: str, instance: str, owner: str, epoch: int) -> None:
        super().__init__(workflow, instance, owner, epoch)
        self.workflow = workflow
        self.instance = instance
        self.owner = owner
        self.epoch = epoch

    def __str__(self) -> str:
        owns = f"(epoch {self.epoch}) owns it"
        if not self.epoch:
            owns = "has claimed it in this process, and has no epoch from the store yet"
        return (
            f"workflow {self.workflow!r}, instance {self.instance!r}: run {self.owner} "
            f"{owns}. Await that run, close its stream, or pass "
            f'on_conflict="wait" or on_conflict="supersede"'
        )


class ExecutorError(RunError):
    """An executor raised; `__cause__` is what it raised.

    Args:
        executor: The executor.
        superstep: Number of the superstep, from 1.
        reason: What it raised, as text.
    """

    def __init__(self, executor: str, superstep: int, reason: str) -> None:
        super().__init__(executor, superstep, reason)
        self.executor = executor
        self.superstep = superstep
        self.reason = reason

    def __str__(self) -> str:
        return (
            f"executor {self.executor!r} failed in superstep {self.superstep}: "
            f"{self.reason}"
        )


class ConvergenceError(RunError):
    """Messages were left to deliver after the last superstep that is allowed.

    Args:
        limit: The workflow's `max_supersteps`.
        waiting: Executors that messages wait for.
    """

    def __init__(self, limit: int, waiting: tuple[str, ...]) -> None:
        super().__init__(limit, waiting)
        self.limit = limit
        self.waiting = waiting

    def __str__(self) -> str:
        names = ", ".join(self.waiting)
        return (
            f"no end after {self.limit} supersteps: messages still wait for {names}. "
            f"Give the loop a condition that ends it, or raise max_supersteps"
        )


class DeadlineError(RunError, TimeoutError):
    """The run's deadline has passed; finished supersteps are committed.

    Args:
        deadline: Seconds that the run was given.
        superstep: The superstep that it had come to; 0 if it had not begun.
    """

    def __init__(self, deadline: float, superstep: int) -> None:
        super().__init__(deadline, superstep)
        self.deadline = deadline
        self.superstep = superstep

    def __str__(self) -> str:
        if not self.superstep:
            return (
                f"the deadline of {self.deadline} s passed before the first superstep"
            )
        return (
            f"the deadline of {self.deadline} s passed in superstep {self.superstep}; "
            f"the supersteps before it are committed"
        )


class WriteConflictError(RunError):
    """Two executors staged one key in one superstep, and the key has no reducer.

    Args:
        key: The state key.
        first: The executor that comes first in the graph.
        second: The other one.
    """

    def __init__(self, key: str, first: str, second: str) -> None:
        super().__init__(key, first, second)
        self.key = key
        self.first = first
        self.second = second

    def __str__(self) -> str:
        return (
            f"executors {self.first!r} and {self.second!r} both staged {self.key!r} in "
            f"one superstep. Give each its own key, or declare how to join them: "
            f"StateKey({self.key!r}, reduce=append)"
        )


class ReducerError(RunError):
    """The reducer of a state key cannot join what an executor staged: see `__cause__`.

    Args:
        key: The state key.
        executor: The executor that staged it.
        reason: What the reducer raised, as text.
    """

    def __init__(self, key: str, executor: str, reason: str) -> None:
        super().__init__(key, executor, reason)
        self.key = key
        self.executor = executor
        self.reason = reason

    def __str__(self) -> str:
        return (
            f"state key {self.key!r}: its reducer cannot join what executor "
            f"{self.executor!r} staged ({self.reason}). Stage what it can join, or "
            f"give the key another one"
        )


class MessageTypeError(RunError, TypeError):
    """No handler takes a message.

    Args:
        sender: Who sent it; empty for the input of a run.
        message_type: Type of the message.
        takers: Executors that it could go to, each with what it takes.
    """

    def __init__(self, sender: str, message_type: str, takers: tuple[str, ...]) -> None:
        super().__init__(sender, message_type, takers)
        self.sender = sender
        self.message_type = message_type
        self.takers = takers

    def __str__(self) -> str:
        who = f"executor {self.sender!r} sent" if self.sender else "the run was given"
        if not self.takers:
            return (
                f"{who} a message of type {self.message_type}, but no edge leaves it. "
                f"Use yield_output, or add an edge"
            )
        takers = "; ".join(self.takers)
        return (
            f"{who} a message of type {self.message_type}, which nobody takes: {takers}"
        )


class UnknownTargetError(RunError, LookupError):
    """No edge leads from the sender to the executor that it named.

    Args:
        sender: Who sent the message, or whose edge selected.
        target: The executor that was named.
        targets: The executors that edges lead to.
    """

    def __init__(self, sender: str, target: str, targets: tuple[str, ...]) -> None:
        super().__init__(sender, target, targets)
        self.sender = sender
        self.target = target
        self.targets = targets

    def __str__(self) -> str:
        known = ", ".join(self.targets) or "no executor"
        return (
            f"no edge leads from {self.sender!r} to {self.target!r}; edges lead to "
            f"{known}"
        )


class IsolationError(RunError, TypeError):
    """A value cannot be copied, so runs and executors would share it.

    Args:
        what: What the value is for, such as `state key 'cart'`.
        value_type: Its type.
        reason: Why it cannot be copied.
    """

    def __init__(self, what: str, value_type: str, reason: str) -> None:
        super().__init__(what, value_type, reason)
        self.what = what
        self.value_type = value_type
        self.reason = reason

    def __str__(self) -> str:
        return (
            f"{self.what}: a value of type {self.value_type} cannot be isolated "
            f"({self.reason}). Use plain data, or give the type a __deepcopy__"
        )


class UnknownRequestError(RunError, LookupError):
    """No such request waits for an answer: it never did, or it was answered.

    Args:
        requests: Ids that were asked for.
        pending: Ids of the requests that wait.
    """

    def __init__(self, requests: tuple[str, ...], pending: tuple[str, ...]) -> None:
        super().__init__(requests, pending)
        self.requests = requests
        self.pending = pending

    def __str__(self) -> str:
        asked = ", ".join(self.requests)
        waiting = ", ".join(self.pending) or "none"
        return (
            f"no request {asked} waits for an answer (it was answered, cancelled, or "
            f"never made); waiting are {waiting}"
        )


class ResponseTypeError(RunError, TypeError):
    """An answer is not of the type that was asked for, and cannot be converted.

    Args:
        request_id: The request.
        expected: The type that was asked for.
        found: Type of the answer.
        reason: Why not, if that is known.
    """

    def __init__(
        self, request_id: str, expected: str, found: str, reason: str = ""
    ) -> None:
        super().__init__(request_id, expected, found, reason)
        self.request_id = request_id
        self.expected = expected
        self.found = found
        self.reason = reason

    def __str__(self) -> str:
        reason = f": {self.reason}" if self.reason else ""
        return (
            f"request {self.request_id} asks for {self.expected}; an answer of type "
            f"{self.found} cannot be converted to it{reason}"
        )


class StateTypeError(RunError, TypeError):
    """A checkpoint cannot hold values of this type.

    Args:
        what: What the value is for, such as `state key 'cart'`.
        value_type: The type that is not registered, or what it is besides its type that
            cannot be held.
        remedy: What to do, if it is not to register the type.
    """

    def __init__(self, what: str, value_type: str, remedy: str = "") -> None:
        super().__init__(what, value_type, remedy)
        self.what = what
        self.value_type = value_type
        self.remedy = remedy

    def __str__(self) -> str:
        problem = f"{self.what}: checkpoints cannot hold a value of type"
        remedy = self.remedy
        if not remedy and " " not in self.value_type:
            kind = self.value_type
            remedy = f"Use plain data, or call register_state_type({kind})"
        return f"{problem} {self.value_type}" + (f". {remedy}" if remedy else "")


class RunNotFoundError(RunError, LookupError):
    """No run of that id can be attached to.

    Args:
        run_id: What was asked for.
    """

    def __init__(self, run_id: str) -> None:
        super().__init__(run_id)
        self.run_id = run_id

    def __str__(self) -> str:
        return (
            f"there is no detached run {self.run_id}: it was not started with "
            f"workflow.start, or it ended long ago"
        )


class EventsMissedError(RunError, LookupError):
    """The next event for a reader is not kept any more.

    Args:
        run_id: The run.
        after: Number of the last event that the reader has had.
        first: Number of the oldest event that is kept.
    """

    def __init__(self, run_id: str, after: int, first: int) -> None:
        super().__init__(run_id, after, first)
        self.run_id = run_id
        self.after = after
        self.first = first

    def __str__(self) -> str:
        return (
            f"run {self.run_id}: events {self.after + 1} to {self.first - 1} are not "
            f"kept any more. Attach after={self.first - 1}, or start the run with a "
            f"larger keep_events"
        )


class StreamConsumedError(RunError):
    """A stream that has been read to its end is iterated again.

    Args:
        run_id: The run that the stream reads.
    """

    def __init__(self, run_id: str) -> None:
        super().__init__(run_id)
        self.run_id = run_id

    def __str__(self) -> str:
        return (
            f"the stream of run {self.run_id} has been read to its end. Start another "
            f"run for another stream"
        )


class EventLoopError(RunError):
    """A run cannot go on in this event loop.

    Args:
        run_id: The run.
        problem: What is wrong with its loop.
    """

    def __init__(self, run_id: str, problem: str) -> None:
        super().__init__(run_id, problem)
        self.run_id = run_id
        self.problem = problem

    def __str__(self) -> str:
        return f"run {self.run_id}: {self.problem}. Start and finish a run in one loop"
