"""`shoal init`: asks for a configuration, or takes it from options; proposes fields by a sample's names and forms."""

import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from shoal.agents.audit import key_file
from shoal.agents.cli.commands.check import check
from shoal.agents.cli.commands.plan import plan
from shoal.agents.cli.output import say, show
from shoal.agents.init.answers import NEVER
from shoal.agents.init.choices import STATISTICS, is_hidden
from shoal.agents.init.dialogue import converse
from shoal.agents.init.draft import Draft, Unanswered, completed, draft, stem_of
from shoal.agents.init.questions import Known
from shoal.agents.init.roles import propose
from shoal.agents.init.sample import READ, Sample, read_sample
from shoal.models.errors import InputError
from shoal.models.printable import printable

ASK_SAMPLE = "Is there a file of such events, of which names and forms of fields may be read? [its name, or Enter]: "
ASK_KEY = "Make the secret key {}, from which all noise comes? [Y/n]: "
SCHEMA = "shoal.schema.json"  # as the help of `shoal schema` calls it
Written = Annotated[Path, typer.Argument(metavar="CONFIG", help="The configuration to write; never overwritten.")]
Answer = str | None


def init(
    config: Written = Path("shoal.toml"),
    sample: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Events (.jsonl, .json, .csv, .tsv, .pb, any .gz); only names and forms are looked at."
        ),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Ask nothing: take the options, and defaults for the rest.")
    ] = False,
    key: Annotated[
        bool | None, typer.Option("--key/--no-key", help="Whether to make the secret key, too; default: ask, or yes.")
    ] = None,
    relation: Annotated[Answer, typer.Option(metavar="values|add-remove", help="Is it secret who is there?")] = None,
    statistic: Annotated[
        Answer,
        typer.Option(metavar="NAME", help=f"The statistic that is published: {', '.join(STATISTICS)}."),
    ] = None,
    user: Annotated[Answer, typer.Option(metavar="FIELD", help="The field that says whose record it is.")] = None,
    value: Annotated[Answer, typer.Option(metavar="FIELD", help="The field that has the number.")] = None,
    time: Annotated[Answer, typer.Option(metavar="FIELD", help="The field that has the time.")] = None,
    group: Annotated[
        Answer,
        typer.Option(metavar="FIELD|none", help="The field by which groups are formed, each with a result of its own."),
    ] = None,
    groups: Annotated[
        Answer, typer.Option(metavar="A,B,...|found", help="With add-remove: which groups there are.")
    ] = None,
    span: Annotated[
        Answer,
        typer.Option(
            metavar="each|all", help="One result for each period of time, or one for all since the beginning."
        ),
    ] = None,
    every: Annotated[
        Answer, typer.Option(metavar="DURATION", help="How long a period is, or how often there is a result.")
    ] = None,
    start: Annotated[Answer, typer.Option(metavar="TIME", help="With add-remove: when the data begins.")] = None,
    end: Annotated[Answer, typer.Option(metavar="TIME|never", help="With add-remove: when it ends.")] = None,
    range_: Annotated[
        Answer,
        typer.Option(
            "--range", metavar="'LOW HIGH'", help="The range of the values, which must not be taken from the data."
        ),
    ] = None,
    users: Annotated[Answer, typer.Option(metavar="N", help="The number of people to predict the error for.")] = None,
    epsilon: Annotated[Answer, typer.Option(metavar="NUMBER", help="How much may be learned about one person.")] = None,
    delta: Annotated[
        Answer, typer.Option(metavar="NUMBER", help="With groups that are found: the delta that finding them takes.")
    ] = None,
    max_contributions: Annotated[Answer, typer.Option(metavar="N", help="Records of a person that count.")] = None,
    max_groups: Annotated[Answer, typer.Option(metavar="N", help="Groups of a person that count.")] = None,
    name: Annotated[Answer, typer.Option(metavar="NAME", help="The name of the metric.")] = None,
    topic: Annotated[Answer, typer.Option(metavar="NAME", help="The name of the topic.")] = None,
) -> None:
    """Write a first configuration: answer questions, or give the answers as options.

    With a sample it proposes which field is the user, the value, the time and the group, by names and forms alone. It
    never takes a range, a number of people or a list of groups from data: what is looked up in the data tells of it.
    Nothing is registered or charged, and no file is overwritten. It ends with what `shoal plan` and `shoal check` say.

    Example: shoal init shoal.toml --sample examples/visits.csv
    """
    given = {
        "relation": relation, "statistic": statistic, "user": user, "value": value, "time": time, "group": group,
        "groups": groups, "span": span, "every": every, "start": start, "end": end, "range": range_, "users": users,
        "epsilon": epsilon, "delta": delta, "max-contributions": max_contributions, "max-groups": max_groups,
        "name": name, "topic": topic,
    }  # fmt: skip
    options = {question: text for question, text in given.items() if text is not None}
    _check_place(config)
    if sample is None and not yes:
        sample = _ask(ASK_SAMPLE).strip() or None
    seen = None if sample is None else read_sample(sample)
    known = Known() if seen is None else Known(seen.fields, propose(seen.fields), seen.stem)
    if seen is not None:
        for line in _described(seen, known):
            say(printable(line))
    try:
        made = draft(completed(options, known), config) if yes else converse(options, known, config, _ask, say)
    except Unanswered as error:
        raise typer.BadParameter(error.why, param_hint=f"--{error.name}") from None
    except KeyboardInterrupt:
        say("\nshoal: stopped; nothing was written")
        raise typer.Exit(130) from None
    _write(config, _schema_line(config) + made.text)
    secret = config.with_name(f"{stem_of(config)}.key")
    has_key = _make_key(secret, wanted=key, asks=not yes)
    show(f"{config}: written\n")
    plan(config, users=int(made.answers["users"]))
    show("")
    if has_key:
        check(config)
    for line in _next(config, secret, seen, made, has_key=has_key):
        show(line)


def _described(sample: Sample, known: Known) -> Iterator[str]:
    """What was seen of a sample, which is all that anything here depends on."""
    read = "its records" if sample.is_whole else f"its first {READ:,} records"
    yield f"{sample.path}: names and forms of the fields of {read} were looked at, and nothing else:"
    roles = {proposal.path: role for role, proposal in (known.proposals or {}).items()}
    for field in sample.fields:
        role = "" if field.fault or field.path not in roles else f"  -> {roles[field.path]}?"
        yield f"  {field.path:20} {field.fault or f'{field.form.value}, {field.often}'}{role}"


def _ask(prompt: str) -> str:
    """What is typed; the prompt is on stderr, where all is that is no result."""
    print(prompt, end="", file=sys.stderr, flush=True)
    try:
        return input()
    except EOFError:
        raise InputError(
            "the answers ended before the last question, and nothing was written; give them as options with --yes"
        ) from None


def _check_place(config: Path) -> None:
    if os.path.lexists(config):
        raise InputError(f"{config} exists and is not overwritten; name another file, as in: shoal init other.toml")
    if not config.parent.is_dir():
        raise InputError(f"{config}: there is no folder {config.parent}; make it, or name another place")


def _schema_line(config: Path) -> str:
    """The line by which editors find a schema that stands beside the configuration; none if they would find nothing."""
    return f"#:schema ./{SCHEMA}\n\n" if config.with_name(SCHEMA).is_file() else ""


def _write(config: Path, text: str) -> None:
    """Write the file whole, or leave none."""
    try:
        with config.open("x", encoding="utf-8") as file:
            try:
                file.write(text)
                file.flush()
            except BaseException:
                with suppress(OSError):
                    config.unlink()
                raise
    except FileExistsError:
        raise InputError(f"{config} exists by now and is not overwritten; run the command again with another") from None
    except OSError as error:
        raise InputError(f"{config}: cannot be written ({error.strerror}); choose another place") from None


def _make_key(secret: Path, *, wanted: bool | None, asks: bool) -> bool:
    """Make the key unless it is there, or not wanted; whether it is there then."""
    if secret.exists():
        say(f"shoal: the key {secret} is there already, and will be used")
        return True
    if wanted is None and asks:
        wanted = _ask(ASK_KEY.format(secret)).strip().lower() in ("", "y", "yes")
    if wanted is False:
        return False
    say(f"shoal: {secret}: new key {key_file.new(secret).fingerprint}; keep it secret, and a copy in a safe place")
    return True


def _next(config: Path, secret: Path, sample: Sample | None, made: Draft, *, has_key: bool) -> Iterator[str]:
    """The last lines: which command runs the new configuration, on the sample or else on a file of events."""
    events = "EVENTS.jsonl" if sample is None else shlex.quote(sample.path)
    yield "\nnext:"
    if not has_key:
        yield f"  shoal key new {shlex.quote(str(secret))}"
        yield f"  shoal check {shlex.quote(str(config))}"
    if is_hidden(made.answers) and made.answers["end"] == NEVER:
        yield "  add [kafka] to it and start a worker: docs/guides/kafka.md"
        return
    if is_hidden(made.answers) and sample is not None and not sample.is_lines:
        yield "  with relation add-remove a run reads JSON lines alone: write the events as such, one in each line"
        events = "EVENTS.jsonl"
    yield f"  shoal run {shlex.quote(str(config))} --input {events} --output releases.jsonl"
    yield "  shoal tail --input releases.jsonl"
