"""Who tells what happens to an instance: one mouth for each instance in a process."""

import threading
from typing import Final
from weakref import WeakValueDictionary

from tenure.instrumentation import InstanceRecorder, Recorder
from tenure.runtime._epoch import new_instance_suffix

_making: Final = threading.Lock()
# Workflows that are drawn anew, for each request of a server for example, may share an
# instance of a store. Its operations are numbered once, whoever tells them.
_mouths: Final[WeakValueDictionary[tuple[str, str], InstanceRecorder]] = (
    WeakValueDictionary()
)


def mouth_of(
    recorder: Recorder, workflow: str, key: str, store: str | None
) -> InstanceRecorder:
    """Return the recorder of an instance.

    Args:
        recorder: The workflow's recorder.
        workflow: Name of the workflow.
        key: Key of the instance.
        store: Identity of the store that keeps it. Without one, no other workflow can
            have this instance, whatever its name is.
    """
    if store is None:
        return recorder.instance(workflow, f"{key}@{new_instance_suffix()}")
    identity = f"{key}@{store}"
    with _making:
        known = _mouths.get((workflow, identity))
        if known is None:
            known = recorder.instance(workflow, identity)
            _mouths[workflow, identity] = known
        return known
