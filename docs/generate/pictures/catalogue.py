"""The pictures by name: docs/images/algorithms/NAME.svg."""

from docs.generate.pictures import (
    blocks,
    clip_range,
    counters,
    decays,
    distributions,
    event,
    few_users,
    keyed_noise,
    ledger,
    presence,
    sharp,
    slots,
    unknown_keys,
)
from docs.generate.pictures.card import Picture

PICTURES: dict[str, Picture] = {
    "blocks": blocks,
    "clip_range": clip_range,
    "counters": counters,
    "decays": decays,
    "distributions": distributions,
    "event": event,
    "few_users": few_users,
    "keyed_noise": keyed_noise,
    "ledger": ledger,
    "presence": presence,
    "sharp": sharp,
    "slots": slots,
    "unknown_keys": unknown_keys,
}
