"""Collector, Jaeger and Grafana: what is named exists, and is reached from outside."""

from collections.abc import Iterator
from typing import Any

import pytest

from .stack import addresses, dashboard, read, services, strings
from .test_compose import LISTENING

COLLECTOR = read("deploy/collector.yaml")
JAEGER = read("deploy/jaeger/config.yaml")
DATASOURCES = read("deploy/grafana/provisioning/datasources/tenure.yml")["datasources"]
both = pytest.mark.parametrize(
    "config", [COLLECTOR, JAEGER], ids=["collector", "jaeger"]
)


def named(config: dict[str, Any], kind: str) -> set[str]:
    """Return what the pipelines name."""
    pipelines = config["service"]["pipelines"].values()
    return {name for pipeline in pipelines for name in pipeline.get(kind, ())}


@both
@pytest.mark.parametrize("kind", ["receivers", "exporters"])
def test_every_end_of_a_pipeline_is_defined_and_used(config: dict[str, Any], kind: str):
    connectors = set(config.get("connectors", ()))
    defined = set(config[kind])
    assert defined <= named(config, kind) <= defined | connectors


@both
def test_every_processor_is_defined_and_used(config: dict[str, Any]):
    assert named(config, "processors") == set(config["processors"])


@both
def test_every_extension_is_defined_and_used(config: dict[str, Any]):
    assert set(config["service"]["extensions"]) == set(config["extensions"])


@both
def test_a_connector_ends_one_pipeline_and_begins_another(config: dict[str, Any]):
    for name in config.get("connectors", ()):
        ends, begins = (
            {
                pipeline
                for pipeline, parts in config["service"]["pipelines"].items()
                if name in parts[kind]
            }
            for kind in ("exporters", "receivers")
        )
        assert ends
        assert begins
        assert not ends & begins


def endpoints(config: object) -> Iterator[str]:
    match config:
        case dict():
            for key, value in config.items():
                if key in {"endpoint", "host"}:
                    yield value
                else:
                    yield from endpoints(value)
        case list():
            for value in config:
                yield from endpoints(value)


@both
def test_no_endpoint_is_reached_from_inside_its_container_only(config: dict[str, Any]):
    found = list(endpoints(config))
    assert found
    assert not [each for each in found if "localhost" in each or "127.0.0" in each]


@both
def test_receivers_say_where_they_listen_for_their_default_is_localhost(
    config: dict[str, Any],
):
    protocols = config["receivers"]["otlp"]["protocols"]
    assert {name: each["endpoint"] for name, each in protocols.items()} == {
        "grpc": "0.0.0.0:4317",
        "http": "0.0.0.0:4318",
    }


@both
def test_what_is_sent_somewhere_arrives(config: dict[str, Any]):
    for host, port in addresses(list(endpoints(config))):
        if host != "0.0.0.0":
            assert port in LISTENING[host]


def test_the_sidecar_gets_its_spans_one_message_after_the_other():
    assert COLLECTOR["exporters"]["otlp_grpc/watch"]["sending_queue"] == {
        "num_consumers": 1
    }
    assert "otlp_grpc/watch" in COLLECTOR["service"]["pipelines"]["traces"]["exporters"]


def test_jaeger_keeps_and_asks_the_storage_that_it_has():
    storage = JAEGER["extensions"]["jaeger_storage"]
    asked = JAEGER["extensions"]["jaeger_query"]["storage"]
    assert asked["traces"] in storage["backends"]
    assert asked["metrics"] in storage["metric_backends"]
    written = JAEGER["exporters"]["jaeger_storage_exporter"]["trace_storage"]
    assert written == asked["traces"]


def test_the_monitor_tab_is_on_and_finds_its_figures():
    shown = JAEGER["extensions"]["jaeger_query"]["ui"]["config_file"]
    mounts = services()["jaeger"]["volumes"]
    assert any(shown == f"{mount.split(':')[1]}/ui.json" for mount in mounts)
    assert read("deploy/jaeger/ui.json")["monitor"]["menuEnabled"] is True
    (figures,) = JAEGER["extensions"]["jaeger_storage"]["metric_backends"].values()
    assert figures["prometheus"]["normalize_calls"] is True
    assert figures["prometheus"]["normalize_duration"] is True
    # Jaeger looks for the names that this connector gives when it is not told another.
    assert "namespace" not in COLLECTOR["connectors"]["span_metrics"]


def test_every_data_source_that_grafana_is_asked_for_exists():
    def asked(found: object) -> Iterator[tuple[str, str]]:
        match found:
            case dict():
                if isinstance(source := found.get("datasource"), dict):
                    yield source["uid"], source["type"]
                for value in found.values():
                    yield from asked(value)
            case list():
                for value in found:
                    yield from asked(value)

    known = {(source["uid"], source["type"]) for source in DATASOURCES}
    assert set(asked(dashboard())) <= known
    (prometheus,) = (each for each in DATASOURCES if each["type"] == "prometheus")
    (way,) = prometheus["jsonData"]["exemplarTraceIdDestinations"]
    assert way["datasourceUid"] in {uid for uid, _ in known}


def test_data_sources_lead_to_services():
    for source in DATASOURCES:
        ((host, port),) = addresses(source["url"])
        assert port in LISTENING[host]


def test_grafana_finds_its_dashboard():
    (provider,) = read("deploy/grafana/provisioning/dashboards/tenure.yml")["providers"]
    targets = {
        mount.split(":")[1]: mount.split(":")[0]
        for mount in services()["grafana"]["volumes"]
    }
    assert targets[provider["options"]["path"]] == "./deploy/grafana/dashboards"
    home = services()["grafana"]["environment"][
        "GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"
    ]
    assert home == f"{provider['options']['path']}/tenure.json"


def test_panels_have_numbers_of_their_own_and_do_not_overlap():
    panels = dashboard()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        at = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert max(x for x, _ in cells) < 24
        assert not cells & taken
        taken |= cells


def test_links_lead_to_ports_that_the_stack_publishes():
    published = {
        int(port.split(":")[1])
        for service in services().values()
        for port in service.get("ports", ())
    }
    for config in (dashboard(), read("deploy/jaeger/ui.json")):
        links = [each for each in strings(config) if each.startswith("http")]
        assert links
        for host, port in addresses(links):
            assert (host, port in published) == ("localhost", True)
