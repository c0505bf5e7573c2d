"""Play every story on the installed engine; print a line of JSON for each.

It runs in an environment that has an engine, tenure and no more: `run.py` starts it.
Every story is played twice, the first time with nobody watching.
"""

import asyncio
import contextlib
import gc
import json
import logging
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tenure.detectors import Detector, Finding
from tenure.instrumentation.agent_framework import AgentFrameworkInstrumentor

sys.path.insert(
    0, str(Path(__file__).resolve().parents[1] / "instrumentation" / "agent_framework")
)

from cells import cell_of  # noqa: E402 - the path comes first
from stories import Told, settled  # noqa: E402
from stories.catalogue import STORIES, Story  # noqa: E402

ENGINE = "agent-framework-core"


def main() -> int:
    """Play, and say what came of it."""
    # Abandoned runs complain, on the logger and where nobody can catch it.
    logging.disable(logging.CRITICAL)
    sys.unraisablehook = lambda _: None
    bare = {name: asyncio.run(_settled(story)) for name, story in STORIES.items()}
    AgentFrameworkInstrumentor().instrument()
    for name, story in STORIES.items():
        print(json.dumps({"story": name, **_watched(story, bare[name])}), flush=True)
    return 0


def _watched(story: Story, bare: Told) -> dict[str, Any]:
    gc.collect()
    with Detector(announce=()).listen() as detector:
        told, findings = asyncio.run(_played(story, detector))
    return {
        "engine": version(ENGINE),
        "cell": cell_of(told, findings),
        "verdict": detector.verdict.value,
        "unchanged": told == bare,
    }


async def _played(story: Story, detector: Detector) -> tuple[Told, list[Finding]]:
    """Play one story; what the end of the loop brings about is no part of it."""
    told = await _settled(story)
    return told, list(detector.findings)


async def _settled(story: Story) -> Told:
    with contextlib.suppress(RuntimeError):
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
    return await settled(story.play())


if __name__ == "__main__":
    sys.exit(main())
