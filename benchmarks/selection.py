"""Keys that nobody declared: at how many people they are shown, and what candidates and shown keys cost.

    python -m benchmarks.selection [--quick]

Prints a table. Seconds are of processor time, bytes are what the process grew by.
"""

import argparse
import resource
import statistics
import time
from collections.abc import Iterator
from fractions import Fraction

from shoal.mechanisms.groups import Groups
from shoal.mechanisms.linear.came import NEWCOMERS
from shoal.mechanisms.linear.sides import Samples
from shoal.mechanisms.linear.statistic import LinearStatistic
from shoal.mechanisms.noise.keyed import derive
from shoal.mechanisms.parts.of import Count
from shoal.mechanisms.selection.first_crossing import FirstCrossing
from shoal.mechanisms.statistic import Contribution
from shoal.mechanisms.sums.decays import Undecayed

TICKS = 365
DELTA = Fraction(1, 10**9)
YEAR = FirstCrossing(Fraction(1), DELTA, TICKS, ends=True)
HOURS = 8760
KEY = bytes(32)


def counts(selection: FirstCrossing, horizon: int, key: bytes = KEY) -> Groups:
    decay = Undecayed(horizon)
    return LinearStatistic(
        statistic=Count, sides=Samples(), decay=decay, epsilon=Fraction(4, 5), groups=None, selection=selection
    ).in_groups(key)


def came(people: int) -> list[Contribution]:
    return [Contribution(0, "", 0, 0, people, 0), Contribution(0, "", NEWCOMERS, 0, people, people)]


def shown_at(path: Iterator[int], name: int) -> int | None:
    """How many people a key has when it is shown, which gains so many in each tick."""
    groups, there = counts(YEAR, TICKS, derive(KEY, name)), 0
    for tick, people in enumerate(path):
        there += people
        for one in groups.close(tick, [("k", came(people))] if people else []):
            if one is not None and one.activations:
                return there
    return None


def standing(people: int, ticks: int) -> Iterator[int]:
    yield people
    yield from [0] * (ticks - 1)


def grown() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def seconds_of(groups: Groups, tick: int, rows: list[tuple[str, list[Contribution]]]) -> float:
    begun = time.process_time()
    for _ in groups.close(tick, rows):
        pass
    return time.process_time() - begun


def people(keys: int) -> None:
    growing = [shown_at(iter([1] * 200), name) for name in range(keys)]
    print(f"one more person in each tick: shown at {statistics.median(one or 200 for one in growing)} people")
    for number in (20, 25, 28):
        shown = sum(shown_at(standing(number, 30), name) is not None for name in range(keys))
        print(f"{number} people who come at once: {shown / keys:.0%} of keys are shown within 30 ticks")


def candidates(number: int) -> None:
    groups, before = counts(FirstCrossing(Fraction(1), DELTA, HOURS), HOURS), grown()
    seconds = 0.0
    for begin in range(0, number, 10_000):  # a message's worth
        rows = [(f"key-{key:08}", came(1)) for key in range(begin, min(begin + 10_000, number))]
        seconds += seconds_of(groups, 0, rows)
        for _ in groups.hidden_changes():
            pass
    each = seconds / number * 1e6
    print(f"{number} candidates: {each:.1f} us each when they come, {(grown() - before) // number} bytes")
    print(f"    a silent tick {seconds_of(groups, 1, []) * 1e3:.3f} ms")
    print(f"    a tick at which the threshold changes {seconds_of(groups, HOURS, []):.1f} s")


def shown(number: int, ticks: int) -> None:
    groups, before = counts(FirstCrossing(Fraction(1), DELTA, HOURS), HOURS), grown()
    rows = [(f"key-{key:08}", came(100)) for key in range(number)]
    opened = seconds_of(groups, 0, rows)
    each = [seconds_of(groups, tick, []) for tick in range(1, ticks + 1)]
    print(f"{number} keys that are shown, a tick an hour: {(grown() - before) // number} bytes each")
    print(f"    {opened / number * 1e3:.2f} ms each when they are shown, {max(each) / number * 1e6:.0f} us in a tick")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few keys")
    quick = parser.parse_args().quick
    people(50 if quick else 400)
    candidates(20_000 if quick else 1_000_000)
    shown(50 if quick else 2_000, 3 if quick else 30)


if __name__ == "__main__":
    main()
