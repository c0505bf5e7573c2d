"""Who tells what happens to an instance: one mouth for each instance in a process."""

import threading
from collections import OrderedDict
from typing import Final
from weakref import WeakValueDictionary

from tenure.instrumentation import InstanceRecorder, Recorder
from tenure.runtime._epoch import new_instance_suffix

KEPT: Final = 10_000
"""How many instances that no workflow holds any more keep their numbering."""

_making: Final = threading.Lock()
# Workflows that are drawn anew, for each request of a server for example, share an
# instance of a store one after the other, or at once. Its operations are numbered once
# in a process: whoever counted from 1 again would be taken for a repetition.
_mouths: Final[WeakValueDictionary[tuple[str, str], InstanceRecorder]] = (
    WeakValueDictionary()
)
_lately: Final[OrderedDict[tuple[str, str], InstanceRecorder]] = OrderedDict()


def mouth_of(
    recorder: Recorder, workflow: str, key: str, store: str | None
) -> InstanceRecorder:
    """Return the recorder of an instance. May be called from any thread.

    Args:
        recorder: The workflow's recorder; the first one of an instance stays.
        workflow: Name of the workflow.
        key: Key of the instance.
        store: Identity of the store that keeps it. Without one, no other workflow can
            have this instance, whatever its name is.
    """
    if store is None:
        return recorder.instance(workflow, f"{key}@{new_instance_suffix()}")
    identity = (workflow, f"{key}@{store}")
    with _making:
        known = _mouths.get(identity)
        if known is None:
            known = _mouths[identity] = recorder.instance(*identity)
        _lately[identity] = known
        _lately.move_to_end(identity)
        if len(_lately) > KEPT:
            _lately.popitem(last=False)
        return known
