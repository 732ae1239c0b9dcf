"""Who is where in a slot: as stated, or as the accounts have it for the events of a file."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from shoal.mechanisms.observed import Observed
from shoal.mechanisms.plan import Spec, varied
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


def stated_slot(spec: Spec, stated: Stated) -> SlotWorkload:
    """One slot in which every user is in as many cells as count, and cells have equally many users, give or take one.

    Raises:
        ValueError: there are more users in cells than can be planned.
    """
    count = (stated.cells if spec.group is None else stated.groups or stated.cells) or spec.cell_limit
    each = min(count, spec.cell_limit)
    if stated.users * each > MOST_PLACES:
        raise ValueError(
            f"{stated.users} users in {each} cells each are more than can be planned; state {MOST_PLACES // each} or "
            "fewer, of some of the cells"
        )
    slot = {}
    for user, samples in enumerate(_sizes(spec, stated)):
        for number in range(each):
            slot[f"{user:08}", f"{(user * each + number) % count:08}"] = samples

    def let_in(most: int) -> tuple[Places, ...]:
        return (dict(user_cell for index, user_cell in enumerate(slot.items()) if index % each < most),)

    return SlotWorkload((slot,), let_in, 1, stated.users, spec.slot, stated.law)


def _sizes(spec: Spec, stated: Stated) -> Iterator[int]:
    """The number of samples of each user that count in a cell; at least one."""
    mean = float(spec.contribution_limit if stated.samples is None else stated.samples)
    for user in range(stated.users):
        if stated.skewed:  # a power law of exponent 3/2
            size = round(mean / 3 * ((user + 0.5) / stated.users) ** (-2 / 3))
        else:
            size = int(mean * (user + 1)) - int(mean * user)
        yield min(max(size, 1), spec.contribution_limit)


def observed_slots(spec: Spec, observed: Observed) -> SlotWorkload:
    """The slots of a file."""
    # Cells of a user that release would choose from, whatever bound lets in of them.
    everywhere = _counted(varied(spec, across_cells="chop-user"), observed)
    numbers = sorted(everywhere)
    chosen = sorted({round(i * (len(numbers) - 1) / (MOST_SLOTS - 1)) for i in range(MOST_SLOTS)})
    looked_at = [numbers[index] for index in chosen]

    def let_in(most: int) -> tuple[Places, ...]:
        admitted = _counted(varied(spec, across_cells="split", max_cells=most), observed)
        return tuple(admitted.get(number, {}) for number in looked_at)

    over = (numbers[-1] - numbers[0] + 1) * spec.slot
    slots = tuple(everywhere[number] for number in looked_at)
    return SlotWorkload(slots, let_in, len(numbers), observed.users, over, "that of the file", private=False)


def _counted(spec: Spec, observed: Observed) -> dict[int, dict[tuple[str, str], int]]:
    """The samples that count, by slot, user and cell."""
    slots: dict[int, dict[tuple[str, str], int]] = defaultdict(dict)
    names: dict[bytes, str] = {}
    for sample, reason in zip(observed.samples, observed.account(spec, observed.samples).reasons, strict=True):
        if reason is None:
            user_cell = names.setdefault(sample.user, f"{len(names):08}"), sample.group or ""
            slot = slots[sample.effective // spec.slot]
            slot[user_cell] = slot.get(user_cell, 0) + 1
    return slots
