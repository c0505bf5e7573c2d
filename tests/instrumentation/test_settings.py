"""What the environment asks of a recorder."""

import pickle
import subprocess
import sys

import pytest

from tenure.instrumentation import Detail, KeyDisplay, Recorder, TelemetryConfigError
from tenure.instrumentation._settings import key_mask


@pytest.mark.parametrize(
    ("value", "detail"),
    [
        ("ownership", Detail.OWNERSHIP),
        (" Supersteps ", Detail.SUPERSTEPS),
        ("EXECUTORS", Detail.EXECUTORS),
        ("", Detail.EXECUTORS),
    ],
)
def test_the_environment_chooses_the_detail(monkeypatch, value, detail):
    monkeypatch.setenv("TENURE_DETAIL", value)
    assert Recorder("engine/1.2").detail is detail


@pytest.mark.parametrize("variable", ["TENURE_DETAIL", "TENURE_KEYS"])
@pytest.mark.parametrize("value", ["everything", "3", "plain,hashed"])
def test_a_value_that_is_not_known_is_refused_by_name(monkeypatch, variable, value):
    monkeypatch.setenv(variable, value)
    with pytest.raises(TelemetryConfigError) as caught:
        Recorder("engine/1.2")
    assert (caught.value.setting, caught.value.value) == (variable, value)
    assert variable in str(caught.value)
    assert "use one of" in str(caught.value)


def test_an_argument_wins_over_the_environment(monkeypatch):
    monkeypatch.setenv("TENURE_DETAIL", "nonsense")
    monkeypatch.setenv("TENURE_KEYS", "nonsense")
    recorder = Recorder("e/1", detail=Detail.OWNERSHIP, keys=KeyDisplay.PLAIN)
    assert recorder.detail is Detail.OWNERSHIP
    assert recorder.mask is None


def test_the_error_survives_pickling():
    error = TelemetryConfigError("TENURE_KEYS", "x", "use one of plain")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


@pytest.mark.parametrize("display", [KeyDisplay.HASHED, KeyDisplay.OFF])
class TestMasks:
    def test_different_keys_stay_different(self, display):
        mask = key_mask(display)
        keys = [f"key-{number}" for number in range(500)]
        assert len({mask(key) for key in keys}) == len(keys)

    def test_one_key_reads_the_same_from_every_recorder(self, display):
        assert key_mask(display)("draft") == key_mask(display)("draft")

    def test_a_mask_shows_nothing_of_the_key(self, display):
        shown = key_mask(display)("draft")
        assert len(shown) == 12
        assert set(shown) <= set("0123456789abcdef")

    def test_a_key_that_is_not_unicode_is_masked_as_well(self, display):
        assert len(key_mask(display)("\ud800")) == 12


@pytest.mark.parametrize(
    ("display", "same"), [(KeyDisplay.HASHED, True), (KeyDisplay.OFF, False)]
)
def test_only_a_hash_reads_the_same_in_another_process(display, same):
    program = (
        "from tenure.instrumentation._settings import KeyDisplay, key_mask;"
        f"print(key_mask(KeyDisplay({display.value!r}))('draft'))"
    )
    other = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert (other.stdout.strip() == key_mask(display)("draft")) is same
