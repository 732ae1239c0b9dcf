"""The image and the deployment in containers name only commands, files and versions that exist.

`kafka/test_image.py` carries the image's instructions out.
"""

import asyncio
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from distribution import kernel
from distribution.locks import lock_file
from shoal.agents.broker import jars
from shoal.agents.cli.main import app
from shoal.agents.http_server.limits import listen
from shoal.agents.http_server.names import Names
from shoal.agents.http_server.shared_answers import Answer, serve_aside
from shoal.models.config.file import load
from tests.support.dockerfile import COMMAND, ENTRYPOINT, IMAGE, KERNEL, ROOT, health_command
from tests.support.prometheus import promtool

DOCKER = Path(__file__).parent.parent / "docker"
COMPOSE: dict[str, Any] = yaml.safe_load((DOCKER / "compose.yaml").read_text("utf-8"))
OURS = {name: service for name, service in COMPOSE["services"].items() if service.get("image") == "shoal"}
CONDITIONS = {"service_started", "service_healthy", "service_completed_successfully"}


def mounted() -> dict[str, Path]:
    """Where our containers see which file or folder of ours."""
    volumes = {volume for service in OURS.values() for volume in service["volumes"]}
    return {parts[1]: DOCKER / parts[0] for parts in (volume.split(":") for volume in volumes)}


def test_it_is_kafka_postgresql_two_one_shots_two_workers_and_what_watches_them() -> None:
    assert set(COMPOSE["services"]) == {"kafka", "postgres", "migrate", "topics", "worker", "prometheus", "grafana"}
    assert set(OURS) == {"migrate", "topics", "worker"}
    assert COMPOSE["services"]["worker"]["deploy"]["replicas"] == 2


def test_the_broker_is_the_version_that_the_tests_ran_on() -> None:
    assert COMPOSE["services"]["kafka"]["image"] == f"apache/kafka:{jars.VERSION}"


def test_services_wait_for_services_that_exist_and_can_be_waited_for() -> None:
    for service in COMPOSE["services"].values():
        for name, how in service.get("depends_on", {}).items():
            assert how["condition"] in CONDITIONS
            assert ("healthcheck" in COMPOSE["services"][name]) == (how["condition"] == "service_healthy")


def test_named_volumes_and_secrets_are_declared() -> None:
    for service in COMPOSE["services"].values():
        names = {volume.split(":")[0] for volume in service.get("volumes", ())}
        assert {name for name in names if not name.startswith((".", "/"))} <= set(COMPOSE["volumes"])
        assert set(service.get("secrets", ())) <= set(COMPOSE["secrets"])


@pytest.mark.parametrize("name", sorted(OURS))
def test_every_command_exists(name: str) -> None:
    command, config = OURS[name].get("command", COMMAND)
    assert CliRunner().invoke(app, [command, "--help"]).exit_code == 0
    assert config in mounted()


def test_the_mounted_configuration_is_valid_and_its_paths_are_mounted() -> None:
    config = load(mounted()["/etc/shoal/shoal.toml"])
    (passfile,) = re.findall(r"passfile=([^&]+)", config.audit.url)
    for path in (Path(passfile), config.privacy.key_file):
        assert str(path.parent) in mounted()
    host, port = config.kafka.brokers.split(":")
    assert COMPOSE["services"][host]["environment"]["KAFKA_ADVERTISED_LISTENERS"] == f"PLAINTEXT://{host}:{port}"


def test_workers_are_asked_at_the_port_that_they_listen_on() -> None:
    web = load(DOCKER / "shoal.toml").web
    assert web.host == "0.0.0.0"
    assert not {"command", "healthcheck"} & OURS["worker"].keys()  # those of the image
    (job,) = yaml.safe_load((DOCKER / "prometheus" / "prometheus.yml").read_text())["scrape_configs"]
    (found,) = job["dns_sd_configs"]
    assert (job["job_name"], found["names"], found["port"]) == ("shoal", ["worker"], web.port)


def test_prometheus_takes_its_configuration_from_where_its_image_looks() -> None:
    promtool("check", "config", DOCKER / "prometheus" / "prometheus.yml")
    assert "./prometheus:/etc/prometheus:ro" in COMPOSE["services"]["prometheus"]["volumes"]


def test_grafana_finds_its_dashboard_and_its_prometheus() -> None:
    provisioning = DOCKER / "grafana" / "provisioning"
    (provider,) = yaml.safe_load((provisioning / "dashboards" / "shoal.yaml").read_text())["providers"]
    (source,) = yaml.safe_load((provisioning / "datasources" / "prometheus.yaml").read_text())["datasources"]
    volumes = dict(volume.split(":")[:2] for volume in COMPOSE["services"]["grafana"]["volumes"])
    assert volumes["./grafana/dashboards"] == provider["options"]["path"]
    assert volumes["./grafana/provisioning"] == "/etc/grafana/provisioning"
    assert (DOCKER / "grafana" / "dashboards" / "shoal.json").is_file()
    host, port = source["url"].removeprefix("http://").split(":")
    assert f"127.0.0.1:{port}:{port}" in COMPOSE["services"][host]["ports"]


def test_only_this_machine_reaches_what_is_published() -> None:
    published = [port for service in COMPOSE["services"].values() for port in service.get("ports", ())]
    assert [port for port in published if not port.startswith("127.0.0.1:")] == []


def test_no_secret_is_in_the_environment() -> None:
    for service in COMPOSE["services"].values():
        for key, value in service.get("environment", {}).items():
            assert not re.search("PASSWORD|SECRET|KEY", key) or str(value).startswith("/run/secrets/")


# ---------------------------------------------------------------- the image


def test_what_the_image_copies_exists() -> None:
    copied = [*KERNEL.copied(), *IMAGE.copied()]
    assert [source for source in copied if not (ROOT / source).exists()] == []
    folder = re.search(r"--out (\S+)$", [*KERNEL.all("RUN")][-1].text)
    assert folder is not None
    assert IMAGE.copied(KERNEL.name) == [f"{KERNEL.only('WORKDIR')}/{folder[1]}"]


def test_the_kernel_is_built_of_all_its_sources_as_for_every_linux_by_the_oldest_rust() -> None:
    sources = {f"kernel/{name}" for name in kernel.BUILT}
    assert {*KERNEL.copied()} == {*sources, "requirements/wheels.lock"}
    oldest = tomllib.loads((kernel.KERNEL / "Cargo.toml").read_text("utf-8"))["package"]["rust-version"]
    assert KERNEL.image == f"rust:{oldest}-slim-bookworm"
    (made,) = re.findall(r"maturin (build(?:.*\\\n)*.*)", (ROOT / "Makefile").read_text("utf-8"))
    options = made.replace("\\\n", "").replace("--target $(TARGET)", "").split()  # the image is of its own processor
    assert [*KERNEL.all("RUN")][-1].text.partition("maturin ")[2].split() == options


def test_the_image_has_the_locked_packages_and_no_compiler() -> None:
    locked, ours = (one.words for one in IMAGE.all("RUN"))
    assert locked[:5] == ["pip", "install", "--no-cache-dir", "--require-hashes", "--no-deps"]
    files = [word for word in locked[5:] if word != "-r"]
    assert files == [str(lock_file(name).relative_to(ROOT)) for name in ("core", "geo", "postgres")]
    assert ours == ["pip", "install", "--no-cache-dir", "--no-deps", ".", "dist/*.whl"]
    assert (IMAGE.image, IMAGE.only("USER")) == ("python:3.11-slim", "1000")


def test_the_image_runs_a_worker_with_the_mounted_file_unless_another_command_is_given() -> None:
    command, config = COMMAND
    assert (ENTRYPOINT, command) == (["shoal"], "worker")
    assert config in mounted()


@pytest.mark.parametrize(("answer", "status"), [((200, b"{}"), 0), ((503, b"the reasons"), 1), (None, 1)])
def test_the_health_check_asks_the_port_of_the_mounted_file(
    answer: tuple[int, bytes] | None, status: int, tmp_path: Path
) -> None:
    listening = listen("127.0.0.1", 0, remedy="")
    config = tmp_path / "shoal.toml"
    port = str(listening.getsockname()[1])
    config.write_text((DOCKER / "shoal.toml").read_text("utf-8").replace("9100", port), "utf-8-sig")

    async def asked() -> subprocess.CompletedProcess[str]:
        if answer is None:
            listening.close()
        else:
            answers = {"/readyz": Answer(answer[1], answer[0])}
            serve_aside(listening, Names("0.0.0.0"), "", answers, lambda: answers)
        return await asyncio.to_thread(health, config)

    checked = asyncio.run(asked())
    assert checked.returncode == status, checked.stderr
    assert answer is None or checked.stderr == ("" if status == 0 else "the reasons\n")


def health(config: Path) -> subprocess.CompletedProcess[str]:
    """Run the health check beside a proxy that does not answer."""
    python, *arguments = health_command(config)
    assert python == "python"
    environment = dict.fromkeys(("http_proxy", "HTTP_PROXY"), "http://127.0.0.1:1")
    return subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
