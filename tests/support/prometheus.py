"""A real Prometheus, and its promtool: programs of the machine, as they are no Python package."""

import json
import shutil
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml

MISSING = "{} is not installed, which tests of metrics, alerts and dashboard need: run `make tools`"
START_LIMIT = 60.0


def program(name: str) -> str:
    """The path of `prometheus` or `promtool`."""
    found = shutil.which(name)
    assert found is not None, MISSING.format(name)
    return found


def promtool(*arguments: object, said: str | None = None) -> str:
    """Run it on files, or on what is said; what it answers, if it finds nothing wrong."""
    command = [program("promtool"), *map(str, arguments)]
    done = subprocess.run(command, input=said, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


class Prometheus:
    """One server that scrapes ports of this machine every second; it ends with the context."""

    def __init__(self, folder: Path, port: int, targets: Iterable[int], config: Mapping[str, Any]) -> None:
        self._url = f"http://127.0.0.1:{port}"
        job = {"job_name": "shoal", "static_configs": [{"targets": [f"127.0.0.1:{target}" for target in targets]}]}
        every = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        file = folder / "prometheus.yaml"
        file.write_text(yaml.safe_dump({**config, "global": every, "scrape_configs": [job]}))
        self.log = folder / "prometheus.log"
        options = {
            "config.file": file, "storage.tsdb.path": folder / "data", "web.listen-address": f"127.0.0.1:{port}",
            "log.level": "warn",
        }  # fmt: skip
        command = [program("prometheus"), *(f"--{name}={value}" for name, value in options.items())]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def __enter__(self) -> Self:
        until = time.monotonic() + START_LIMIT
        while not self._is_ready():
            assert self._process.poll() is None, self.log.read_text()
            assert time.monotonic() < until, self.log.read_text()
            time.sleep(0.1)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.terminate()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _is_ready(self) -> bool:
        try:
            return bool(urllib.request.urlopen(f"{self._url}/-/ready", timeout=5).status == 200)
        except OSError:
            return False

    def ask(self, expression: str) -> list[tuple[dict[str, str], float]]:
        """What an expression is now: labels and value of each series."""
        query = urllib.parse.urlencode({"query": expression})
        try:
            with urllib.request.urlopen(f"{self._url}/api/v1/query?{query}", timeout=30) as answer:
                found = json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{expression}: {error.read().decode()}") from None
        if found["resultType"] == "scalar":
            return [({}, float(found["result"][1]))]
        return [(one["metric"], float(one["value"][1])) for one in found["result"]]

    def rules(self) -> dict[str, str]:
        """Alert -> health, of the rules that it has loaded."""
        with urllib.request.urlopen(f"{self._url}/api/v1/rules", timeout=30) as answer:
            groups = json.load(answer)["data"]["groups"]
        return {rule["name"]: rule["health"] for group in groups for rule in group["rules"]}
