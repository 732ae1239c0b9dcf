"""Instructions of docker/Dockerfile, carried out outside a container: the kernel built, shoal installed, a worker run.

A folder stands for each stage's file system. Python or Rust is installed where its image has it, in usr/local.
Only apt-get and the change of the user are left out. Needs rustup and the package registries.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from shoal.agents.broker.process import free_port
from tests.support.dockerfile import COMMAND, CONFIG, ENTRYPOINT, FILE, ROOT, Instruction, Stage, health_command, read
from tests.support.kafka import Kafka
from tests.support.workers import LEAVES_WITHIN, PATIENCE, wait_until

pytestmark = pytest.mark.long


class Container:
    """Folder that stands for the file system of a stage."""

    def __init__(self, folder: Path, stage: Stage, others: Mapping[str, "Container"]) -> None:
        self.folder = self.workdir = folder
        self.variables: dict[str, str] = {}
        kind, _, tag = stage.image.partition(":")
        version = tag.partition("-")[0]
        if kind == "python":
            subprocess.run([sys.executable, "-m", "venv", str(folder / "usr/local")], check=True)
        else:
            self.variables |= {"RUSTUP_HOME": str(folder / "usr/local/rustup"), "RUSTUP_TOOLCHAIN": version}
            self.must("rustup", "toolchain", "install", "--profile", "minimal", version)
        for one in stage.instructions:
            self._carry_out(one, others)

    def inside(self, path: str) -> Path:
        """Place of a path of the image, which is relative to the working directory or absolute."""
        return self.folder / path.lstrip("/") if path.startswith("/") else self.workdir / path

    def _carry_out(self, one: Instruction, others: Mapping[str, "Container"]) -> None:
        if one.keyword == "WORKDIR":
            self.workdir = self.inside(one.text)
            self.workdir.mkdir(parents=True)
        elif one.keyword == "COPY":
            source = others[one.flags["from"]].folder if "from" in one.flags else ROOT
            *paths, target = one.words
            copy([source / path.lstrip("/") for path in paths], self.inside(target))
        elif one.keyword == "RUN" and not one.text.startswith("apt-get "):
            self.must("sh", "-c", one.text)

    @property
    def _environment(self) -> dict[str, str]:
        ours = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "SHOAL_", "COV"))}
        return {**ours, **self.variables, "PATH": f"{self.folder}/usr/local/bin:{os.environ['PATH']}"}

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command in the folder that stands for the container, and wait for its end."""
        return subprocess.run(
            command, cwd=self.workdir, env=self._environment, capture_output=True, text=True, check=False
        )

    def must(self, *command: str) -> str:
        """Run a command that ends well, and return what it prints."""
        done = self.run(*command)
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout

    @contextmanager
    def started(self, *command: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
        """A command that runs meanwhile."""
        with (
            log.open("wb") as output,
            subprocess.Popen(command, cwd=self.workdir, env=self._environment, stdout=output, stderr=output) as process,
        ):
            try:
                yield process
            finally:
                process.kill()


def copy(sources: list[Path], target: Path) -> None:
    """Copy files, and what is in folders, into a folder."""
    target.mkdir(parents=True, exist_ok=True)
    for source in sources:
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True)
        else:
            shutil.copy(source, target)


@pytest.fixture(scope="module")
def image() -> Iterator[Container]:
    """Container of the last stage, after all stages were carried out; nothing of their 1.3 GB is kept."""
    built = dict[str, Container]()
    with tempfile.TemporaryDirectory(prefix="shoal-image-") as folder:
        for stage in read():
            place = Path(folder) / (stage.name or "image")
            place.mkdir()
            built[stage.name] = Container(place, stage, built)
        yield built[""]


def test_its_worker_uses_the_kernel_and_is_healthy_while_it_is_ready(
    image: Container, postgresql_url: str, tmp_path: Path
) -> None:
    # given the files that are mounted, and that nothing runs
    config, key, port = image.inside(CONFIG), image.inside("/run/shoal/shoal.key"), free_port()
    for folder in (config.parent, key.parent):
        folder.mkdir(parents=True)
    config.write_text((FILE.parent / "shoal.toml").read_text("utf-8").replace("9100", str(port)))
    image.variables |= {"SHOAL_AUDIT_URL": postgresql_url, "SHOAL_PRIVACY_KEY_FILE": str(key)}

    def health() -> subprocess.CompletedProcess[str]:
        return image.run(*health_command(config))

    assert health().returncode == 1
    with Kafka() as broker:
        # when its default command runs after the one-shots of compose
        image.variables["SHOAL_KAFKA_BROKERS"] = broker.bootstrap
        image.must(*ENTRYPOINT, "key", "new", str(key))
        image.must(*ENTRYPOINT, "migrate", str(config))
        image.must(*ENTRYPOINT, "topics", str(config))
        log = tmp_path / "worker.log"
        command = [word.replace(CONFIG, str(config)) for word in COMMAND]
        with image.started(*ENTRYPOINT, *command, log=log) as worker:

            def is_healthy() -> bool:
                assert worker.poll() is None, log.read_text()
                return health().returncode == 0

            # then it becomes healthy, with the kernel
            wait_until(is_healthy, 90, log.read_text)
            check = ("check", str(config), "--workers", f"127.0.0.1:{port}", "--json")
            report = json.loads(image.must(*ENTRYPOINT, *check))
            assert (report["kernel"]["lane"], report["kernel"]["kernel"]) == ("kernel", "used")
            # and its health check prints the reasons while the broker is away
            broker.kill()
            wait_until(lambda: '"ready": false' in health().stderr, 90, log.read_text)
            assert health().returncode == 1
            # and neither is it when it has ended
            worker.send_signal(signal.SIGTERM)
            assert worker.wait(LEAVES_WITHIN * PATIENCE) == 0
            assert health().returncode == 1
