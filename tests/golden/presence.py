"""The cases of what protects presence: declared keys, and keys that are found."""

from typing import Any

from tests.golden.case import WINDOW, Case, Metric
from tests.golden.events import Stream

FADING = {"kind": "exponential", "half_life": "10h"}
BEATS = Stream(count=300, beats=True, refusals=False)
SOON = {"share": "0.5", "epsilon": 3, "crossing": "0.5"}  # so that some units of the stream are enough


def present(name: str, statistic: str, decay: Metric | None = None, **more: Any) -> Metric:
    """What protects presence, of keys that are declared."""
    usual = {"name": name, "statistic": statistic, "relation": "add-remove", "every": "6h", "epsilon": 4,
             "start": "2024-03-01", "end": "2024-03-06", "max_contributions": 3}  # fmt: skip
    decayed = {} if decay is None else {"decay": decay}
    nothing = {"value": None, "range": None, "grid": None} if statistic in ("count", "users") else {}
    return usual | decayed | nothing | more


def found(name: str, statistic: str, decay: Metric | None = None, **more: Any) -> Metric:
    """What protects presence, of keys that nobody declared; few users are enough."""
    usual = {"group": "g", "delta": "1e-6", "epsilon": 8, "selection": {"epsilon": 1}}
    return present(name, statistic, decay, **usual | more)


def in_slots(name: str, statistic: str, **more: Any) -> Metric:
    """What protects presence per slot."""
    usual = {"name": name, "statistic": statistic, "relation": "add-remove", "slot": "6h", "epsilon": 12,
             "start": "2024-03-01", "end": "2024-03-06", "max_contributions": 3}  # fmt: skip
    return usual | more


PRESENCE = (
    Case("presence", (
        present("mean", "mean"), present("sum", "sum"), present("count", "count"),
        present("users", "users", {"kind": "none"}), present("both", "variance", epsilon=20),
    ), BEATS, in_full=True),
    Case("presence in windows", (
        present("mean", "mean", WINDOW, group="g", groups=("g1", "g2", "g7"), clamp=False),
        present("sum", "sum", WINDOW, range=(-20, 80)), present("count", "count", WINDOW, unit="user-day"),
        present("users", "users", {"kind": "window", "length": "6h"}),
        present("both", "variance", WINDOW, epsilon=20),
        present("gauss", "sum", {"kind": "window", "length": "4d"}, epsilon="0.1", delta="1e-3"),
    ), BEATS),
    Case("presence that fades", (
        present("mean", "mean", FADING, every="6h"), present("sum", "sum", FADING, range=(20, 80)),
        present("count", "count", FADING, unit="event", max_contributions=None),
        present("both", "variance", FADING, epsilon=20),
    ), BEATS),
    Case("keys that are found", (
        found("mean", "mean", selection={"epsilon": "1.4"}), found("count", "count", WINDOW, unit="user-day"),
        found("users", "users", {"kind": "none"}, max_groups=3, selection={"epsilon": 3}),
        found("each-day", "users", {"kind": "window", "length": "6h"}, unit="user-day"),
        found("both", "variance", epsilon=20, max_groups=2, selection={"epsilon": "1.5"}),
    ), BEATS, in_full=True),
    Case("keys that are found late", (
        found("fading", "sum", FADING, range=(-20, 80)), found("slow", "mean", {"kind": "polynomial", "exponent": 2}),
        found("forward", "count", {"kind": "forward", "exponent": 1}),
        found("table", "mean", {"kind": "table", "weights": ("1", "0.5")}, delta="1e-3"),
        found("doubling", "count", end=None, life="6h", unit="event", max_contributions=None),
    ), BEATS),
    Case("presence per slot", (
        in_slots("mean", "mean"), in_slots("both", "variance", unit="user-day", clamp=False),
        in_slots("declared", "mean", group="g", groups=("g1", "g2", "g7"), max_contributions=5),
        in_slots("found", "mean", group="g", delta="0.1", max_groups=2),
        in_slots("found-of-a-day", "variance", group="g", delta="0.2", unit="user-day", epsilon=40),
    ), BEATS, in_full=True),
    Case("presence in ranges that are chosen", (
        present("mean", "mean", clip=SOON), present("sum", "sum", WINDOW, group="g", groups=("g1", "g2"), clip=SOON),
        found("late", "mean", WINDOW, epsilon=12, selection={"epsilon": 5}, clip=SOON),
        present("never", "mean", FADING, clip="auto", users=40),
    ), BEATS),
    Case("presence in bins", (
        present("usual", "distribution", epsilon=20),
        present("few", "distribution", WINDOW, bins=5, quantiles=("1/3",)),
        present("fades", "distribution", FADING, bins=3, group="g", groups=("g1", "g7"), epsilon=20),
        found("found", "distribution", bins=4, epsilon=20, max_groups=2, selection={"epsilon": "1.5"}),
    ), BEATS),
    Case("distributions that protect presence", (
        in_slots("bins", "distribution", slot="12h", bins=300, epsilon=200, unit="user-day"),
        in_slots("found", "distribution", group="g", delta="0.1", bins=8, quantiles=("0.1", "0.5"), epsilon=60),
    ), BEATS),
)  # fmt: skip
