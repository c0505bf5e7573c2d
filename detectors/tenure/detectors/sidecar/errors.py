"""Errors of the sidecar.

DetectorError
├─ SettingsError (ValueError)      a setting cannot be used
└─ ListenError (OSError)           an address cannot be listened on
"""

from tenure.detectors.errors import DetectorError


class SettingsError(DetectorError, ValueError):
    """A setting cannot be used; nothing has been started.

    Args:
        setting: Its name.
        problem: What is wrong with it, as a clause.
    """

    def __init__(self, setting: str, problem: str) -> None:
        super().__init__(setting, problem)
        self.setting = setting
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.setting} cannot be used: {self.problem}"


class ListenError(DetectorError, OSError):
    """An address cannot be listened on, such as one that another process has.

    Args:
        address: Host and port.
        problem: What the system says.
    """

    def __init__(self, address: str, problem: str) -> None:
        super().__init__(address, problem)
        self.address = address
        self.problem = problem

    def __str__(self) -> str:
        return f"cannot listen on {self.address}: {self.problem}"
