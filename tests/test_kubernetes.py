"""The manifests for Kubernetes name only commands, options, paths, ports and probes that exist, and place the key well.

No cluster is at hand: what a cluster would do with them is read out of them here, and the script that runs before shoal
in each pod is run as it is.
"""

import re
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from shoal import __version__
from shoal.agents.audit import key_file
from shoal.agents.audit.key_file import NoiseUse
from shoal.agents.cli.main import app
from shoal.agents.worker import process, web
from shoal.models.config.file import load
from shoal.models.version import NoiseName

FOLDER = Path(__file__).parent.parent / "docker" / "kubernetes"
KUSTOMIZATION: dict[str, Any] = yaml.safe_load((FOLDER / "kustomization.yaml").read_text("utf-8"))
MANIFESTS = {
    (document["kind"], document["metadata"]["name"]): document
    for file in sorted(FOLDER.glob("*.yaml"))
    if file.name != "kustomization.yaml"
    for document in yaml.safe_load_all(file.read_text("utf-8"))
}
WORKERS = MANIFESTS["StatefulSet", "shoal-worker"]["spec"]
CONFIG = load(FOLDER / "shoal.toml")


def pods() -> Iterator[tuple[str, dict[str, Any]]]:
    for (_, name), document in MANIFESTS.items():
        if "template" in document["spec"]:
            yield name, document["spec"]["template"]["spec"]


def containers(pod: dict[str, Any]) -> list[dict[str, Any]]:
    return [*pod.get("initContainers", ()), *pod["containers"]]


PODS = dict(pods())
CONTAINERS = [pytest.param(pod, one, id=f"{name}-{one['name']}") for name, pod in pods() for one in containers(pod)]


def test_what_is_applied_is_there() -> None:
    resources = KUSTOMIZATION["resources"]
    assert [name for name in resources if not (FOLDER / name).is_file()] == []
    optional = {file.name for file in FOLDER.glob("*.yaml")} - {*resources, "kustomization.yaml"}
    assert optional == {"beat.yaml"}
    assert "  # - beat.yaml\n" in (FOLDER / "kustomization.yaml").read_text()  # to be let in with add-remove
    (generated,) = KUSTOMIZATION["configMapGenerator"]
    assert [name for name in generated["files"] if not (FOLDER / name).is_file()] == []
    assert KUSTOMIZATION["images"][0]["newTag"] == __version__


def test_config_maps_and_secrets_are_those_that_kustomize_makes_and_names_by_content() -> None:
    made = {"configMap": KUSTOMIZATION["configMapGenerator"], "secret": KUSTOMIZATION["secretGenerator"]}
    assert "generatorOptions" not in KUSTOMIZATION  # which could take the suffix away
    for pod in PODS.values():
        for volume in pod["volumes"]:
            used = volume.get("configMap", {}).get("name"), volume.get("secret", {}).get("secretName")
            for name, generators in zip(used, made.values(), strict=True):
                assert name is None or name in {one["name"] for one in generators}


@pytest.mark.parametrize(("pod", "container"), CONTAINERS)
def test_every_command_exists_with_its_options_and_files(pod: dict[str, Any], container: dict[str, Any]) -> None:
    assert container["image"] in {image["name"] for image in KUSTOMIZATION["images"]}
    mounted = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    claimed = (
        {claim["metadata"]["name"] for claim in WORKERS["volumeClaimTemplates"]}
        if pod is PODS["shoal-worker"]
        else set()
    )
    assert {*mounted.values()} <= {volume["name"] for volume in pod["volumes"]} | claimed
    *command, config = (container.get("command") or container["args"])[:2]
    folder, name = config.rsplit("/", 1)
    assert mounted[folder] == "config"
    assert name in KUSTOMIZATION["configMapGenerator"][0]["files"]
    if "command" in container:
        assert (command, name) == (["sh"], "place-key.sh")
        return
    shown = CliRunner().invoke(app, [*command, "--help"])
    assert shown.exit_code == 0
    assert [word for word in container["args"] if word.startswith("--") and word not in shown.output] == []


@pytest.mark.parametrize(("pod", "container"), CONTAINERS)
def test_nothing_may_do_more_than_it_must(pod: dict[str, Any], container: dict[str, Any]) -> None:
    image = (FOLDER.parent / "Dockerfile").read_text("utf-8")
    assert pod["securityContext"]["runAsNonRoot"]
    assert f"USER {pod['securityContext']['runAsUser']}\n" in image
    assert not pod["automountServiceAccountToken"]
    context = container["securityContext"]
    assert (context["allowPrivilegeEscalation"], context["readOnlyRootFilesystem"]) == (False, True)
    assert context["capabilities"] == {"drop": ["ALL"]}


def test_the_configuration_finds_its_key_and_its_password_where_the_script_puts_them() -> None:
    script = (FOLDER / "place-key.sh").read_text("utf-8")
    defaults = dict(re.findall(r"^(\w+)=\$\{\w+:-(\S+)\}$", script, re.MULTILINE))
    assert str(CONFIG.privacy.key_file) == f"{defaults['key']}/shoal.key"
    (passfile,) = re.findall(r"passfile=([^&]+)", CONFIG.audit.url)
    assert passfile == f"{defaults['run']}/pgpass"
    for name in ("shoal-worker", "shoal-prepare"):
        for container in containers(PODS[name]):
            mounts = {mount["mountPath"]: mount for mount in container["volumeMounts"]}
            # the key's volume is mounted above its folder, for the folder's mode is ours to set
            assert not mounts[defaults["key"].rsplit("/", 1)[0]].get("readOnly")
            assert not mounts[defaults["run"]].get("readOnly")
            assert mounts[defaults["secret"]]["readOnly"]
        assert PODS[name]["initContainers"][0]["name"] == "place-key"
    # and a worker's stays when the pod goes, and when the number of workers is lowered
    assert WORKERS["persistentVolumeClaimRetentionPolicy"] == {"whenDeleted": "Retain", "whenScaled": "Retain"}


def test_ports_and_probes_are_those_of_the_worker() -> None:
    (worker,) = PODS["shoal-worker"]["containers"]
    (port,) = worker["ports"]
    service = MANIFESTS["Service", "shoal-workers"]["spec"]
    annotations = WORKERS["template"]["metadata"]["annotations"]
    assert {port["containerPort"], service["ports"][0]["port"], int(annotations["prometheus.io/port"])} == {
        CONFIG.web.port
    }
    assert CONFIG.web.host == "0.0.0.0"
    assert service["ports"][0]["targetPort"] == port["name"]
    paths = {kind: worker[f"{kind}Probe"]["httpGet"] for kind in ("startup", "liveness", "readiness")}
    assert {one["port"] for one in paths.values()} == {port["name"]}
    assert {kind: one["path"] for kind, one in paths.items()} == {
        "startup": "/healthz", "liveness": "/healthz", "readiness": "/readyz"
    }  # fmt: skip
    documented = str(web.__doc__)
    assert all(f"    {path} " in documented for path in {"/healthz", "/readyz", annotations["prometheus.io/path"]})


def test_a_pod_has_its_name_and_the_time_to_leave() -> None:
    (worker,) = PODS["shoal-worker"]["containers"]
    assert worker["args"][-2:] == ["--instance", "$(POD_NAME)"]
    assert worker["env"] == [{"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]
    assert PODS["shoal-worker"]["terminationGracePeriodSeconds"] > process.STOP_LIMIT + 10


def test_selectors_select_the_pods_and_nothing_else() -> None:
    labels = WORKERS["template"]["metadata"]["labels"]
    budget, service = MANIFESTS["PodDisruptionBudget", "shoal-workers"], MANIFESTS["Service", "shoal-workers"]
    assert WORKERS["selector"]["matchLabels"] == budget["spec"]["selector"]["matchLabels"] == labels
    assert service["spec"]["selector"] == labels
    assert WORKERS["serviceName"] == service["metadata"]["name"]
    others = [
        document["spec"]["template"]["metadata"]["labels"]
        for (kind, _), document in MANIFESTS.items()
        if kind in ("Job", "Deployment")
    ]
    assert labels not in others


# ---------------------------------------------------------------- the script


class Volumes:
    """What a pod has mounted."""

    def __init__(self, folder: Path) -> None:
        self.secret, self.key, self.run = folder / "secret", folder / "key" / "key", folder / "run"
        for each in (self.secret, self.key.parent, self.run):
            each.mkdir()
        self.new_secret()

    def new_secret(self) -> None:
        (self.secret / "shoal.key").unlink(missing_ok=True)
        key_file.new(self.secret / "shoal.key")
        (self.secret / "shoal.key").chmod(0o440)  # as a Secret volume with a group is
        (self.secret / "pgpass").write_text("postgres:5432:shoal:shoal:word\n")
        (self.secret / "pgpass").chmod(0o440)

    def place(self) -> subprocess.CompletedProcess[str]:
        shell = shutil.which("sh")
        assert shell
        where = {"SECRET": self.secret, "KEY": self.key, "RUN": self.run}
        environment = {name: str(path) for name, path in where.items()} | {"PATH": "/usr/bin:/bin"}
        script = [shell, str(FOLDER / "place-key.sh")]
        return subprocess.run(script, env=environment, capture_output=True, text=True, timeout=60)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_key_comes_to_a_volume_where_shoal_reads_it_and_writes_beside_it(tmp_path: Path) -> None:
    # given a new volume
    volumes = Volumes(tmp_path)
    assert volumes.place().returncode == 0
    # then shoal takes the key, and libpq the password file
    placed = volumes.key / "shoal.key"
    assert key_file.read(placed) == key_file.Key(
        bytes.fromhex((volumes.secret / "shoal.key").read_text()), key_file.read(placed).fingerprint
    )
    assert (mode(volumes.key), mode(placed), mode(volumes.run / "pgpass")) == (0o700, 0o600, 0o600)
    # when it has been used, and the volume was mounted for a group, which opens its files
    name = NoiseName("basket", 1, "d1")
    key_file.announce(placed, "log", "shoal", "workers", [name], dict)
    key_file.bind(placed, "log", [name], lambda: {name: NoiseUse("shoal", "workers", 0)})
    used = placed.with_name("shoal.key.used")
    before = used.read_bytes()
    for path in (volumes.key, placed, used):
        path.chmod(mode(path) | 0o060)
    assert volumes.place().returncode == 0
    # then it is private again, and what was noted beside it stays
    assert (mode(volumes.key), mode(placed), mode(used)) == (0o700, 0o600, 0o600)
    assert used.read_bytes() == before


def test_another_key_is_refused_and_the_first_stays(tmp_path: Path) -> None:
    volumes = Volumes(tmp_path)
    volumes.place()
    before = (volumes.key / "shoal.key").read_bytes()
    volumes.new_secret()
    refused = volumes.place()
    assert refused.returncode == 1
    assert refused.stderr.startswith("the Secret has another key than ")
    assert (volumes.key / "shoal.key").read_bytes() == before


def test_a_copy_that_was_cut_off_is_made_again(tmp_path: Path) -> None:
    volumes = Volumes(tmp_path)
    volumes.key.mkdir()
    (volumes.key / "shoal.key.new").write_text("half of")
    assert volumes.place().returncode == 0
    assert key_file.read(volumes.key / "shoal.key").secret.hex() == (volumes.secret / "shoal.key").read_text().strip()
