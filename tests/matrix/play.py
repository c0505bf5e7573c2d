"""Play every story on the installed engine; write a line of JSON for each.

It runs in an environment that has an engine, tenure and no more: `run.py` starts it.
Every story is played twice, the first time with nobody watching.
"""

import asyncio
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

# These are found on the path above.
from cells import cell_of
from stories import STORIES, Story, Told, settled

ENGINE = "agent-framework-core"


def main() -> int:
    """Play, and say what came of it."""
    # Abandoned runs complain: to the logger, and where nobody can catch it.
    logging.disable(logging.CRITICAL)
    sys.unraisablehook = lambda _: None
    bare = {
        name: asyncio.run(settled_quietly(story)) for name, story in STORIES.items()
    }
    AgentFrameworkInstrumentor().instrument()
    for name, story in STORIES.items():
        line = {"story": name, "title": story.title, **watched(story, bare[name])}
        sys.stdout.write(f"{json.dumps(line)}\n")
        sys.stdout.flush()
    return 0


def watched(story: Story, bare: Told) -> dict[str, Any]:
    """Play a story under the instrumentor, and with a detector.

    Args:
        story: What is played.
        bare: What it came to without them.
    """
    gc.collect()
    with Detector(announce=()).listen() as detector:
        told, findings = asyncio.run(played(story, detector))
    return {
        "engine": version(ENGINE),
        "cell": cell_of(told, findings),
        "unchanged": told == bare,
    }


async def played(story: Story, detector: Detector) -> tuple[Told, list[Finding]]:
    """Play one story; what the end of the loop brings about is no part of it."""
    told = await settled_quietly(story)
    return told, list(detector.findings)


async def settled_quietly(story: Story) -> Told:
    """Play one story, and have the loop keep to itself what it left."""
    asyncio.get_running_loop().set_exception_handler(lambda *_: None)
    return await settled(story.play())


if __name__ == "__main__":
    sys.exit(main())
