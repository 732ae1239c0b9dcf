"""A releaser that is restored at any step from what a changelog has of it, beside one that never ends."""

from collections.abc import Callable, Iterable
from typing import Any

import orjson
from hypothesis import strategies as st

from shoal.mechanisms.statistic import Contribution


def check_restarts(
    make: Callable[[], Any], stream: Iterable[Any], step: Callable[[Any, Any], Any], data: st.DataObject
) -> None:
    """make: a fresh releaser; step: gives a releaser the samples of one step and returns its release."""
    whole, part = make(), make()
    kept: dict[tuple[int, str], Contribution] = {}
    for samples in stream:
        rest = data.draw(st.sampled_from([0, 0, 0, 1, 70]))
        for releaser in (whole, part) if rest else ():
            releaser.skip(rest)
        assert step(whole, samples) == step(part, samples)
        if data.draw(st.booleans()):
            # given what a changelog has: heads as JSON, and rows as they changed
            written, dropped = part.take_changes()
            kept |= {(row.level, row.pseudonym): row for row in written}
            for name in dropped:
                del kept[name]
            assert kept == dict(part.kept)
            head = orjson.loads(orjson.dumps(part.head()))
            part = make()
            part.restore(head, [Contribution(*orjson.loads(orjson.dumps(tuple(row)))) for row in kept.values()])
