"""Play every story on several versions of agent-framework, each in its environment.

Environments are made once, under `.venvs`. What a story came to is compared with
`expected.toml`, and the table of docs/agent-framework.md with what they all came to.
"""

import argparse
import hashlib
import json
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(
    0, str(Path(__file__).resolve().parents[1] / "instrumentation" / "agent_framework")
)

# These are found on the path above.
import page
from cells import Expected

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
ENGINE = "agent-framework"
PAGE = ROOT / "docs" / "agent-framework.md"
ENVIRONMENTS = ROOT / ".venvs"
TIMEOUT = 300

Lines = dict[str, dict[str, Any]]


class NoResultError(Exception):
    """An environment could not be made, or nothing came out of it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line asks for; return the exit status."""
    parser = _parser()
    given = parser.parse_args(arguments)
    versions = [version.strip() for version in given.versions.split(",")]
    if given.write and not set(page.VERSIONS) <= set(versions):
        parser.error(f"--write takes all versions: {','.join(page.VERSIONS)}")
    try:
        found = {version: _play(version) for version in versions}
    except NoResultError as error:
        _say(str(error))
        return 2
    except KeyboardInterrupt:
        return 130
    wrong = [line for version in versions for line in _wrong(version, found[version])]
    made = _table(found)
    if given.write and not wrong:
        PAGE.write_text(page.put(PAGE.read_text(encoding="utf-8"), made), "utf-8")
        _say(f"wrote {PAGE.relative_to(ROOT)}")
    elif PAGE.exists():
        wrong += page.differences(PAGE.read_text(encoding="utf-8"), made)
    for line in wrong:
        _say(f"wrong: {line}")
    stories = len(next(iter(found.values())))
    _say(f"{stories} stories on {', '.join(versions)}: {len(wrong)} wrong")
    return 1 if wrong else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tests/matrix/run.py",
        description=(
            "Play the stories on real versions of agent-framework and compare what "
            "they come to, and the page about it, with what is expected."
        ),
        epilog="exit status: 0; 1 if anything differs; 2 if it could not be played",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--versions",
        default=",".join(page.VERSIONS),
        metavar="V,...",
        help=f"which versions ({','.join(page.VERSIONS)})",
    )
    parser.add_argument(
        "--write",
        action="store_true",
        help=f"put the table into {PAGE.relative_to(ROOT)}",
    )
    return parser


def _play(version: str) -> Lines:
    """Play all stories on a version; return what each came to."""
    python = _environment(version)
    started = time.monotonic()
    try:
        done = subprocess.run(
            [str(python), str(HERE / "play.py")],
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise NoResultError(f"{version}: not done after {TIMEOUT} s") from None
    if done.returncode != 0:
        raise NoResultError(f"{version}: {done.stderr.strip()[-2000:]}")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    _say(f"{version}: {len(lines)} stories in {time.monotonic() - started:.0f} s")
    return {line["story"]: line for line in lines}


def _environment(version: str) -> Path:
    """Return the interpreter of an environment that has this version of the engine."""
    place = ENVIRONMENTS / f"{ENGINE}-{version}"
    python, stamp = place / "bin" / "python", place / ".tenure-matrix"
    made_of = _digest(version)
    if python.exists() and stamp.exists() and stamp.read_text("utf-8") == made_of:
        return python
    _say(f"{version}: making {place.relative_to(ROOT)} (once)")
    _do(sys.executable, "-m", "venv", "--clear", "--without-pip", str(place))
    _do(
        *(sys.executable, "-m", "pip", "--python", str(python)),
        *("install", "-qq", "--disable-pip-version-check"),
        *("--editable", f"{ROOT}[{ENGINE}]", f"{ENGINE}-core=={version}"),
    )
    stamp.write_text(made_of, "utf-8")
    return python


def _digest(version: str) -> str:
    """Return what an environment depends on: its sources are read where they are."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    depends = json.dumps([version, sys.version, project])
    return hashlib.sha256(depends.encode()).hexdigest()


def _do(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()
        raise NoResultError(f"{' '.join(command)}:\n{said[-2000:]}")


def _wrong(version: str, lines: Lines) -> Iterable[str]:
    """Say in what a version differs from what is expected of it."""
    expected = Expected()
    if set(lines) != set(expected.names):
        yield f"{version}: played {sorted(lines)}, expected {sorted(expected.names)}"
        return
    for name, line in lines.items():
        cell = expected.cell(name, version)
        if line["engine"] != version:
            yield f"{version}, {name}: played on {line['engine']}"
        if line["cell"] != cell:
            yield f"{version}, {name}: {line['cell']}, expected {cell}"
        if not line["unchanged"]:
            yield f"{version}, {name}: it comes to something else if nobody watches"


def _table(found: dict[str, Lines]) -> str:
    expected, some = Expected(), next(iter(found.values()))
    return page.table(
        {name: line["title"] for name, line in some.items()},
        {name: expected.right(name) for name in some},
        {
            version: {name: line["cell"] for name, line in lines.items()}
            for version, lines in found.items()
        },
    )


def _say(message: str) -> None:
    sys.stderr.write(f"{message}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
