"""The compose file: who may reach it, what it is made of, and that its parts meet."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from .stack import ROOT, addresses, read, services

COMPOSE = read("docker-compose.yml")
SERVICES = services()
ONE_SHOT = {"traces-volume", "collector-ready", "race", "check"}
ASKED_BY_ANOTHER = {"collector"}
NOBODY_WAITS_FOR = {"traffic"}
# Where each program listens inside its container, by its own configuration or default.
LISTENING = {
    "jaeger": {4317, 4318, 8888, 13133, 16685, 16686},
    "collector": {4317, 4318, 8888, 8889, 13133},
    "watch": {4317, 4318},
    "prometheus": {9090},
    "alertmanager": {9093},
    "pager": {8080},
    "grafana": {3000},
    "answers": {8000},
    "answers-agent-framework": {8000},
}
each_service = pytest.mark.parametrize("name", SERVICES)


def own(service: dict[str, Any]) -> bool:
    return "build" in service


def test_only_this_machine_reaches_the_ports():
    ports = [port for service in SERVICES.values() for port in service.get("ports", ())]
    assert ports
    assert all(re.fullmatch(r"127\.0\.0\.1:\d+:\d+", port) for port in ports)
    published = [port.split(":")[1] for port in ports]
    assert len(set(published)) == len(published)


@each_service
def test_a_port_that_is_published_is_one_where_the_program_listens(name: str):
    for port in SERVICES[name].get("ports", ()):
        assert int(port.rsplit(":", 1)[1]) in LISTENING[name]


@each_service
def test_an_image_is_pinned_to_a_version(name: str):
    assert re.search(r":v?\d+\.\d+\.\d+$", SERVICES[name]["image"])


def test_the_images_of_the_dockerfile_are_pinned_too():
    text = (ROOT / "deploy" / "Dockerfile").read_text("utf-8")
    images = re.findall(r"^FROM (\S+)", text, re.MULTILINE)
    assert images
    assert all(re.fullmatch(r"python:\d+\.\d+\.\d+-\S+", image) for image in images)


@each_service
def test_a_service_that_stays_says_whether_it_is_well(name: str):
    waited_for = ONE_SHOT | ASKED_BY_ANOTHER | NOBODY_WAITS_FOR
    assert ("healthcheck" in SERVICES[name]) == (name not in waited_for)


def test_the_collector_which_has_no_shell_is_asked_by_another_service():
    asking = SERVICES["collector-ready"]
    assert ("collector", 13133) in set(addresses(asking["command"]))
    collector = read("deploy/collector.yaml")
    assert collector["extensions"]["health_check"]["endpoint"] == "0.0.0.0:13133"
    assert "health_check" in collector["service"]["extensions"]
    assert "healthcheck" not in SERVICES["collector"]


@each_service
def test_a_service_waits_for_services_in_ways_that_they_have(name: str):
    for other, how in SERVICES[name].get("depends_on", {}).items():
        condition = how["condition"]
        if condition == "service_healthy":
            assert "healthcheck" in SERVICES[other]
        elif condition == "service_completed_successfully":
            assert other in ONE_SHOT
            assert "restart" not in SERVICES[other]
        else:
            assert condition == "service_started"


@each_service
def test_what_a_service_mounts_exists(name: str):
    for mount in SERVICES[name].get("volumes", ()):
        source = mount.split(":")[0]
        if source.startswith("."):
            assert (ROOT / source).exists(), "Docker would make an empty folder of it"
            assert mount.endswith(":ro")
        else:
            assert source in COMPOSE["volumes"]


@each_service
def test_an_address_leads_to_a_service_that_listens_there(name: str):
    service = SERVICES[name]
    told = [service.get("command"), service.get("environment")]
    for host, port in addresses(told):
        if host not in {"localhost", "127.0.0.1", "0.0.0.0"}:
            assert port in LISTENING[host]


def test_the_volume_of_the_file_exporter_is_the_collectors_own():
    collector = SERVICES["collector"]
    assert collector["user"] == "10001:10001"
    owner = SERVICES["traces-volume"]
    assert owner["user"] == "0:0"
    assert owner["entrypoint"] == ["chown", "10001:10001", "/traces"]
    assert "traces:/traces" in owner["volumes"]
    assert "traces:/traces" in collector["volumes"]
    assert "traces-volume" in collector["depends_on"]


def test_the_file_exporter_writes_into_that_volume():
    exporters = read("deploy/collector.yaml")["exporters"]
    paths = [each["path"] for name, each in exporters.items() if name[:4] == "file"]
    assert paths
    assert all(path.startswith("/traces/") for path in paths)
    assert SERVICES["check"]["command"][-1] in paths


@each_service
def test_a_file_that_a_service_runs_is_in_its_image(name: str):
    service = SERVICES[name]
    if not own(service):
        return
    copied = dict(re.findall(r"^COPY (\S+) (/srv/\S+)$", dockerfile(), re.MULTILINE))
    told = [*service["command"], *service.get("healthcheck", {}).get("test", ())]
    for part in told:
        if part.startswith("/srv/"):
            ((source, target),) = [
                item for item in copied.items() if part.startswith(f"{item[1]}/")
            ]
            assert (ROOT / source / Path(part).relative_to(target)).is_file()


@each_service
def test_our_own_image_can_do_little(name: str):
    service = SERVICES[name]
    if own(service):
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert service["build"]["dockerfile"] == "deploy/Dockerfile"


def dockerfile() -> str:
    return (ROOT / "deploy" / "Dockerfile").read_text("utf-8")


def test_the_image_holds_what_the_wheel_is_built_from():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    packages = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    needed = {package.split("/")[0] for package in packages}
    needed |= {"pyproject.toml", project["project"]["readme"]}
    needed |= set(project["project"]["license-files"])
    copied = {
        source
        for line in re.findall(r"^COPY (.+) \S+$", dockerfile(), re.MULTILINE)
        for source in line.split()
    }
    assert needed <= copied
    ignored = (ROOT / "deploy" / "Dockerfile.dockerignore").read_text("utf-8")
    assert copied == set(re.findall(r"^!(\S+)$", ignored, re.MULTILINE))


def test_the_image_installs_extras_that_exist_and_runs_as_nobody_special():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    (extras,) = re.findall(r"tenure-\*\.whl\)\[([\w,]+)\]", dockerfile())
    assert set(extras.split(",")) <= set(project["optional-dependencies"])
    assert "tenure" in project["scripts"]
    assert re.search(r"^USER 10001:10001$", dockerfile(), re.MULTILINE)
    assert SERVICES["watch"]["image"].endswith(f":{project['version']}")
