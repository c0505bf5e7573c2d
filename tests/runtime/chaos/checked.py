"""What `tenure check` says of the files that victims have exported their spans to."""

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROGRAM = "import sys; from tenure.cli import main; sys.exit(main())"


@dataclass(frozen=True, slots=True)
class Checked:
    """What the command has answered.

    Attributes:
        status: Its exit status.
        seconds: How long it took.
        document: Its report.
    """

    status: int
    seconds: float
    document: dict[str, Any]

    @property
    def findings(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.document["findings"]
        return found

    @property
    def kinds(self) -> Counter[tuple[str, str, str]]:
        """How many findings there are of each form, severity and certainty."""
        return Counter(
            (f"{one['anomaly']}/{one['variant']}", one["severity"], one["certainty"])
            for one in self.findings
        )

    @property
    def proven(self) -> list[dict[str, Any]]:
        """Violations that are certain."""
        return [
            one
            for one in self.findings
            if (one["severity"], one["certainty"]) == ("violation", "certain")
        ]

    @property
    def torn(self) -> int:
        """How many files end in the middle of a line."""
        return sum(
            problem["reason"] == "it ends too early"
            for file in self.document["files"]
            for problem in file["problems"]
        )

    @property
    def empty(self) -> int:
        """How many files hold nothing at all."""
        return sum(not file["formats"] for file in self.document["files"])


def check(files: Iterable[Path]) -> Checked:
    """Run the real command over `files`, all of them together."""
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OTEL", "TENURE"))
    }
    begun = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM, "check", "--json", *files],
        env=clean,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.stderr == ""
    return Checked(done.returncode, time.monotonic() - begun, json.loads(done.stdout))
