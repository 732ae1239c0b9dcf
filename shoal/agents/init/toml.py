"""The configuration that answers make, with a comment at every line. A function of the answers alone."""

import json
from collections.abc import Iterator
from textwrap import wrap

from shoal.agents.init.answers import FOUND, NEVER, Answers
from shoal.agents.init.choices import (
    counts_users,
    finds_groups,
    form_of,
    has_group,
    has_value,
    in_a_tick,
    is_each,
    is_hidden,
    limits_each_group,
    loss_of,
    statistic_of,
    tick,
    unit_of,
    whose,
)
from shoal.models.loss_words import per

WIDTH = 33  # of what stands before a comment
COMMENT = 100  # of a line of comment alone
ESCAPED = {number: f"\\u{number:04x}" for number in (0x7F, *range(0x80, 0xA0), 0x2028, 0x2029)}
OF_TICK = {
    "mean": "average", "sum": "sum", "count": "number", "users": "number of people",
    "variance": "average and variance", "distribution": "distribution",
}  # fmt: skip


def written(said: Answers, config: str, stem: str) -> str:
    """The text of a configuration file of this name, whose key and audit log are called `stem`."""
    parts = (_head(said, config), _shared(said, stem), ["[[metric]]", *_metric(said)])
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


def quoted(text: str) -> str:
    r"""A text as TOML has it, in one line whatever is in it.

    >>> print(quoted('a "b"'), quoted("größe"), quoted(chr(127)))
    "a \"b\"" "größe" "\u007f"
    """
    return json.dumps(text, ensure_ascii=False).translate(ESCAPED)


def _line(key: str, value: str, comment: str = "") -> str:
    start = f"{key} = {value}"
    return f"{start:{WIDTH - 1}} # {comment}" if comment else start


def _head(said: Answers, config: str) -> Iterator[str]:
    of = {"count": "How many records there are", "users": "How many people there are"}
    what = of.get(said["statistic"]) or f"The {OF_TICK[said['statistic']]} of {quoted(said['value'])}"
    group = f" for each {quoted(said['group'])}," if has_group(said) else ""
    when = f"of each {tick(said)}" if is_each(said) else f"since the beginning, every {tick(said)}"
    yield f"# {what},{group} {when}, with a guarantee about {whose(said)}."
    yield "#"
    yield from (f"# {line}" for line in wrap(loss_of(said).cost, COMMENT, break_on_hyphens=False))
    yield "#"
    yield f"#     shoal plan {config}{'' if not is_hidden(said) else ' --users ' + said['users']}"
    yield f"#     shoal check {config}"
    yield f"#     shoal run {config} --input FILE --output releases.jsonl"
    yield "#"
    yield "# All of it may be changed until the first run; what affects the guarantee then needs a new `version`."
    yield "# Every key is explained in docs/reference/configuration.md."


def _shared(said: Answers, stem: str) -> Iterator[str]:
    yield "[audit]"
    yield _line("url", quoted(f"sqlite:///{stem}.db"), "what was released, and what it cost")
    yield ""
    yield "[privacy]"
    yield _line("key_file", quoted(f"{stem}.key"), "relative to this file; keep it secret, and a copy of it")
    yield _line("epsilon", said["epsilon"], f"the budget, {per(unit_of(said))}; all metrics of this audit log share it")
    if finds_groups(said):
        yield _line("delta", said["delta"], "the budget's delta")


def _metric(said: Answers) -> Iterator[str]:
    yield _line("name", quoted(said["name"]), "of the statistic, in releases and in the ledger")
    yield _line("topic", quoted(said["topic"]), "on Kafka, where the events are")
    yield _line("user", quoted(said["user"]), "fields of an event: whose it is")
    if has_value(said):
        yield _line("value", quoted(said["value"]), "the number in it")
    yield _line("time", quoted(said["time"]), "when it was")
    if has_group(said):
        yield _line("group", quoted(said["group"]), "a result for each")
    yield from _groups(said)
    yield from _relation(said)
    yield from _statistic(said)
    if has_value(said):
        yield _line(
            "range", f"[{', '.join(said['range'].split())}]", "public; values outside are moved to the nearest end"
        )
    yield from _privacy(said)


def _groups(said: Answers) -> Iterator[str]:
    if "groups" in said and said["groups"] != FOUND:
        names = ", ".join(quoted(name) for name in json.loads(said["groups"]))
        yield _line("groups", f"[{names}]", "public: these are released, empty or not, and no others")


def _relation(said: Answers) -> Iterator[str]:
    if is_hidden(said):
        yield _line("relation", '"add-remove"', "hidden: whether a person is there at all, and all of their records")
        yield _line("start", said["start"], "public; all before it does not count")
        if said["end"] != NEVER:
            yield _line("end", said["end"], "public; nor what is after it")
    else:
        yield _line("relation", '"values"', "hidden: the values; who contributes, when, in which group, is public")


def _statistic(said: Answers) -> Iterator[str]:
    what, every = OF_TICK[said["statistic"]], quoted(said["every"])
    when = f"of each {tick(said)} by itself; released once, at its end" if is_each(said) else "since the beginning"
    yield _line("statistic", quoted(statistic_of(said)), f"the {what} {when}")
    if form_of(said).is_slotted:
        yield _line("slot", every, "by the times of events, in UTC")
        return
    yield _line("every", every, "how often it is released, by the times of events, in UTC")
    if is_each(said):
        yield _line("decay", f'{{ kind = "window", length = {every} }}', "each step counts by itself")
        yield _line("unit", quoted(f"user-{_period(said)}"), "the guarantee is for a person in such a time")


def _period(said: Answers) -> str:
    name = tick(said)
    return name if name in ("day", "hour", "week") else said["every"]


def _privacy(said: Answers) -> Iterator[str]:
    yield _line("epsilon", said["epsilon"], per(unit_of(said)))
    if finds_groups(said):
        yield _line("delta", said["delta"], "the chance that a group is published because of one person")
    yield from _limits(said)
    if not is_hidden(said):
        yield _line("users", said["users"], "expected; for predictions and accuracy, never the guarantee")


def _limits(said: Answers) -> Iterator[str]:
    groups, of = said.get("max-groups", "1"), f"of a person{in_a_tick(said)}"
    if counts_users(said):
        yield _line("max_contributions", groups, f"groups {of} that count")
        if has_group(said) and not is_each(said):
            yield _line("max_groups", groups)
        return
    limit = said["max-contributions"]
    if has_group(said) and limits_each_group(said):
        yield _line("max_per_group", limit, f"records {of} that count in each group; further ones are left out")
        yield _line("max_groups", groups, f"groups {of} that count; they share epsilon")
        return
    yield _line("max_contributions", limit, f"records {of} that count; further ones are left out")
    if has_group(said) and not is_hidden(said):
        yield _line("max_groups", limit, "groups share the records that count; more cost no noise")
