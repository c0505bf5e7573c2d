"""The roots of the runtime's errors; `errors` shows the whole tree."""


class WorkflowError(Exception):
    """The root of all errors of the runtime."""


class RunError(WorkflowError):
    """A run could not start, or failed."""
