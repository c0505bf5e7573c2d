"""Readers for the answers of examples/sse.

    python traffic.py clean URL…   ask, read to the end, ask again; for ever
    python traffic.py race URL     leave in the middle of an answer, ask again at once

A race is lost or won by milliseconds: it is tried until the detector in the application
has found a violation, `--attempts` times at most. Status 1 says that it found none.
"""

import argparse
import itertools
import sys
import time
from collections.abc import Iterator

import httpx

QUESTIONS = ["Why do tides happen", "What makes waves", "Why is there salt in the sea"]


def words(client: httpx.Client, question: str) -> Iterator[str]:
    """Yield the lines of an answer as they come; closing the iterator disconnects."""
    asked = client.stream("GET", "/answers", params={"question": question})
    with asked as answer:
        answer.raise_for_status()
        yield from answer.iter_lines()


def clean(urls: list[str], *, pause: float, rounds: int | None) -> int:
    """Ask every application in turn, and wait for each answer."""
    clients = [httpx.Client(base_url=url, timeout=60) for url in urls]
    asked = itertools.cycle(QUESTIONS)
    for _ in itertools.count() if rounds is None else range(rounds):
        for client in clients:
            try:
                for _line in words(client, next(asked)):
                    pass
            except httpx.HTTPError as error:
                print(f"{client.base_url}: {error!r}", file=sys.stderr, flush=True)
        time.sleep(pause)
    return 0


def race(url: str, *, attempts: int) -> int:
    """Leave in the middle, ask again, and look what the detector says."""
    with httpx.Client(base_url=url, timeout=60) as client:
        for attempt in range(1, attempts + 1):
            first = words(client, f"{QUESTIONS[0]} ({attempt})")
            # While its words are typed, the run waits beside, in the middle of a step.
            for line in first:
                if '"text"' in line:
                    break
            first.close()
            for _line in words(client, f"{QUESTIONS[1]} ({attempt})"):
                pass
            told = client.get("/findings").raise_for_status().json()
            found = sorted({
                f"{finding['anomaly']} ({finding['severity']})"
                for finding in told["findings"]
            })
            print(f"{told['engine']}: {', '.join(found) or 'nothing'}", flush=True)
            if told["verdict"] == "violated":
                return 0
    return 1


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    kinds = parser.add_subparsers(dest="kind", required=True)
    calm = kinds.add_parser("clean")
    calm.add_argument("urls", nargs="+", metavar="URL")
    calm.add_argument("--pause", type=float, default=5.0)
    calm.add_argument("--rounds", type=int)
    hasty = kinds.add_parser("race")
    hasty.add_argument("url", metavar="URL")
    hasty.add_argument("--attempts", type=int, default=10)
    arguments = parser.parse_args()
    if arguments.kind == "clean":
        return clean(arguments.urls, pause=arguments.pause, rounds=arguments.rounds)
    return race(arguments.url, attempts=arguments.attempts)


if __name__ == "__main__":
    sys.exit(main())
