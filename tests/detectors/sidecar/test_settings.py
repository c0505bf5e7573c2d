"""What a sidecar can be asked to do, and what it refuses before it starts."""

import pytest

from tenure.detectors import DetectorError
from tenure.detectors.sidecar import Endpoint, Settings, SettingsError


def test_by_default_only_this_machine_reaches_it_at_the_usual_ports():
    settings = Settings()

    assert (settings.host, settings.grpc_port, settings.http_port) == (
        "127.0.0.1",
        4317,
        4318,
    )


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("host", ""),
        ("grpc_port", 65_536),
        ("grpc_port", -1),
        ("http_port", 4317),
        ("message_bytes", 0),
        ("message_bytes", 1 << 31),
        ("memory_bytes", (8 << 20) - 1),
        ("forward_bytes", 0),
        ("max_instances", 0),
        ("debounce", -1.0),
        ("hook_timeout", float("inf")),
        ("drain_timeout", float("nan")),
        ("forward", "collector:4318"),
        ("forward", "ftp://collector:21"),
        ("forward", "http://"),
        ("forward", "http://collector:port"),
        ("webhook", "grpc://collector:4317"),
        ("webhook", "file:///etc/passwd"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(setting, value):
    with pytest.raises(SettingsError) as caught:
        Settings(**{setting: value})

    assert caught.value.setting == setting
    assert isinstance(caught.value, DetectorError)


def test_somebody_has_to_listen():
    with pytest.raises(SettingsError):
        Settings(grpc_port=None, http_port=None)


def test_free_ports_may_be_asked_for_twice():
    assert Settings(grpc_port=0, http_port=0).http_port == 0


def test_secrets_are_neither_shown_nor_repeated():
    secret = "s3cr3t"
    settings = Settings(
        webhook=f"https://hooks.example/{secret}",
        webhook_headers={"authorization": secret},
        forward="http://collector:4318",
        forward_headers={"authorization": secret},
    )
    assert secret not in repr(settings)

    with pytest.raises(SettingsError) as caught:
        Settings(webhook=f"hooks.example/{secret}")
    assert secret not in str(caught.value)


@pytest.mark.parametrize(
    ("forward", "endpoint"),
    [
        ("http://collector:4318", "collector:4318"),
        ("https://collector/otlp", "collector:443"),
        ("grpc://collector", "collector:4317"),
        ("grpcs://[::1]:1234", "[::1]:1234"),
    ],
)
def test_forwarding_leads_where_the_address_says(forward, endpoint):
    assert str(Settings(forward=forward).forward_endpoint) == endpoint


def test_an_address_of_six_groups_is_written_in_brackets():
    assert str(Endpoint("::1", 4317)) == "[::1]:4317"
