"""Prints docs/configuration.md: the reference of the configuration, generated from its models.

    python -m shoal.agents.config_reference > docs/configuration.md

Keys, types, bounds, defaults and meanings come from `shoal.models.config.file`; only the prose between the tables
stands here. A test compares the page with what this module prints. Nothing here can fail.
"""

import types
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from shoal.agents.config_slots import SLOTS, SLOTS_TAIL
from shoal.models.config.cell import CellSection
from shoal.models.config.decay import DecaySection
from shoal.models.config.durations import format_duration
from shoal.models.config.file import ENVIRONMENT, AuditSection, KafkaSection, PrivacySection, WebSection
from shoal.models.config.metric import MetricSection
from shoal.models.exact import exact_text

DURATIONS = frozenset(
    {"idle_after", "every", "lateness", "max_ahead", "step", "horizon", "length", "half_life", "slot"}
)

HEAD = """\
# Configuration

One TOML file, named on every command line. This page is generated from the models that read it:

```sh
python -m shoal.agents.config_reference > docs/configuration.md
```

A key that is not on this page is an error that names the nearest valid one. An error is one line that names the place
and what to do.

**Numbers** are decimals: `0.1` is exactly 1/10. They may also be written as text, `"0.1"` or `"1/3"`.

**Durations** are a whole number and a unit in quotes: `"30s"`, `"5m"`, `"1h"`, `"7d"`.

**Paths** that are relative start at the folder of the configuration file, also those of the environment and of a
`sqlite:///` URL.

**Fields** of an event are named as in its JSON; dots reach into nested objects: `customer.id`.

**Secrets** are never in the file: the key and a SASL password are files of their own, and a database password belongs
into a password file of the database's client, or into the environment.
"""

ENVIRONMENT_HEAD = """\
## Environment

These variables take the place of a key of the file, and win over it.
"""

KAFKA = """\
## `[kafka]`

Needed by the commands that touch Kafka. `shoal run` takes `app` from it, and `partitioner` and `idle_after`, because
they belong to a metric's registered parameters.

```toml
[kafka]
brokers = "kafka-1:9093,kafka-2:9093"
app = "shoal"
replication = 3
security_protocol = "SASL_SSL"
sasl_mechanism = "SCRAM-SHA-512"
sasl_username = "shoal"
sasl_password_file = "secrets/kafka-password"
ssl_cafile = "secrets/ca.pem"
```

`app` names the consumer group, the transactional ids and the topics: `APP.contributions`, `APP.releases`,
`APP.activations`, `APP.dead-letters`, `APP.bound.TOPIC.changelog` and `APP.release.changelog`. Another `app` is another
deployment, which starts from nothing and needs another key.

`partitioner` must be that of the events' producers: `murmur2` is the default of the Java client and of aiokafka,
`crc32` that of librdkafka's consistent partitioners. An event in a partition that is not its user's is a dead letter.

`partitions` is frozen once the topics exist.
"""

AUDIT = """\
## `[audit]`

```toml
[audit]
url = "postgresql+psycopg://shoal@postgres/shoal?passfile=/run/shoal/pgpass"
```

A SQLite file is made and migrated by the first command that opens it, and serves the workers of one host. PostgreSQL
is migrated by `shoal migrate` alone.
"""

PRIVACY = """\
## `[privacy]`

```toml
[privacy]
key_file = "shoal.key"
epsilon = 4.0
```

The budget is that of the ledger, over all metrics, versions and apps that use one audit log. The first registration
stores it. A later configuration may say less, never more: raising it is `shoal budget CONFIG --raise`.
"""

WEB = """\
## `[web]`

```toml
[web]
port = 8080
host = "0.0.0.0"
```

Without a port a worker listens nowhere.
"""

METRIC = """\
## `[[metric]]`

One table per statistic; several may read one topic, and an event is then read once.

```toml
[[metric]]
name = "basket"
topic = "purchases"
user = "customer.id"
value = "amount"
time = "at"
group = "country"
statistic = "mean"
algorithm = "naive"
range = [0, 200]
epsilon = 1.0
max_contributions = 64
max_groups_per_user = 2
users = 25000
every = "1h"
```
"""

METRIC_TAIL = """\
* **A field is value or pattern.** `user`, `time` and `group` are pattern, which is public; `value` is protected. A
  field that is one in some metric of a topic and the other in another is refused, parts of it (`a` and `a.b`) included,
  over all metrics of the audit log.
* **`epsilon`** covers everything: all groups, all releases, for ever. With `max_groups_per_user = G` each group runs at
  `epsilon / G`.
* **`step`** and `decay` are told [below](#decay-and-step-sums-counts-and-means-that-forget), and what is different with
  them.
* **Several coordinates**: `value = ["lat", "lon"]` with `range = [[-90, 90], [-180, 180]]`, and likewise `prior` and
  `sigma`. Each coordinate gets an equal share of `epsilon`. In a release `value`, `noise_sd`, `low` and `high` are
  lists. A record in which one coordinate is no number counts for none.
* **`max_contributions`** and the noise grow together; samples above it are left out and only counted.
* **`users`** sizes the counters. More users than expected cost accuracy, never privacy.
* **`every`** is a duration in the events' own time, aligned to the Unix epoch. A group releases at the end of every
  tick in which it got a contribution: with `naive` a sample, with `full` a block that closed. `"contribution"` releases
  at each one, in the order of the log.
* **`algorithm`** names one of George, Ramesh, Singh and Tyagi (2024), as printed. `naive` (Algorithm 2) adds up samples
  in one counter, with noise for `max_contributions` samples of a user. `full` (Algorithm 6) sums each user's samples
  into blocks of 1, 1, 2, 4, ... and clips them around private first estimates; see [known limits](known-limits.md) for
  when it pays. `single-tree` and `multi-tree` (Algorithms 4 and 5) clip such blocks around a `prior`, with one counter
  for all of a user's blocks or one for each size. `wishful` (Algorithm 3) has one block of all `max_contributions`
  samples: users with fewer never count, and no release comes before the first who has them.
* **`prior`** is a number in the range that the mean should be near: within its width over the root of
  `max_contributions`. It stands here, so it is public and must itself be private: a constant that anybody could have
  named, or the output of an earlier private release whose epsilon is charged there. A mean looked up in the data is
  neither, and breaks the guarantee. A wrong prior costs accuracy alone: blocks are clipped away from the truth.
* **`sigma`**, for the algorithms on blocks, says that a user's values scatter around their mean like sigma-subgaussian
  noise. `range` then bounds the mean alone: values are clipped at 64 sigma outside it, on the grid of the range, and
  blocks to widths that sigma decides. With `full` nothing is released before the first private estimate. If values
  scatter more than `sigma` says, the guarantee holds and accuracy is lost.
* **Changing anything** of a metric but its `name`, or `[kafka] partitioner` or `idle_after`, needs a higher `version`,
  which is charged anew.
"""


SUMS = """\
## `decay` and `step`: sums, counts and means that forget

```toml
[[metric]]
name = "sales"
topic = "purchases"
user = "customer.id"
value = "amount"
time = "at"
group = "country"
statistic = "sum"
step = "1h"
decay = { kind = "window", length = "7d" }
range = [0, 200]
epsilon = 1.0
max_contributions = 64
```

What has a `step` is released at the end of every step, from its group's first, whether something came or not. A step
that is `a` steps old counts with a weight that `decay` says:

| `decay` | weight |
| --- | --- |
| `{ kind = "none" }`, or no `decay` | 1 |
| `{ kind = "window", length = "7d" }` | 1 while `a` is less than `length / step`, then 0; `length` is a multiple |
| `{ kind = "all-windows" }` | 1; and `shoal window` tells the sum over any window afterwards, from what was published |
| `{ kind = "exponential", half_life = "1d" }` | 0.5 ** (`a` * `step` / `half_life`) |
| `{ kind = "exponential", alpha = 0.99 }` | `alpha` ** `a` |
| `{ kind = "polynomial", exponent = 1.5 }` | (`a` + 1) ** -`exponent`, to a relative 1e-6 up to ten million steps |
"""

SUMS_TAIL = """\
* **`statistic = "sum"`** adds the values up, `"count"` counts them, and `"mean"` with a `decay` divides the one by the
  other. A `count` is public under `relation = "values"`: it is exact, costs no epsilon whatever the configuration says,
  and needs neither `value` nor `range`; with a `value` it counts the events in which that is a number.
* **`algorithm = "sharp"`** takes the mechanism of least variance for the decay, and each release says which
  (`mechanism`): noise on every step (`per-step`), trees of blocks (`blue`), sums with linear weights (`hats`), and with
  a `delta` above 0 for windows a factorisation with Gaussian noise (`square-root`), where that is better.
  `"patent"` has those of Bolot, Fawaz, Muthukrishnan, Nikolov and Taft (2013), with the corrected budgets of their
  polynomial sum, whose `exponent` must be above 1.
* **`max_contributions`** counts a unit's samples over all its groups together, and `epsilon` is not split between
  groups: sums are linear, so `max_groups_per_user` costs nothing here.
* **`unit`** may be `"user"`; `"user-day"`, `"user-hour"`, `"user-week"` or any period, as `"user-12h"`: then counts,
  cap and guarantee are a person's of one period, and start again in the next; or `"event"`, which is weak, and has no
  `max_contributions`.
* **Silence.** After `max_gap` steps without a contribution, and never before a window is empty, a group rests until
  its next one. Time goes on for what it forgets.
* A mean of which nothing is left has `"value": null`. Sums are never clamped and may be negative: that is the noise.
"""


def page() -> str:
    """The whole page."""
    sections: list[tuple[str, type[BaseModel], str]] = [
        (KAFKA, KafkaSection, ""),
        (AUDIT, AuditSection, ""),
        (PRIVACY, PrivacySection, ""),
        (WEB, WebSection, ""),
        (METRIC, MetricSection, METRIC_TAIL),
        (SUMS, DecaySection, SUMS_TAIL),
        (SLOTS, CellSection, SLOTS_TAIL),
    ]
    parts = [HEAD, ENVIRONMENT_HEAD + "\n" + _table(("variable", "takes the place of"), _variables())]
    for prose, model, tail in sections:
        rows = (_row(name, field) for name, field in model.model_fields.items())
        table = _table(("key", "type", "default", "meaning"), rows)
        parts.append(prose + "\n" + table + ("\n" + tail if tail else ""))
    return "\n".join([*parts, NOT_BUILT])


def _variables() -> Iterator[tuple[str, ...]]:
    for variable, (section, key) in ENVIRONMENT.items():
        yield f"`{variable}`", f"`[{section}] {key}`"
    yield "`SHOAL_INSTANCE`", "`shoal worker --instance`"


def _table(head: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def _row(name: str, field: FieldInfo) -> tuple[str, ...]:
    kind = _kind(field.annotation, name)
    limits = _limits(field.metadata)
    return f"`{name}`", kind + (f", {limits}" if limits else ""), _default(name, field), field.description or ""


KINDS = {
    int: "integer",
    str: "text",
    bool: "boolean",
    Path: "path",
    Fraction: "number",
    DecaySection: "table",
    CellSection: "table",
}


def _kind(annotation: Any, name: str) -> str:
    """A type as users know it.

    >>> _kind(int, "version"), _kind(int, "lateness"), _kind(str | None, "time")
    ('integer', 'duration', 'text')
    """
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _kind(arguments[0], name)
    if origin is Literal:
        return " or ".join(f'`"{choice}"`' for choice in arguments)
    if origin in (Union, types.UnionType):
        return " or ".join(_kind(part, name) for part in arguments if part is not type(None))
    if origin is tuple and arguments[-1] is Ellipsis:
        return f"list of {_kind(arguments[0], name)}"
    if origin is tuple:
        return f"[{', '.join(_kind(part, name) for part in arguments)}]"
    if annotation is int and name in DURATIONS:
        return "duration"
    return KINDS[annotation]


def _limits(metadata: list[Any]) -> str:
    """Bounds and patterns in words."""
    found = {name: getattr(one, name) for one in metadata for name in ("ge", "gt", "le", "lt") if hasattr(one, name)}
    if found.keys() == {"ge", "le"}:
        return f"{found['ge']} to {found['le']}"
    words = {"ge": "at least", "gt": "greater than", "le": "at most", "lt": "less than"}
    limits = [f"{words[name]} {found[name]}" for name in found]
    patterns = [f"matches `{pattern}`" for one in metadata if (pattern := getattr(one, "pattern", None))]
    return ", ".join([*limits, *patterns])


def _default(name: str, field: FieldInfo) -> str:
    """A default as one writes it in TOML.

    >>> [_default(name, MetricSection.model_fields[name]) for name in ("lateness", "failure", "epsilon", "time")]
    ['`"0s"`', '`0.001`', 'required', 'none']
    """
    if field.is_required():
        return "required"
    value = field.default
    if value is None:
        return "none"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, int) and name in DURATIONS:
        return f'`"{format_duration(value)}"`'
    if isinstance(value, Fraction | Decimal):
        return f"`{exact_text(Fraction(value))}`"
    return f"`{value}`" if isinstance(value, int) else f'`"{value}"`'


NOT_BUILT = """\
## Not built yet

Refused, with a message that says so:

* for means without a decay every unit but `user`, and a `delta` above 0;
* every relation but `values`.
"""


if __name__ == "__main__":
    print(page(), end="")
