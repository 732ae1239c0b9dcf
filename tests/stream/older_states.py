"""States of release's changelog with another mark, and as older versions wrote them."""

import orjson

from shoal.stream.state_mark import MARK
from shoal.stream.table.inventory import SEALED, Inventory, digest_before_seals
from shoal.stream.table.seals import sealed_mark, unsealed

State = dict[bytes, bytes]


def changed(changelog: State, **changes: object) -> State:
    """With other fields in the mark; None takes one away. No older version, and maybe no newer one, seals it."""
    mark = orjson.loads(changelog[MARK]) | {"seal": None} | changes
    return changelog | {MARK: orjson.dumps({name: value for name, value in mark.items() if value is not None})}


def changed_and_sealed(changelog: State, **changes: object) -> State:
    """The same, with the seal of what the mark now says."""
    found = changed(changelog, **changes)
    return found | {MARK: sealed_mark(found[MARK])}


def before_seals(state: State, number: int | None = 3) -> State:
    """A state as format 2 or 3 has it, or 1, which has no number: no seals, and a digest of names and heads alone."""
    older = {name: unsealed(value) if name[:1] in SEALED else value for name, value in state.items()}
    held = Inventory.of(older).dump() | {"digest": digest_before_seals(older)}
    return changed(older, format=number, held=held)
