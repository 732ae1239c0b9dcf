"""The cases: every statistic, algorithm, decay, unit and form of a group or cell, each in a small case.

A case is data. What it says is what a configuration file says; a metric lacks only what `USUAL` fills in. Cases are
added at will.
"""

from tests.golden.case import (
    BUSY,
    EVEN,
    EVENTS,
    HEXAGONS,
    LONG,
    PLANE,
    QUIET,
    WINDOW,
    Case,
    mean,
    slotted,
    stepped,
)
from tests.golden.events import Stream
from tests.golden.presence import PRESENCE

MEANS = (
    Case("naive", (mean("naive", "naive"),), QUIET, in_full=True),
    Case("wishful", (
        mean("wishful", "wishful", prior="47.5", sigma="9.25"),
        mean("early", "wishful", prior=0, max_contributions=3),
    )),
    Case("single-tree", (mean("single", "single-tree", prior=50),)),
    Case("multi-tree", (mean("multi", "multi-tree", prior=50, epsilon=200),), kafka={"partitioner": "crc32"}),
    Case("full", (mean("full", "full", epsilon=400, max_contributions=40),), Stream(count=500), in_full=True),
    Case("full with groups", (
        mean("full", "full", "1h", epsilon=900, group="g", max_groups=2, failure="0.9"),
    ), BUSY),
    Case("full per contribution", (mean("full", "full", "contribution", epsilon=400, sigma=12),)),
    Case("contributions of several metrics", (
        mean("naive", "naive", "contribution", group="g"),
        mean("sharp", "sharp", "contribution", epsilon=90, users=None),
        stepped("count", "count", group="g"),
    ), QUIET),
    Case("sharp", (
        mean("short", "sharp", "1h", epsilon=40, life="9d"),
        mean("long", "sharp", "2h", epsilon=4000, max_contributions=100, users=None, clamp=False),
    ), BUSY),
    Case("sharp with groups", (
        mean("sharp", "sharp", "1h", epsilon=2000, group="g", max_groups=2, max_per_group=1000,
             life="2d"),
    ), Stream(count=600, pace=60, silence=30_000, units=30), in_full=True),
    Case("sharp with blocks", (
        mean("blocks", "sharp", "10m", epsilon=2000, max_contributions=128, life="2d"),
    ), Stream(count=1000, pace=60, silence=30_000, units=8, alike=True)),
    Case("three coordinates", (
        mean("full", "full", epsilon=1200, failure="0.9", sigma=(10, 800, 20), **PLANE),
    ), QUIET, in_full=True),
    Case("coordinates of other algorithms", (
        mean("naive", "naive", "1h", **PLANE),
        mean("sharp", "sharp", "1h", epsilon=600, **PLANE),
        mean("single", "single-tree", "2h", prior=(50, 0, "25.5"), **PLANE),
    ), BUSY),
    Case("late events dropped", (
        mean("strict", "naive", late="drop", lateness="10m"),
        mean("lenient", "full", epsilon=40, lateness="5h", late="drop", max_ahead="1d"),
        stepped("steps", "sum", lateness="2h"),
    )),
    Case("means of events", (
        mean("naive", "naive", "4h", group="g", users=300, **EVENTS),
        mean("sharp", "sharp", epsilon=90, users=None, **EVENTS),
        mean("limited", "sharp", "1h", epsilon=40, max_events_per_user=3, life="9d", **EVENTS),
        mean("three", "naive", **PLANE, **EVENTS),
    ), EVEN, kafka={"idle_after": "1h"}),
    Case("time of the record", (mean("stamped", "naive", time=None), stepped("timed", "count"))),
    Case("in order", (
        mean("naive", "naive", "4h", group="g"),
        mean("sharp", "sharp", epsilon=90),
        stepped("sum", "sum", WINDOW, group="g"),
        slotted("slots", group="g", max_groups=2, slot="6h"),
    ), EVEN, kafka={"idle_after": "1h"}),
)  # fmt: skip

SUMS = (
    Case("no decay", (
        stepped("sum", "sum"), stepped("count", "count"), stepped("mean", "mean", {"kind": "none"}, life="30d"),
    )),
    Case("window", (stepped("sum", "sum", WINDOW), stepped("count", "count", WINDOW)), QUIET, in_full=True),
    Case("long windows", (
        stepped("hats", "sum", {"kind": "window", "length": "8d"}),
        stepped("longer", "mean", {"kind": "window", "length": "28d"}, group="g"),
    )),
    Case("window, Gaussian", (
        stepped("gauss", "mean", {"kind": "window", "length": "8d"}, epsilon="0.1", delta="1e-3", clamp=True),
        stepped("pure", "sum", WINDOW, delta="1e-6"),
        stepped("none", "sum", {"kind": "none"}, delta="1e-9"),
    )),
    Case("exponential", (
        stepped("mean", "mean", {"kind": "exponential", "half_life": "10h"}),
        stepped("sum", "sum", {"kind": "exponential", "alpha": "0.98"}, group="g", max_groups=3),
        stepped("count", "count", {"kind": "exponential", "alpha": "1/3"}),
    )),
    Case("slow exponential", (
        stepped("slow", "sum", {"kind": "exponential", "alpha": "0.999"}, delta="1e-6"),
    ), QUIET),
    Case("polynomial", (
        stepped("mean", "mean", {"kind": "polynomial", "exponent": 1}),
        stepped("trees", "sum", {"kind": "polynomial", "exponent": "0.5"}),
        stepped("count", "count", {"kind": "polynomial", "exponent": "0.5"}),
    )),
    Case("forward decay", (
        stepped("sum", "sum", {"kind": "forward", "exponent": 2}, group="g"),
        stepped("mean", "mean", {"kind": "forward", "exponent": "0.5"}, life="100d"),
        stepped("per-step", "sum", {"kind": "forward", "exponent": 8}, life="5d", simultaneous=30),
        stepped("count", "count", {"kind": "forward", "exponent": "1.5"}),
        stepped("variance", "variance", {"kind": "forward", "exponent": 1}, epsilon=9),
    ), QUIET),
    Case("all windows", (
        stepped("sum", "sum", {"kind": "all-windows"}),
        stepped("mean", "mean", {"kind": "all-windows"}, life="10d", group="g"),
        stepped("gauss", "sum", {"kind": "all-windows"}, delta="1e-6"),
    )),
    Case("patent", (
        stepped("window", "sum", WINDOW, algorithm="patent"),
        stepped("exponential", "sum", {"kind": "exponential", "half_life": "1d"}, algorithm="patent"),
        stepped("polynomial", "mean", {"kind": "polynomial", "exponent": "1.5"}, algorithm="patent"),
        stepped("all", "sum", {"kind": "all-windows"}, algorithm="patent"),
    )),
    Case("a unit of a week", (
        stepped("week", "sum", WINDOW, unit="user-week", max_contributions=3, group="g", max_groups=2),
        stepped("day", "count", unit="user-day", max_contributions=2),
    ), LONG),
    Case("variance", (
        stepped("window", "variance", WINDOW, group="g", max_groups=2),
        stepped("fading", "variance", {"kind": "exponential", "half_life": "10h"}, epsilon=9, clamp=False),
        stepped("week", "variance", unit="user-week", max_contributions=3, grid=1 << 16),
        stepped("patent", "variance", {"kind": "window", "length": "2d"}, algorithm="patent", late="drop"),
    ), QUIET, in_full=True),
    Case("a unit of an event", (
        stepped("event", "mean", {"kind": "window", "length": "2d"}, unit="event", max_contributions=None, group="g"),
    )),
    Case("a limit of events", (
        stepped("few", "sum", WINDOW, unit="event", max_contributions=None, max_events_per_user=4, group="g"),
    ), QUIET),
)  # fmt: skip

SLOTS = (
    Case("hexagons", (
        slotted("hexagons", cell=HEXAGONS, max_groups=3, across_cells="chop-user", epsilon=2, max_per_group=4),
    ), Stream(count=400, pace=300), in_full=True),
    Case("slots with groups, split", tuple(
        slotted(algorithm, algorithm=algorithm, group="g", max_groups=2, across_cells="split", epsilon=4)
        for algorithm in ("best", "baseline", "array-averaging", "levy", "fixed-quantile", "epsilon-quantile")
    ), BUSY),
    Case("few users", (
        slotted("few", algorithm="few-users", delta="1e-6", sigma=8, epsilon=20, group="g"),
        slotted("prior", prior="few-users", delta="1e-6", epsilon=20, sigma=8, contribution_cap="median"),
    ), BUSY, kafka={"dead_letters": False}),
    Case("few users with several values", (
        slotted("plane", algorithm="few-users", delta="1e-6", sigma=(8, 300), epsilon=30, group="g", max_groups=2,
                value=PLANE["value"][:2], range=PLANE["range"][:2], max_per_group=6),
        slotted("space", algorithm="few-users", delta="1e-5", epsilon=40, slot="1d", clamp=False, **PLANE),
    ), Stream(count=500, pace=80, units=30), in_full=True),
    Case("means of vectors", (
        *(slotted(name, algorithm=name, epsilon=30, group="g", max_groups=2, value=PLANE["value"][:2],
                  range=PLANE["range"][:2], max_per_group=6)
          for name in ("best", "baseline", "array-averaging", "levy", "fixed-quantile", "epsilon-quantile")),
        slotted("deviations", spread_share="0.3", epsilon=90, slot="7d", clamp=False, **PLANE),
    ), Stream(count=500, pace=80, units=30)),
    Case("mean and variance", (
        slotted("both", "variance", epsilon=8, group="g", max_groups=2, across_cells="clip-user"),
        slotted("capped", "variance", epsilon=8, algorithm="baseline", contribution_cap=2),
    ), BUSY),
    Case("distribution", (
        slotted("levels", "distribution", epsilon=8, bins=16, quantiles=("0.1", "0.5", "0.99")),
        slotted("usual", "distribution", epsilon=8, group="g", algorithm="baseline", min_users=3),
    ), BUSY),
    Case("units of several slots", (
        slotted("day", unit="user-day", max_slots=1, group="g", max_groups=2, epsilon=9),
        slotted("user", unit="user", max_slots=3, cell=HEXAGONS, min_users=2, epsilon=9),
        slotted("drop", late="drop", lateness="1h"),
    ), Stream(count=600, pace=500), kafka={"partitioner": "crc32", "idle_after": "50s"}),
)  # fmt: skip

MANY = Stream(count=8000, pace=1, silence=5000, units=2500, refusals=False)
CUT = (
    Case("long messages", (
        mean("rows", "wishful", "1h", prior=50, max_contributions=1),
        mean("lanes", "full", "1h", max_contributions=60, value=("x", "y", "z.w", "v", "w"), range=[(0, 100)] * 5),
        stepped("partials", "count", every="2s", max_contributions=20, max_gap=1),
        slotted("samples", cell={"h3": 3, "lat": "lat", "lon": "lon"}, slot="30m"),
    ), MANY, at_once=True),
)  # fmt: skip

ODD = Stream(count=400, odd_forms=True)
MEDIANS = (
    Case("full with half of the arrays", (
        mean("full", "full", epsilon=200, max_contributions=40),
        mean("groups", "full", "contribution", epsilon=900, group="g", max_groups=2, sigma=12),
        mean("plane", "full", epsilon=600, failure="0.9", sigma=(10, 800, 20), **PLANE),
    ), Stream(count=500), in_full=True),
)  # fmt: skip

ODD_FORMS = (
    Case("odd forms", (
        mean("naive", "naive", group="g", max_groups=3),
        slotted("hexagons", cell=HEXAGONS, max_groups=4, epsilon=40),
        stepped("week", "sum", unit="user-week", lateness="2h", late="drop"),
    ), ODD, in_full=True),
)  # fmt: skip

LISTED = (
    Case("listed weights", (
        stepped("table", "sum", {"kind": "table", "weights": ("1", "0.75", "1/3", "1/3", "0.1")}, group="g"),
        stepped("flat", "mean", {"kind": "table", "weights": ("1",) * 40}),
        stepped("patent", "sum", {"kind": "table", "weights": ("1", "0.9", "0.5", "0.2", "0.2")}, algorithm="patent"),
        stepped("formula", "mean", {"kind": "formula", "weight": "exp(-i / 4) / (1 + i)^0.5", "horizon": "8d"}),
        stepped("windows", "sum", {"kind": "formula", "weight": "1 / (1 + i)^3", "horizon": "4d"}, algorithm="patent"),
        stepped("counted", "count", {"kind": "table", "weights": ("1", "0.5")}),
    ), QUIET),
    Case("what Bolot et al. leave free", (
        stepped("coarse", "sum", {"kind": "polynomial", "exponent": 2, "error": "1/2", "horizon": "10d"},
                algorithm="patent"),
        stepped("near", "mean", {"kind": "polynomial", "exponent": "1.5", "horizon": "30d"}),
        stepped("any", "sum", {"kind": "all-windows", "zeta": 2}, algorithm="patent"),
        stepped("halved", "sum", {"kind": "table", "weights": ("1", "0.9", "0.5", "0.4"), "error": "1/2"},
                algorithm="patent"),
    ), QUIET),
)  # fmt: skip

VARIANCES = (
    Case("variances with listed weights", (
        stepped("table", "variance", {"kind": "table", "weights": ("1", "2/3", "0.25")}, group="g", epsilon=9),
        stepped("formula", "variance", {"kind": "formula", "weight": "exp(-i / 4)", "horizon": "8d"}, epsilon=9),
        stepped("patent", "variance", {"kind": "table", "weights": ("1", "0.9", "0.5")}, algorithm="patent", epsilon=9),
    ), QUIET),
)  # fmt: skip

UPDATES = (
    Case("windows of updates", (
        stepped("sum", "sum", {"kind": "window", "updates": 5}, every="1h", group="g"),
        stepped("mean", "mean", {"kind": "window", "updates": 40}, every="30m", max_gap=3),
        stepped("count", "count", {"kind": "window", "updates": 5}, every="1h"),
        stepped("variance", "variance", {"kind": "window", "updates": 9}, every="1h", epsilon=9),
        stepped("patent", "sum", {"kind": "window", "updates": 12}, every="1h", algorithm="patent"),
    ), QUIET),
)  # fmt: skip

DELTAS = (
    Case("means with a delta", (
        mean("sharp", "sharp", "1h", epsilon=40, life="9d", delta="1e-3", group="g", max_groups=2),
        mean("long", "sharp", "2h", epsilon=4, max_contributions=100, users=None, clamp=False, delta="1e-6"),
        mean("plane", "sharp", "3h", epsilon=2, delta="1e-6", life="2d", **PLANE),
        mean("naive", "naive", delta="1e-3", max_contributions=5, **PLANE),
        mean("one", "sharp", epsilon=3, delta="1e-2", **EVENTS),
        mean("pure", "naive", delta="1e-300"),
    ), BUSY),
)  # fmt: skip

TOGETHER = (
    Case("noise intervals of several releases", (
        mean("naive", "naive", simultaneous=30, **PLANE),
        mean("sharp", "sharp", "1h", epsilon=40, simultaneous=1000),
        stepped("window", "sum", WINDOW, simultaneous=50),
        stepped("decayed", "mean", {"kind": "exponential", "half_life": "1d"}, simultaneous=50),
        stepped("running", "sum", simultaneous=50),
        stepped("variance", "variance", WINDOW, simultaneous=50),
        slotted("both", "variance", simultaneous=7),
        slotted("shares", "distribution", bins=8, simultaneous=7),
        slotted("few", algorithm="few-users", delta="1e-3", epsilon=90, simultaneous=7),
    ), QUIET),
)  # fmt: skip

ALIKE = (
    Case("a share for centre and spread", (
        slotted("spread", spread_share="0.3", epsilon=40, slot="7d", max_contributions=6),
        slotted("groups", spread_share="1/2", epsilon=90, slot="7d", group="g", max_groups=3, contribution_cap=4),
        slotted("nothing", spread_share="0.05", epsilon=1, group="g"),
    ), Stream(count=900, pace=300, units=60)),
)  # fmt: skip

PREDICATES = (
    Case("predicates", (
        stepped("large", "sum", WINDOW, value="x > 50 and not z.w <= 0.5", range=None, group="g"),
        mean("share", "naive", value="x >= y or x == 47.5", range=None),
        slotted("near", value="-20 < y and y < 20", range=None),
    ), QUIET),
)  # fmt: skip

FEW_PRIORS = (
    Case("priors that few users choose", (
        mean("wishful", "wishful", "1h", prior="few-users", sigma=30, delta="1e-3", epsilon=120, max_contributions=4),
        mean("single", "single-tree", prior="few-users", sigma=9, delta="1e-3", epsilon=300, group="g",
             max_groups=2),
        mean("multi", "multi-tree", "contribution", prior="few-users", delta="1e-6", epsilon=90, max_contributions=40),
        mean("apart", "multi-tree", "2h", prior="few-users", sigma="0.2", delta="1e-9", epsilon=40, clamp=True),
        mean("plane", "multi-tree", "2h", prior="few-users", sigma=(30, 800, 20), delta="1e-3", epsilon=600, **PLANE),
        mean("too-few", "single-tree", prior="few-users", delta="1e-9"),
    ), BUSY, in_full=True),
)  # fmt: skip

WITHHELD = (
    Case("what is withheld", (
        mean("naive", "naive", max_per_group=3, group="g", max_groups=2, withheld=True),
        mean("sharp", "sharp", "1h", epsilon=400, max_contributions=70, withheld=True),
        mean("plane", "sharp", "3h", epsilon=90, delta="1e-3", withheld=True, **PLANE),
        mean("full", "full", "3h", epsilon=900, group="g", max_groups=3, withheld=True),
        mean("around", "multi-tree", prior=(20, 300, 9), lateness="2h", withheld=True, **PLANE),
        mean("few", "single-tree", prior="few-users", sigma=9, delta="1e-3", epsilon=300, withheld=True),
        mean("events", "naive", "1h", max_events_per_user=2, withheld=True, **EVENTS),
    ), BUSY),
)  # fmt: skip

SIGMAS = (
    Case("sharp with sigma", (
        mean("centre", "sharp", "1h", sigma=20, epsilon=300, life="9d", range=(0, 1000)),
        mean("groups", "sharp", "3h", sigma="7.5", epsilon=900, group="g", max_groups=2, max_per_group=33,
             clamp=False, lateness="2h"),
        mean("each", "sharp", "contribution", sigma=9, epsilon=40, users=20, max_contributions=4),
        mean("range", "sharp", "1h", sigma=30, epsilon=9, range=(40, 60), life="2d"),
    ), BUSY, in_full=True),
)  # fmt: skip

CASES = (
    *MEANS, *SUMS, *SLOTS, *CUT, *ODD_FORMS, *MEDIANS, *PREDICATES, *LISTED, *TOGETHER,
    *ALIKE, *UPDATES, *VARIANCES, *DELTAS, *FEW_PRIORS, *WITHHELD, *SIGMAS, *PRESENCE,
)  # fmt: skip
