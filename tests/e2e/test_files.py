"""The files of the stack, read by the programs that they are written for."""

import subprocess
from pathlib import Path

from .backends import ROOT, compose, program


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )


def succeed(*command: str) -> str:
    done = run(*command)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_compose_reads_its_file_with_every_profile():
    compose = program("docker-compose")
    succeed(compose, "--file", "docker-compose.yml", "--profile", "*", "config", "-q")
    listed = succeed(
        compose,
        "--file",
        "docker-compose.yml",
        "--profile",
        "*",
        "config",
        "--services",
    )
    assert {"jaeger", "collector", "watch", "grafana", "race"} <= set(listed.split())


def test_compose_would_notice_a_mistake(tmp_path: Path):
    broken = (ROOT / "docker-compose.yml").read_text().replace("command:", "comand:", 1)
    (tmp_path / "docker-compose.yml").write_text(broken)
    file = str(tmp_path / "docker-compose.yml")
    done = run(compose(), "--file", file, "config", "--quiet")
    assert done.returncode
    assert "comand" in done.stderr


def test_promtool_reads_the_configuration_and_the_rules():
    promtool = program("promtool")
    succeed(promtool, "check", "config", "deploy/prometheus/prometheus.yml")
    told = succeed(
        promtool, "check", "rules", "--lint-fatal", "deploy/prometheus/rules/tenure.yml"
    )
    assert "15 rules found" in told


def test_the_alerts_fire_and_end_as_they_are_told_to():
    succeed(program("promtool"), "test", "rules", "tests/deploy/rules.test.yml")


def test_a_rule_that_fires_too_late_would_be_noticed(tmp_path: Path):
    rules = (ROOT / "deploy/prometheus/rules/tenure.yml").read_text()
    born = "(tenure_violations_total unless tenure_violations_total offset 10m)"
    assert born in rules
    (tmp_path / "rules.yml").write_text(
        rules.replace(born, "tenure_violations_total > 99")
    )
    told = (ROOT / "tests/deploy/rules.test.yml").read_text()
    path = "../../deploy/prometheus/rules/tenure.yml"
    assert path in told
    (tmp_path / "test.yml").write_text(told.replace(path, "rules.yml"))
    done = run(program("promtool"), "test", "rules", str(tmp_path / "test.yml"))
    assert done.returncode == 1
    assert "TenureOwnershipViolation" in done.stdout + done.stderr


def test_amtool_reads_the_routes_and_sends_alerts_where_they_belong():
    amtool = program("amtool")
    config = "deploy/alertmanager.yml"
    succeed(amtool, "check-config", config)
    routes = ("config", "routes", "test", f"--config.file={config}")
    for labels, receiver in {
        ("alertname=TenureOwnershipViolation", "severity=critical"): "pager",
        ("alertname=TenureSpansLost", "severity=warning"): "pager",
        ("alertname=TenureWatchdog", "severity=none"): "heartbeat",
    }.items():
        assert succeed(amtool, *routes, *labels).strip() == receiver
