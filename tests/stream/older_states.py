"""States of release's changelog with another mark."""

import orjson

from shoal.stream.state_mark import MARK
from shoal.stream.table.seals import sealed_mark

State = dict[bytes, bytes]


def changed(changelog: State, **changes: object) -> State:
    """With other fields in the mark, and without a seal; None takes a field away."""
    mark = orjson.loads(changelog[MARK]) | {"seal": None} | changes
    return changelog | {MARK: orjson.dumps({name: value for name, value in mark.items() if value is not None})}


def changed_and_sealed(changelog: State, **changes: object) -> State:
    """The same, with the seal of what the mark now says."""
    found = changed(changelog, **changes)
    return found | {MARK: sealed_mark(found[MARK])}
