"""`shoal label`: the privacy facts of a deployment, for those who sign them and those who read them."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from shoal.agents.audit.session import load_config
from shoal.agents.cli.output import AsJson, ConfigPath, open_output, refuse_packed, result, say, writing
from shoal.agents.input.same_files import deployment_files, refuse_same
from shoal.agents.label.facts import Facts, read_facts
from shoal.agents.label.text import text
from shoal.models.errors import InputError

Html = Annotated[
    str | None, typer.Option(metavar="FILE", help="Write the label as a page that prints on one sheet; - for stdout.")
]
Registry = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Write a record for OpenDP's registry of deployments, in YAML; what was filled into FILE before is kept.",
    ),
]
Verify = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Say whether this label, written with --json, still describes the deployment."),
]


def label(
    config: ConfigPath, html: Html = None, registry: Registry = None, verify: Verify = None, as_json: AsJson = False
) -> None:
    """Say what a deployment promises to whom, what it costs and what is not protected, in the words of `check`.

    It reads configuration and ledger, and needs neither key nor events. The label ends with a digest of all that it
    describes: versions with their parameters, charges, budget and log. Whoever signs the digest signs these; --verify
    says later whether they are still the same.

    Example: shoal label shoal.toml --html label.html
    """
    refuse_packed(html=html, registry=registry)
    loaded = load_config(config)
    kept = {**deployment_files(config, loaded), "--verify": verify}
    refuse_same({"--html": html, "--registry": registry}, kept)
    facts = read_facts(loaded)
    if verify is not None:
        _verify(verify, facts)
    with ExitStack() as files, writing(html, registry):
        if html is not None:
            from shoal.agents.label.page import page

            open_output(files, html).write(page(facts).encode())
        if registry is not None:
            open_output(files, registry).write(_record(registry, facts))
    if html is None and registry is None and verify is None or as_json:
        result(facts.fields(), as_json=as_json, text=lambda: text(facts))


def _record(path: str, facts: Facts) -> bytes:
    """The registry's record as YAML; remarks on stderr say what is left to fill in."""
    import yaml

    from shoal.agents.label.registry import open_points, record

    try:
        former = yaml.safe_load(Path(path).read_text()) if path != "-" and Path(path).is_file() else None
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        raise InputError(f"{path}: is there and cannot be read as YAML; move it, or name another file") from None
    try:
        made = record(facts, datetime.now(UTC).date(), former)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    for point in open_points(made):
        say(f"shoal: to be filled in: {point}")
    return yaml.safe_dump(made, sort_keys=False, allow_unicode=True, width=100).encode()


def _verify(path: Path, facts: Facts) -> None:
    """Compare with a former label; what differs is named, and ends the command with status 1."""
    try:
        former = orjson.loads(path.read_bytes())
        digest, described = former["digest"], former["describes"]
        differences = list(_differences(described, facts.described()))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
        raise InputError(f"{path}: is no label; name a file that `shoal label CONFIG --json` wrote") from None
    if digest == facts.digest:
        say(f"shoal: {path} still describes this deployment (digest {digest})")
        return
    for difference in differences or ["its digest, which is not that of what it describes: the file was changed"]:
        say(f"shoal: differs: {difference}")
    say(f"shoal: {path} describes another state than this one; make a new label, and have it signed")
    sys.exit(1)


def _differences(former: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for key in ("log", "unit", "relation", "epsilon", "delta"):
        if former[key] != now[key]:
            yield f"{key}: {former[key]} then, {now[key]} now"
    held, present = _by_version(former), _by_version(now)
    for name in sorted(held.keys() | present.keys()):
        if name not in present:
            yield f"{name}: described then, not there now"
        elif name not in held:
            yield f"{name}: new"
        elif held[name] != present[name]:
            changed = ", ".join(key for key in present[name] if held[name].get(key) != present[name][key])
            yield f"{name}: {changed}"


def _by_version(described: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    return {f"{each['app']}: {each['metric']} version {each['version']}": each for each in described["metrics"]}
