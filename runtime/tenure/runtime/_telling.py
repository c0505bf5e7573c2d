"""What a tenure tells: claims, with what they replaced, and commits."""

from collections.abc import Mapping

from tenure.instrumentation.operations import CommitCause, DiscardCause, Outcome, Owner
from tenure.runtime._change import UNCHANGED, Change
from tenure.runtime._run import Run


def tell_claim(
    run: Run,
    predecessor: Run | None,
    replaced: int | None,
    swept: Mapping[str, int] | None = None,
) -> None:
    """Record a claim: first that it ended another's tenure, last what it swept.

    Args:
        run: Who has claimed.
        predecessor: Whom it replaced in this process.
        replaced: The epoch that it replaced.
        swept: What it swept; by default what the predecessor has not told itself.
    """
    if predecessor is None:
        run.voice.claim(run.owner, superseded=replaced)
        return
    predecessor.voice.release(predecessor.owner, Outcome.SUPERSEDED)
    run.voice.claim(run.owner, superseded=replaced)
    if swept is None:
        swept = predecessor.take_swept()
    if swept is not None:
        run.voice.discard(
            run.owner,
            swept,
            cause=DiscardCause.SWEEP,
            ledger=int(predecessor.epoch),
        )


def tell_commit(run: Run, owner: Owner, change: Change) -> None:
    """Record a commit, if anybody hears of it.

    Args:
        run: Who has committed.
        owner: Who owned the instance then.
        change: What was committed.
    """
    voice = run.voice
    if not (voice.telling or voice.measuring):
        return
    writes = change.writes
    staged = dict.fromkeys(writes, int(run.epoch)) if writes else {}
    if run.index:
        voice.commit(owner, staged, index=run.index)
    elif change != UNCHANGED:
        voice.commit(owner, staged, cause=CommitCause.RUN_ENTRY)
