"""The names that tenure's telemetry uses, and nothing else.

Every attribute lives under `tenure.`, is lowercase and dotted, holds a scalar or a
homogeneous array, and never holds a user's value. The page `docs/telemetry.md` explains
them to people who read traces.
"""

from typing import Final

SCHEMA_URL: Final = "https://opentelemetry.io/schemas/1.44.0"
"""The OpenTelemetry conventions that the shared names (`error.type`) come from."""

RUNTIME_SCOPE: Final = "tenure.runtime"
"""Instrumentation scope of the spans and metrics of tenure's own engine."""

DETECTORS_SCOPE: Final = "tenure.detectors"
"""Instrumentation scope of findings; detectors never look at spans of this scope."""

# Who acts, on what.

ENGINE: Final = "tenure.engine"
"""Engine and version, such as `tenure/0.1.0` or `agent-framework/1.23.0` (string)."""

WORKFLOW_NAME: Final = "tenure.workflow.name"
"""Name of the workflow (string)."""

INSTANCE_ID: Final = "tenure.instance.id"
"""The keyed piece of state that runs own in turn (string)."""

RUN_ID: Final = "tenure.run.id"
"""Unique identity of the run that acts (string)."""

RUN_EPOCH: Final = "tenure.run.epoch"
"""Epoch on whose behalf the operation acts (int)."""

OWNER_EPOCH: Final = "tenure.owner.epoch"
"""Epoch of the owner, read in the same step as the operation (int)."""

OWNER_RUN_ID: Final = "tenure.owner.run_id"
"""Run that owns the instance at the operation (string)."""

PROCESS_ID: Final = "tenure.process.id"
"""Host, process number and start: who counted `tenure.seq` (string)."""

SEQ: Final = "tenure.seq"
"""Position of the operation per instance and process; a gap is lost telemetry (int)."""

END_SEQ: Final = "tenure.end.seq"
"""Position of the operation that ended a span which stands for two (int)."""

# Where in the run.

SUPERSTEP_INDEX: Final = "tenure.superstep.index"
"""Number of the superstep in its run, from 1 (int)."""

EXECUTOR_ID: Final = "tenure.executor.id"
"""Executor that acted (string)."""

EXECUTOR_ATTEMPT: Final = "tenure.executor.attempt"
"""Number of the attempt at this invocation, from 1 (int)."""

# What it touched.

WRITE_KEYS: Final = "tenure.write.keys"
"""State keys touched, at most 32, those of other epochs first (string[])."""

WRITE_EPOCHS: Final = "tenure.write.epochs"
"""For each of `tenure.write.keys`, the epoch that staged it (int[])."""

WRITE_COUNT: Final = "tenure.write.count"
"""How many keys were touched in all (int)."""

WRITE_OMITTED: Final = "tenure.write.omitted"
"""How many of them the cap left out (int)."""

READ_KEYS: Final = "tenure.read.keys"
"""State keys that an executor read, at most 32 (string[])."""

READ_ISOLATED: Final = "tenure.read.isolated"
"""Whether an executor read no sibling's staged writes (bool)."""

REDUCED_KEYS: Final = "tenure.reduced.keys"
"""Those of `tenure.write.keys` whose writes a declared reducer joins (string[])."""

READ_WRITER_EPOCH: Final = "tenure.read.writer_epoch"
"""Epoch whose staged value a foreign read returned (int)."""

LEDGER_EPOCH: Final = "tenure.ledger.epoch"
"""Whose ledger was acted on; a map that all runs share is the owner's (int)."""

LEDGER_SHARED: Final = "tenure.ledger.shared"
"""Whether all runs share the map that was acted on (bool)."""

INHERITED_EPOCHS: Final = "tenure.inherited.epochs"
"""Released epochs whose staged writes this run took over on purpose (int[])."""

ORIGIN_EPOCH: Final = "tenure.origin.epoch"
"""Epoch that a message or an event comes from (int)."""

MESSAGE_ID: Final = "tenure.message.id"
"""Identity of a message (string)."""

MESSAGE_TARGET: Final = "tenure.message.target"
"""Executor that a message was sent to (string)."""

DELIVERY_KIND: Final = "tenure.delivery.kind"
"""What was delivered: `message`, `output`, `event` or `fan_in` (string)."""

# How it came about.

SUPERSEDED_EPOCH: Final = "tenure.superseded.epoch"
"""On a claim: the epoch that this one replaced by policy (int)."""

COMMIT_CAUSE: Final = "tenure.commit.cause"
"""Why staged writes became state: `superstep`, `run_entry`, `checkpoint` (string)."""

DISCARD_CAUSE: Final = "tenure.discard.cause"
"""Why staged writes were thrown away; see `operations.DiscardCause` (string)."""

DISCARD_FENCED: Final = "tenure.discard.fenced"
"""Whether the discard was refused, so that nothing was thrown away (bool)."""

FINALIZER_TRIGGER: Final = "tenure.finalizer.trigger"
"""How an end came about; see `operations.Trigger` (string)."""

RUN_OUTCOME: Final = "tenure.run.outcome"
"""How a run ended; see `operations.Outcome` (string)."""

CHECKPOINT_ID: Final = "tenure.checkpoint.id"
"""Identity of a checkpoint (string)."""

CHECKPOINT_PARENT_ID: Final = "tenure.checkpoint.parent_id"
"""The checkpoint that this one follows (string)."""

CHECKPOINT_PREVIOUS_ID: Final = "tenure.checkpoint.previous_id"
"""On a save: the newest checkpoint that the run's claim had found, where the run went
back from there to `tenure.checkpoint.parent_id` (string)."""

CHECKPOINT_PARTS: Final = "tenure.checkpoint.parts"
"""Executor snapshots and edge buffers in the checkpoint (string[])."""

CHECKPOINT_EPOCHS: Final = "tenure.checkpoint.epochs"
"""For each of `tenure.checkpoint.parts`, the epoch it was taken in (int[])."""

CHECKPOINT_TAKEN: Final = "tenure.checkpoint.taken"
"""Snapshots that were taken for the checkpoint, whether they are in it or not
(string[])."""

SNAPSHOT_KEYS: Final = "tenure.snapshot.keys"
"""Those of `tenure.write.keys` that hold snapshots for a checkpoint (string[])."""

ERROR_TYPE: Final = "error.type"
"""Class of the error that ended an operation (OpenTelemetry convention, string)."""

# What a finding says.

VIOLATION_EVENT: Final = "tenure.violation"
"""Name of the log event that carries a finding."""

VIOLATION_SPAN: Final = "violation"
"""Name of the span that carries a finding, linked to culprit and owner."""

ANOMALY: Final = "tenure.anomaly"
"""Slug of the anomaly (string)."""

SEVERITY: Final = "tenure.severity"
"""`violation`, `warning`, `averted` or `information` (string)."""

VARIANT: Final = "tenure.variant"
"""Which form of the anomaly it is, such as `run-entry` (string)."""

CERTAINTY: Final = "tenure.certainty"
"""`certain`, `possible`, `predicted` or `confirmed` (string)."""

CULPRIT_EPOCH: Final = "tenure.culprit.epoch"
"""Epoch that broke the rule (int)."""

VICTIM_EPOCH: Final = "tenure.victim.epoch"
"""Epoch that lost something, where one did (int)."""

KEYS: Final = "tenure.keys"
"""State keys that a finding is about (string[])."""

PROOF: Final = "tenure.proof"
"""The sentence `let … then … however …` (string)."""

# Metrics.

METRIC_RUN_DURATION: Final = "tenure.run.duration"
"""Histogram, seconds: from the call to the end of the run's own cleanup."""

METRIC_RUN_ACTIVE: Final = "tenure.run.active"
"""Up-down counter, {run}: runs that have claimed and not ended."""

METRIC_SUPERSTEP_DURATION: Final = "tenure.superstep.duration"
"""Histogram, seconds: from delivery to commit or discard."""

METRIC_COMMITS: Final = "tenure.commits"
"""Counter, {commit}."""

METRIC_DISCARDS: Final = "tenure.discards"
"""Counter, {discard}, by cause and fenced."""

METRIC_VIOLATIONS: Final = "tenure.violations"
"""Counter, {violation}, by anomaly, severity, certainty, engine and workflow."""
