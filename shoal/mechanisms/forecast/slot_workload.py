"""Who is where in a slot: as stated, or as the accounts have it for the events of a file."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from shoal.mechanisms.forecast.observed import Observed
from shoal.mechanisms.parts.expect import expect
from shoal.mechanisms.parts.hides import PerCell
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.parts.per import Field, One
from shoal.mechanisms.workload import Stated

MOST_PLACES = 1_000_000  # users' places in cells of one slot, if they are stated
MOST_SLOTS = 12  # that are looked at

Places = Mapping[tuple[str, str], int]  # (user, cell) -> samples, a user's cells in the order of its first samples


@dataclass(frozen=True)
class SlotWorkload:
    """Some slots, evenly spread over all there are."""

    slots: tuple[Places, ...]  # that are looked at, evenly spread; with all cells of a user
    let_in: Callable[[int], tuple[Places, ...]]  # the same slots with the first cells of a user, at most that many
    slot_count: int  # slots in which anybody was
    users: int
    over: int  # microseconds
    pattern: str
    private: bool = True

    @property
    def cells(self) -> float:
        """The mean number of cells of a slot."""
        return sum(len({cell for _, cell in slot}) for slot in self.slots) / len(self.slots)

    @property
    def all_cells(self) -> int:
        """The number of distinct cells in the slots that are looked at."""
        return len({cell for slot in self.slots for _, cell in slot})

    @property
    def samples(self) -> float:
        """The mean number of samples of a user in a cell."""
        return sum(sum(slot.values()) for slot in self.slots) / sum(map(len, self.slots))

    @property
    def most_cells(self) -> int:
        """The most cells that a user is in within one slot."""
        return max(max(Counter(user for user, _ in slot).values()) for slot in self.slots)


def slot_workload(metric: Metric, workload: Stated | Observed) -> SlotWorkload:
    """The slots of a file, or one slot as stated.

    Raises:
        ValueError: there are more users in cells than can be planned.
    """
    return observed_slots(metric, workload) if isinstance(workload, Observed) else stated_slot(metric, workload)


def stated_slot(metric: Metric, stated: Stated) -> SlotWorkload:
    """One slot in which every user is in as many cells as count, and cells have equally many users, give or take one.

    Raises:
        ValueError: there are more users in cells than can be planned.
    """
    limits = expect(metric.hides.limits, PerCell)
    groups = stated.groups if isinstance(metric.place, Field) else None
    count = groups or stated.cells or limits.cells
    each = min(count, limits.cells)
    if stated.users * each > MOST_PLACES:
        raise ValueError(
            f"{stated.users} users in {each} cells each are more than can be planned; state {MOST_PLACES // each} or "
            "fewer, of some of the cells"
        )
    slot = {}
    for user, samples in enumerate(_sizes(metric, stated)):
        for number in range(each):
            slot[f"{user:08}", f"{(user * each + number) % count:08}"] = samples

    def let_in(most: int) -> tuple[Places, ...]:
        return (dict(user_cell for index, user_cell in enumerate(slot.items()) if index % each < most),)

    return SlotWorkload((slot,), let_in, 1, stated.users, metric.every.microseconds, stated.law)


def _sizes(metric: Metric, stated: Stated) -> Iterator[int]:
    """The number of samples of each user that count in a cell; at least one."""
    mean = float(metric.samples if stated.samples is None else stated.samples)
    for user in range(stated.users):
        if stated.skewed:  # a power law of exponent 3/2
            size = round(mean / 3 * ((user + 0.5) / stated.users) ** (-2 / 3))
        else:
            size = int(mean * (user + 1)) - int(mean * user)
        yield min(max(size, 1), metric.samples)


def observed_slots(metric: Metric, observed: Observed) -> SlotWorkload:
    """The slots of a file."""
    # Cells of a user that release would choose from, whatever bound lets in of them.
    is_alone, limits = isinstance(metric.per, One), expect(metric.hides.limits, PerCell)
    everywhere = _counted(metric if is_alone else _with_limits(metric, replace(limits, across="chop-user")), observed)
    numbers = sorted(everywhere)
    chosen = sorted({round(i * (len(numbers) - 1) / (MOST_SLOTS - 1)) for i in range(MOST_SLOTS)})
    looked_at = [numbers[index] for index in chosen]

    def let_in(most: int) -> tuple[Places, ...]:
        first = replace(limits, across="split", cells=most)
        admitted = _counted(metric if is_alone else _with_limits(metric, first), observed)
        return tuple(admitted.get(number, {}) for number in looked_at)

    over = metric.every.span(numbers[-1] - numbers[0] + 1)
    slots = tuple(everywhere[number] for number in looked_at)
    return SlotWorkload(slots, let_in, len(numbers), observed.users, over, "that of the file", private=False)


def _with_limits(metric: Metric, limits: PerCell) -> Metric:
    return replace(metric, hides=replace(metric.hides, limits=limits))


def _counted(metric: Metric, observed: Observed) -> dict[int, dict[tuple[str, str], int]]:
    """The samples that count, by slot, user and cell."""
    slots: dict[int, dict[tuple[str, str], int]] = defaultdict(dict)
    names: dict[bytes, str] = {}
    length = metric.every
    for sample, reason in zip(observed.samples, observed.account(metric, observed.samples).reasons, strict=True):
        if reason is None:
            user_cell = names.setdefault(sample.user, f"{len(names):08}"), sample.group or ""
            slot = slots[length.index(sample.effective)]
            slot[user_cell] = slot.get(user_cell, 0) + 1
    return slots
