"""Who is where in a slot: as stated, or as counted in a file of events.

A file is read for its pattern alone: users, times, cells; values take no part but for being numbers. Its events come in
the order of their times: what `lateness` does to late ones is left out.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from shoal.agents.input.event_file import EventFile
from shoal.agents.plan.workload import Stated
from shoal.models.cells import cell_reader
from shoal.models.config.file import Config
from shoal.models.config.metric import MetricSection
from shoal.models.errors import ConfigError, InputError
from shoal.models.events import Refused, getter, parse, read_time, read_user, read_value

MOST_PLACES = 1_000_000  # users' places in cells of one slot, if they are stated
MOST_SLOTS = 12  # that are looked at

Slot = Mapping[tuple[str, str], int]  # (user, cell) -> samples, a user's cells in the order of its first samples


@dataclass(frozen=True, slots=True)
class SlotWorkload:
    """Some slots, of all that there are."""

    slots: tuple[Slot, ...]  # that are looked at, evenly spread
    of: int  # slots in which anybody was
    users: int
    over: int  # microseconds
    pattern: str
    private: bool = True

    @property
    def cells(self) -> float:
        """Of a slot, on average."""
        return sum(len({cell for _, cell in slot}) for slot in self.slots) / len(self.slots)

    @property
    def all_cells(self) -> int:
        """Of all slots that are looked at; one that is in several counts once."""
        return len({cell for slot in self.slots for _, cell in slot})

    @property
    def samples(self) -> float:
        """That count of a user in a cell, on average."""
        return sum(sum(slot.values()) for slot in self.slots) / sum(map(len, self.slots))

    @property
    def most_cells(self) -> int:
        """Of one user in one slot."""
        return max(max(Counter(user for user, _ in slot).values()) for slot in self.slots)


# -------------------------------------------------------------------- stated


def stated_slot(section: MetricSection, stated: Stated, cells: int | None) -> SlotWorkload:
    """One slot, in which every user is in as many cells as count, and every cell has as many users, give or take one.

    Raises:
        ConfigError: there are more users in cells than can be planned.
    """
    count = cells or section.cell_limit
    each = min(count, section.cell_limit)
    if stated.users * each > MOST_PLACES:
        raise ConfigError(
            f'metric "{section.name}": {stated.users} users in {each} cells each are more than can be planned; state '
            f"{MOST_PLACES // each} or fewer, of some of the cells"
        )
    slot = {}
    for user, samples in enumerate(_sizes(section, stated)):
        for number in range(each):
            slot[f"{user:08}", f"{(user * each + number) % count:08}"] = samples
    pattern = "skewed" if stated.skewed else "even"
    return SlotWorkload((slot,), 1, stated.users, section.slot or 1, pattern)


def _sizes(section: MetricSection, stated: Stated) -> Iterable[int]:
    """Of each user the samples that count in a cell; at least one."""
    mean = float(section.cap if stated.samples is None else stated.samples)
    for user in range(stated.users):
        if stated.skewed:  # a power law of exponent 3/2
            size = round(mean / 3 * ((user + 0.5) / stated.users) ** (-2 / 3))
        else:
            size = int(mean * (user + 1)) - int(mean * user)
        yield min(max(size, 1), section.cap)


# -------------------------------------------------------------------- a file


def read_slots(config: Config, section: MetricSection, path: str, on_bytes: Callable[[int], None]) -> SlotWorkload:
    """The slots of a file.

    Raises:
        InputError: the file cannot be read, or has no event for the metric.
        ConfigError: the metric takes its time from Kafka's records.
    """
    if section.time is None:
        raise ConfigError(
            f'metric "{section.name}" takes its time from Kafka\'s records; a file has none: add `time = "FIELD"`'
        )
    read = _reader(section, section.time)
    found = []
    for line in EventFile(path, config, section.topic).lines(on_bytes):
        try:
            found.append(read(line.value or b""))
        except Refused:
            continue
    if not found:
        raise InputError(f'{path}: no event has what metric "{section.name}" needs; name a file of its topic')
    found.sort(key=lambda event: event[0])
    slots = _admitted(section, found)
    chosen = sorted({round(i * (len(slots) - 1) / (MOST_SLOTS - 1)) for i in range(MOST_SLOTS)})
    numbers, length = sorted(slots), section.slot or 1
    over = (numbers[-1] - numbers[0] + 1) * length
    users = len({user for _, user, _ in found})
    looked = tuple(slots[numbers[index]] for index in chosen)
    return SlotWorkload(looked, len(slots), users, over, "that of the file", private=False)


def _reader(section: MetricSection, time: str) -> Callable[[bytes], tuple[int, str, str]]:
    """What reads (time, user, cell) as `bound` does."""
    get_user, get_time, get_value = getter(section.user), getter(time), getter(section.values[0])
    cell_of = cell_reader(section.cell, section.group, section.reading)
    names: dict[bytes, str] = {}

    def read(raw: bytes) -> tuple[int, str, str]:
        event = parse(raw, section.reading)
        user = read_user(get_user(event), raw, section.user, section.reading)
        cell = cell_of(event, raw)
        read_value(get_value(event))
        at = read_time(get_time(event), raw, time, section.reading)
        return at, names.setdefault(user, f"{len(names):08}"), cell

    return read


def _admitted(section: MetricSection, events: Iterable[tuple[int, str, str]]) -> dict[int, dict[tuple[str, str], int]]:
    """The samples that count of each slot: of a unit in each cell so many, and in its first slots."""
    period, length = section.of.period, section.slot or 1
    slots: dict[int, dict[tuple[str, str], int]] = defaultdict(dict)
    counts: Counter[tuple[str, int, str]] = Counter()
    seen: dict[tuple[str, int], set[int]] = defaultdict(set)
    for at, user, cell in events:
        slot, unit = at // length, 0 if period is None else at // period
        its = seen[user, unit]
        if counts[user, unit, cell] >= section.cap or (slot not in its and len(its) >= section.slot_limit):
            continue
        its.add(slot)
        counts[user, unit, cell] += 1
        slots[slot][user, cell] = slots[slot].get((user, cell), 0) + 1
    return slots
