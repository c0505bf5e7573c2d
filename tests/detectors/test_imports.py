"""What importing the detectors loads, and what their door holds."""

import subprocess
import sys

import pytest

import tenure.detectors


def loaded_by(statement: str) -> set[str]:
    code = f"{statement}\nimport sys\nprint('\\n'.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_importing_the_detectors_loads_no_sdk_no_engine_and_no_anyio():
    loaded = loaded_by("import tenure.detectors; tenure.detectors.Detector()")

    for unwanted in ("opentelemetry.sdk", "tenure.runtime", "anyio", "agent_framework"):
        assert not [name for name in loaded if name.startswith(unwanted)]


def test_asking_for_the_span_processor_loads_the_sdk():
    loaded = loaded_by("from tenure.detectors import OwnershipSpanProcessor")

    assert "opentelemetry.sdk.trace" in loaded


def test_the_door_holds_what_it_says():
    for name in tenure.detectors.__all__:
        assert getattr(tenure.detectors, name) is not None
    assert set(tenure.detectors.__all__) <= set(dir(tenure.detectors))
    assert len(tenure.detectors.__all__) == len(set(tenure.detectors.__all__))


def test_a_name_that_the_door_does_not_hold_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Detectr'"):
        tenure.detectors.Detectr  # noqa: B018 - looking it up is the test
