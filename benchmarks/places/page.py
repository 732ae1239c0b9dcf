"""The tables of places and slots, and the page that they make."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks import figures
from benchmarks.page import Page, number, verdict
from benchmarks.places import errors, picture, speed, vectors
from benchmarks.places.few import FAILURE
from benchmarks.places.report import Report, as_json, verdicts
from benchmarks.places.sharing import EPSILON, Scenario

TITLE = "Places and slots: how accurate, how fast"
RULES = """\
Measured with `make bench-places`; the figures are those of [places.json](places.json), and a short account is
[how accurate places are](../../docs/explanation/places-accuracy.md). Values are speeds in 0 to 65 km/h, the unit is a
user in a slot, and what is protected is what a user's samples say, not that there are any.
"""
MISSES = 12  # that are shown


def tables(report: Report) -> str:
    """All parts."""
    parts = [
        *_targets(report), *_errors(report), *_misses(report.cells), *_caps(report), *_slots(report.slots),
        *_scaling(report), *_few(report), *_vectors(report), *_speed(report),
    ]  # fmt: skip
    return "\n\n".join(parts)


def _targets(report: Report) -> Iterator[str]:
    yield "## What is to be reached, and is"
    rows = [(one.what, one.target, one.found, verdict(one.met)) for one in verdicts(report)]
    yield figures.table(("what", "target", "found", ""), rows)


def _errors(report: Report) -> Iterator[str]:
    rows, check = report.cells, report.check
    draws = sorted(row.draws for row in rows)
    yield "## Errors per cell"
    yield (
        f"Mean absolute error against the mean of all samples of a cell, over {draws[0]} to {draws[-1]} draws. "
        "Synthetic cells have independent samples of a normal law cut to the range, new ones for each draw; numbers of "
        "samples per user are equal or have a heavy tail (Pareto, 1.1, at most a hundred times the least). Trips are "
        "cells of `shoal simulate buses` on a Monday from 7 to 8, from the busiest to one with five buses; their "
        "values stay the same. The intervals of algorithms that clip are drawn by the mechanisms' own code and keys; "
        "given an interval, the expectation over its noise is computed, not drawn. Real releases agree: on average "
        f"their error is {check.ratio:.3f} ± {check.deviation:.3f} times that expectation ({check.releases:,} "
        "releases)."
    )
    yield (
        "`best` goes by public numbers of samples alone. The best fixed choice in hindsight is the least of the nine "
        "errors measured (five algorithms, the four that pack with both caps): it knows values and luck of the draws, "
        "so part of what it is ahead is chance. *Surely* counts cells that are beyond 10 % by more than two standard "
        "errors of the ratio."
    )
    share = f"`spread_share = {float(errors.SHARE):g}`"
    yield (
        f"With {share} it may take a mechanism that is none of the nine: it finds a centre and a spread, and clips "
        "what users' samples sum to beyond the centre. Its ratio, too, is over the least of the nine, and may be below "
        f"1. It does so in {sum(row.shared_taken == errors.DEVIATIONS for row in rows)} of {len(rows)}."
    )
    cells = []
    for kind in dict.fromkeys(row.kind for row in rows):
        for epsilon in sorted({row.epsilon for row in rows}):
            of = [row for row in rows if (row.kind, row.epsilon) == (kind, epsilon)]
            cells.append((kind, f"{epsilon:g}", len(of), *_quality(of), *_quality([row.shared for row in of])))
    cells.append(("**all**", "", len(rows), *_quality(rows), *_quality([row.shared for row in rows])))
    found = ("within 10 %", "surely beyond", "middle ratio", "worst ratio")
    header = ("cells", "epsilon", "number", *found, *(f"{one}, {share}" for one in found))
    yield figures.table(header, cells)
    yield "Every algorithm with the cap that it has if none is configured, over the least error of each cell:"
    of_algorithms = []
    for name in errors.ALGORITHMS:
        near, mean, most = errors.losses(rows, name)
        of_algorithms.append((f"`{name}`", f"{near:.0%}", f"{mean:.2f}", f"{most:.1f}"))
    yield figures.table(("algorithm", "within 10 % of the least", "ratio, geometric mean", "worst"), of_algorithms)
    yield from _all_errors(rows)


def _quality(rows: Sequence[errors.Row]) -> tuple[object, ...]:
    near, middle, worst, far = errors.shares(rows)
    return f"{near:.0%}", far, f"{middle:.3f}", f"{worst:.2f}"


def _all_errors(rows: Sequence[errors.Row]) -> Iterator[str]:
    yield "Errors in km/h at epsilon = 1 (± is a standard error; bold: what `best` takes):"
    cells = []
    for row in rows:
        if row.epsilon == 1:
            by_arm = [_marked(row, name) for name in errors.LABELS]
            ratios = (f"{one.ratio:.2f} ± {one.deviation:.2f}" for one in (row, row.shared))
            shared = number(row.shared_error)
            cells.append((row.name, f"{row.users}; {row.samples:,}", *by_arm, shared, *ratios))
    names = (name.replace(", ", "<br>") for name in (*errors.LABELS, errors.SHARED))
    header = ("cell", "users; samples", *names, "best / least", "with a share")
    yield figures.table(header, cells)


def _marked(row: errors.Row, name: str) -> str:
    value = number(row.errors[name])
    return f"**{value}**" if name == row.taken else value


def _misses(rows: Sequence[errors.Row]) -> Iterator[str]:
    yield from _missed("### Where `best` misses", rows)
    yield (
        "Why: the prediction takes all cells for alike, their samples scattering by a fifth of the range around the "
        "middle. Where values lie closer together, an interval between quantiles is narrower than foretold, and "
        "clipping wins where averaging is taken; where they scatter more, or sit at an end, it is the other way round. "
        "In a cell of trips the values are given: whether what packing leaves out or weighs less would have told the "
        "same is luck, which hindsight sees and public counts cannot, and it is most of the error where there is "
        "little noise."
    )
    yield from _missed("### Where `best` misses with a share", [row.shared for row in rows])
    yield (
        "Why: in the trips it is mostly the same luck. Many samples are left out, and what is kept has nearly the same "
        "mean: that takes little noise, and only hindsight knows. And what the share costs is lost to the noise."
    )


def _missed(title: str, rows: Sequence[errors.Row]) -> Iterator[str]:
    missed = sorted((row for row in rows if not row.is_near), key=lambda row: row.deviation - row.ratio)
    if not missed:
        return
    yield title
    few = sum(row.users < 30 for row in missed)
    chance = sum(not row.is_surely_far for row in missed)
    trips = sum(row.kind == "trips" for row in missed)
    yield (
        f"{len(missed)} of {len(rows)} are beyond 10 %, {trips} of them cells of trips, {few} with fewer than 30 "
        f"users; in {chance} the ratio is within two standard errors of 1.1. The {min(MISSES, len(missed))} clearest:"
    )
    cells = [
        (row.name, f"{row.users}; {row.samples:,}", f"{row.epsilon:g}", row.taken,
         number(row.ratio * row.errors[row.least]), row.least, number(row.errors[row.least]),
         f"{row.ratio:.2f} ± {row.deviation:.2f}")
        for row in missed[:MISSES]
    ]  # fmt: skip
    header = ("cell", "users; samples", "epsilon", "taken", "km/h", "in hindsight", "km/h", "ratio")
    yield figures.table(header, cells)


def _caps(report: Report) -> Iterator[str]:
    yield "## The cap `optimal` against `median`"
    vectors = report.caps[0].vectors
    yield (
        f"Exact worst-case error (rational numbers) with `optimal` over that with `median`, on {vectors:,} vectors of "
        "numbers of samples: those of the cells above, and random ones by six laws, from equal ones to one user who "
        "has nearly all. The scan minimises the paper's formula, which takes all arrays to be full; packed arrays are "
        "not all full, so that the median is sometimes a little better. `array-averaging` computes both and takes the "
        "less, so it never is worse."
    )
    cells = [
        (row.what, f"{row.epsilon:g}", f"{row.better:,}", row.worse, number(row.middle), number(row.least),
         f"{row.most:.4f}")
        for row in report.caps
    ]  # fmt: skip
    header = ("worst-case error of", "epsilon", "better", "worse", "middle ratio", "least", "largest")
    yield figures.table(header, cells)
    found = report.sharpest
    yield (
        f"Whoever clips has no bound on the worst case; `optimal` makes K sqrt(m) greatest there, and K sqrt(m) is "
        f"never below the median's ({found.worse} of {found.vectors:,}): {found.middle:.2f} times it in the middle, "
        f"{found.most:.1f} at most."
    )


def _slots(slots: Sequence[Scenario]) -> Iterator[str]:
    yield "## Users in many cells of a slot"
    yield (
        f"All with epsilon = {float(EPSILON):g} for a user and slot. *Plain composition* of G mechanisms gives each "
        "cell epsilon / G; the paper's count of G is all cells, `split` with a K that fits everybody needs only as "
        "many as one user is in. `chop-user` leaves users out of cells until nobody is in more than K. *Stops here*: "
        "one fewer would cost more than the noise of the noisiest cell did at epsilon / G; the rule is conservative, "
        "for it counts what it may cost at that epsilon, and not what the larger one then saves."
    )
    header = ("slot", "cells", "users", "samples", "cells of one user: middle", "most (K before)", "K, rule",
              "worst error, ε / cells")  # fmt: skip
    cells = [
        (one.name, one.cells, f"{one.users:,}", f"{one.samples:,}", one.middle, one.before, one.stops,
         number(one.plain))
        for one in slots
    ]  # fmt: skip
    yield figures.table(header, cells)
    yield (
        "Errors in km/h. *Bound* is the expected error at worst over all values, without clamping, of the worst cell "
        "and of the middle one; *degradation* is the worst cell's bound over that with everybody in all cells. "
        "*Measured* is the mean absolute error over cells and draws of the whole statistic, all samples of the cell "
        "being the truth, those left out too; in brackets that of the middle cell. Clamped to the range, nothing errs "
        "by more than 65."
    )
    for scenario in slots:
        names = list(scenario.ways[0].measured)
        ways: list[tuple[object, ...]] = []
        for way in scenario.ways:
            measured = (f"{number(way.measured[name])} ({number(way.middle_measured[name])})" for name in names)
            ways.append((way.name, way.released, f"{way.left_out:.0%}", number(way.worst), number(way.middle),
                          f"{way.degradation:.3f}", *measured))  # fmt: skip
        yield f"### {scenario.name}"
        shown_as = ("way", "released", "samples left out", "bound, worst", "bound, middle", "degradation",
                  *(f"measured, `{name}`" for name in names))  # fmt: skip
        yield figures.table(shown_as, ways)


def _scaling(report: Report) -> Iterator[str]:
    yield "## Scaling laws"
    yield (
        "Standard deviation of the noise (root mean square over draws) of 100 users with 40 samples each on average, "
        "heavy tail, N(30, 10²), epsilon = 2, as every user has more samples, and as there are more users. The cap is "
        "the median. Slopes on logarithmic axes are those of the last four points. More samples help Levy alone, once "
        "four times its tau is less than the range. The paper has no law for quantiles there, and none shows: array "
        "means move together, so that the gap from them to the end of the range, whose length counts in the choice "
        "too, is taken more often, and one such draw outweighs many narrow ones. As users grow, epsilon-quantile "
        "leaves out a fixed number of arrays, so that its interval grows as the extremes do: its slope is a little "
        "less steep than -1."
    )
    factors = report.lines[0].factors
    cells = [
        (line.scaled, line.algorithm, *map(number, line.noise), *[""] * (len(factors) - len(line.noise)),
         "–" if line.expected is None else f"{line.expected:g}", f"{line.slope + 0.0:.2f}")
        for line in report.lines
    ]  # fmt: skip
    header = ("scaled", "algorithm", *(f"× {factor}" for factor in factors), "slope expected", "slope found")
    yield figures.table(header, cells)


def _few(report: Report) -> Iterator[str]:
    yield "## Few users"
    yield (
        f"`few-users`, 200 samples of N(30, 10²) from each user, corrupt users reporting 65; failure = "
        f"{float(FAILURE):g}. *Law* is the exact probability of no release in the same cells, *bound* what is foretold "
        "for users who all lie within r0, *needed* the number of users from which on the bound is below the failure. R "
        "+ r0 rests on the range alone (no sigma stated). *Beyond* counts releases further than that from the true "
        "mean, after the exact probability of it."
    )
    cells = [
        (row.users, row.corrupt or "", f"{row.epsilon:g}", f"{row.delta:g}", f"{row.none:.4f} ± {row.deviation:.4f}",
         number(row.law), "–" if row.corrupt else number(row.most), row.needed, number(row.radius), number(row.middle),
         number(row.farthest), f"{number(row.outside_law)}; {row.outside}", "yes" if row.agrees else "**no**")
        for row in report.few_users
    ]  # fmt: skip
    header = ("users", "corrupt", "epsilon", "delta", "no release", "law", "bound", "needed", "R + r0",
              "middle distance", "farthest", "beyond", "agrees")  # fmt: skip
    yield figures.table(header, cells)
    draws, audit = report.few_users[0].draws, report.audit
    yield (
        f"{draws:,} draws each. Audit: of {audit.pairs:,} random pairs of neighbours with up to 12 users, all outcomes "
        f"enumerated, the largest hockey-stick divergence is {audit.largest:.6f} times delta; {audit.above_half:,} "
        "pairs need more than half of it."
    )


def _vectors(report: Report) -> Iterator[str]:
    first = report.velocities[0]
    yield "## Velocity as a vector"
    yield (
        f"Parts of the velocity to the east and to the north, each in -65 to 65 km/h, in {first.cells} cells of trips "
        f"from the busiest to one with few buses; {first.draws} draws. *Together*: one metric of two coordinates with "
        f"epsilon = {float(vectors.EPSILON):g}. *Apart*: two metrics with half of it each. Errors are mean absolute "
        "ones of a coordinate, in km/h; ratios are geometric means over the cells, and *foretold* is that of the "
        "errors predicted from counts. Noise alone is 0.75 times as large; what is left out or clipped is the same, "
        "and so is a private choice of where to clip."
    )
    cells = [
        (f"`{row.algorithm}`", number(row.together), number(row.apart), f"{row.ratio:.2f}", f"{row.foretold:.2f}",
         f"{row.most:.2f}")
        for row in report.velocities
    ]  # fmt: skip
    header = ("algorithm", "together", "apart", "ratio", "foretold", "largest ratio of a cell")
    yield figures.table(header, cells)


def _speed(report: Report) -> Iterator[str]:
    sent = report.transport
    yield "## Speed"
    yield (
        f"One slot of {sent.samples:,} samples of {sent.contributions:,} users in {speed.CELLS:,} cells, a user being "
        f"in up to 8 of which {speed.MOST_CELLS} count (chop-user), one process each. Seconds are one core's time; "
        "*wall* says how busy the machine was besides. Until the first cell it is decided who counts where. *Pause*: "
        "the longest that nothing else gets a turn, most of it one run of Python's garbage collector. *Memory*: peak "
        "of the process, and before, with all contributions read."
    )
    cells = [
        (row.statistic, f"`{row.algorithm}`", f"{row.cells:,}", f"{row.seconds:.1f}", f"{row.first:.1f}",
         f"{row.wall:.1f}", f"{row.pause:.0f} ms", f"{row.peak:.0f} ({row.before:.0f}) MiB",
         verdict(row.seconds <= speed.TARGET))
        for row in report.speeds
    ]  # fmt: skip
    header = ("statistic", "algorithm", "cells", "seconds", "until the first", "wall", "pause", "memory",
              f"within {speed.TARGET:.0f} s")  # fmt: skip
    yield figures.table(header, cells)
    yield (
        f"Transport, beside it: {sent.contributions:,} contributions, one of each user, {sent.bytes / 1e6:.1f} MB of "
        f"records before compression, {sent.bytes / sent.contributions:,.0f} bytes each on average and {sent.largest} "
        f"at most; {sent.bytes / sent.samples:.1f} bytes per sample."
    )


def page(report: Report) -> Page:
    """All that is shown of a run."""
    effort = f"{report.seconds / 60:.0f} minutes of one core's time"

    def draw(folder: Path) -> None:
        picture.draw_errors(report.cells, folder / "places-errors.png")
        picture.draw_scaling(report.lines, folder / "places-scaling.png")

    return Page("places", TITLE, RULES, tables(report), effort, as_json(report), draw)
