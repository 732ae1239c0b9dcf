"""Millions of mutated records and batches in both lanes, the kernel and its twin: `make test-lanes`.

python -m tests.long.lanes [--records N] [--batches N] [--seed N] [--jobs N] [--name CONFIGURATION]

Whatever leaves a partition must be the same, in transactions of any size and with restarts in between, and so must be
what is read of batches of which bytes were changed, records or error. At least a fifth of the records must be the
kernel's. The seed is printed, and repeats a run.
"""

import os
import random
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from typing import Annotated, Any

import typer

from shoal.stream.file_run import Line
from shoal.stream.kernel import reader
from tests.stream.kernel.lanes import CONFIGS, Lanes
from tests.stream.kernel.records import FRAGMENTS, GROUPS, PLAIN, SHAPES, USERS
from tests.stream.kernel.test_batches import ATTRIBUTES, CODECS, batch, reading, sealed, told
from tests.stream.simulation import STAMP

WRONG = [bytes([byte]) for byte in b'"\\{}[],:0129.eE+-x \x00\x80\xc3\xff']
HARMLESS = [bytes([byte]) for byte in b"0123456789abZ .-"]
VALUES = ["0", "0.25", "1", "17", "-3", "0.1", "0.30000000000000004", "1e-1"]
LIVES = [50, 1_000, 20_000]  # records of a partition, which then begins anew: soon all caps are reached
SHORT = {"several metrics": [10, 50]}  # once a time is far ahead, all others are late, and the twin's
LEAST_SHARE = 0.2  # of the kernel


def main(
    records: Annotated[int, typer.Option(help="Mutated records, in all.")] = 10_000_000,
    batches: Annotated[int, typer.Option(help="Mutated batches, in all.")] = 200_000,
    seed: Annotated[int | None, typer.Option(help="That of a run to repeat.")] = None,
    jobs: Annotated[int, typer.Option(help="How many processes.")] = os.cpu_count() or 1,
    name: Annotated[str | None, typer.Option(help=f"One of: {', '.join(CONFIGS)}.")] = None,
) -> None:
    """Feed both lanes until a difference is found, or all is done."""
    seed = random.SystemRandom().randrange(2**32) if seed is None else seed
    print(f"seed {seed}", flush=True)
    began, names = time.monotonic(), [name] if name else list(CONFIGS)
    each, parts = -(-records // len(names)), 20
    with ProcessPoolExecutor(jobs) as pool:
        broken = [pool.submit(mutate_batches, -(-batches // parts), f"{seed} {part}") for part in range(parts)]
        fed = {one: pool.submit(feed, one, each, f"{seed} {one}") for one in names}
        taken = {}
        for one, future in fed.items():
            taken[one] = future.result()
            print(f"{one}: {each:,} records, {taken[one] / each:.0%} by the kernel", flush=True)
        read, refused = (sum(numbers) for numbers in zip(*(future.result() for future in broken), strict=True))
    share = sum(taken.values()) / (each * len(names))
    print(
        f"seed {seed}: {each * len(names):,} mutated records, {share:.0%} by the kernel; "
        f"{parts * -(-batches // parts):,} mutated batches, {refused:,} refused, {read:,} records in the others; "
        f"{time.monotonic() - began:.0f} s"
    )
    sys.exit(share < LEAST_SHARE)


def feed(name: str, count: int, seed: str) -> int:
    """Give both lanes so many mutated records; how many of them were the kernel's."""
    choose, taken, offset = random.Random(seed), 0, 0
    reader.MOST_IN_A_RUN = 1  # the kernel is asked about each, however many of those before were the twin's
    bases = [base(choose) for _ in range(4_000)]
    while count:
        life = min(count, choose.choice(SHORT.get(name, LIVES)))
        lanes, log = Lanes.of(CONFIGS[name], choose.choice([1, 1, 2])), mutated(choose, bases, life)
        count -= life
        while log:
            size = choose.choice([1, 7, 100, 500, 2_000])
            raws, log = log[:size], log[size:]
            stamps = choose.choices([STAMP, STAMP, -1, 0], k=len(raws))
            lines = [
                Line(offset + number, raw, timestamp=stamp)
                for number, (raw, stamp) in enumerate(zip(raws, stamps, strict=True))
            ]
            if choose.random() < 0.5:
                lanes.process(lines)
            else:
                rows: Any = [(0, stamp, None, raw, []) for raw, stamp in zip(raws, stamps, strict=True)]
                made, _ = batch(offset, rows, choose.choice(CODECS))
                twin, kernel = (reading(made, offset, whole=is_whole)[0] for is_whole in (False, True))
                lanes.process(list(twin), kernel)  # aiokafka's builder takes -1 for no time
            offset += len(raws)
            if choose.random() < 0.3:
                lanes.take()
                if choose.random() < 0.2:
                    taken += lanes.kernel.read_by_kernel or 0
                    lanes.restart()
        lanes.take()
        taken += lanes.kernel.read_by_kernel or 0
    return taken


def base(choose: random.Random) -> bytes:
    """A record of a plain or an unusual form."""
    user, group, time = choose.choice(USERS), choose.choice(GROUPS), choose.choice([choose.randint(100, 160), 160])
    if choose.random() < 0.8:
        return (PLAIN % (user, choose.choice(VALUES), time, group)).encode()
    fields = {"u": f'"{user}"', "x": choose.choice(VALUES), "t": str(time), "g": f'"{group}"'}
    if choose.random() < 0.5:
        fields[choose.choice("uxtg")] = choose.choice(FRAGMENTS)
    return (choose.choice(SHAPES[1:]) % fields).encode("utf-8", "surrogatepass")


def mutated(choose: random.Random, bases: list[bytes], count: int) -> list[bytes]:
    """Records each of which had one or two places changed, cut out or doubled."""
    found: list[bytes] = []
    while len(found) < count:
        for raw in choose.choices(bases, k=count - len(found)):
            new = mutation(choose, raw)
            if choose.random() < 0.25:
                new = mutation(choose, new)
            if new != raw:
                found.append(new)
    return found


def mutation(choose: random.Random, raw: bytes) -> bytes:
    """A record with one place changed."""
    at, kind = int(choose.random() * len(raw)), choose.random()
    if kind < 0.15:
        return raw[:at] + choose.choice(WRONG) + raw[at + 1 :]
    if kind < 0.3:
        return raw[:at] + raw[at + 1 + int(choose.random() * 3) :]
    if kind < 0.45:
        end = at + 1 + int(choose.random() * 3)
        return raw[:end] + raw[at:]
    if kind < 0.6:
        return raw[:at] + choose.choice(HARMLESS) + raw[at:]
    for _ in range(8):  # a letter or digit becomes another: most of these are still plain
        if raw[at : at + 1].isalnum():
            break
        at = int(choose.random() * len(raw))
    return raw[:at] + choose.choice(HARMLESS) + raw[at + 1 :]


def mutate_batches(count: int, seed: str) -> tuple[int, int]:
    """Read so many broken batches with the kernel and without; records that were read, and batches refused."""
    choose, read, refused = random.Random(seed), 0, 0
    bases = [base(choose) for _ in range(200)]
    for _ in range(count):
        rows = [
            (choose.choice([0, 0, 0, 1]), choose.choice([STAMP, 0, -1, 2**62]), choose.choice([None, b"k"]),
             choose.choice([None, *choose.sample(bases, 3)]), choose.choice([[], [], [("h", b"v")]]))
            for _ in range(choose.randint(1, 12))
        ]  # fmt: skip
        whole, _ = batch(7, rows, choose.choice([0, 0, *CODECS]))
        raw = bytearray(whole)
        for _ in range(choose.choice([1, 1, 2, 3])):
            # not of the length, nor of the magic: tests of their own; aiokafka reads past the end of such
            at = choose.choice([*range(8), *range(21, min(80, len(raw))), *range(61, len(raw))])
            raw[at] = choose.choice([0, 1, 2, 0x7F, 0x80, 0xFF, raw[at] ^ 1, raw[at] ^ 0x10])
        raw[ATTRIBUTES + 1] &= 0x0F  # no control batch
        log = sealed(raw) if choose.random() < 0.9 else bytes(raw)
        since = choose.choice([0, 7, 9])
        kernel, twin = (told(reading(log, since, whole=is_whole)) for is_whole in (True, False))
        assert kernel == twin, (log.hex(), since)
        if isinstance(twin, str):
            refused += 1
        else:
            read += len(twin[0])
    return read, refused


if __name__ == "__main__":
    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(main)
    app()
