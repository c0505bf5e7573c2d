"""Errors of the instrumentation part.

TelemetryConfigError (ValueError)     the telemetry cannot be set up as asked
UnsupportedEngineError                an instrumentor does not know this engine version
"""


class TelemetryConfigError(ValueError):
    """The telemetry cannot be set up as asked.

    Args:
        setting: Name of the setting.
        value: What it was.
        remedy: What to do, as a clause.
    """

    def __init__(self, setting: str, value: str, remedy: str) -> None:
        super().__init__(setting, value, remedy)
        self.setting = setting
        self.value = value
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.setting}={self.value!r} cannot be used: {self.remedy}"


class UnsupportedEngineError(Exception):
    """An instrumentor does not know the installed version of an engine.

    Args:
        engine: Name of the engine's distribution.
        version: The installed version, or `not installed`.
        supported: The versions that the instrumentor knows.
    """

    def __init__(self, engine: str, version: str, supported: tuple[str, ...]) -> None:
        super().__init__(engine, version, supported)
        self.engine = engine
        self.version = version
        self.supported = supported

    def __str__(self) -> str:
        known = ", ".join(self.supported)
        return (
            f"{self.engine} {self.version} is not supported: this instrumentor knows "
            f"{known}. Install one of them, or a newer tenure"
        )
