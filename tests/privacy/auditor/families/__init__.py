"""The families of configurations: each draws a case from a seed. Random, but always the same for the same seed."""

import random
from collections.abc import Callable

from tests.privacy.auditor.families import (
    epochs,
    few_priors,
    forward,
    found,
    full,
    gaussian,
    listed,
    listed_variances,
    means,
    planes,
    predicates,
    presence,
    presence_slots,
    restarts,
    shares,
    sharp,
    sigma,
    slots,
    sums,
    updates,
    variances,
    vectors,
)
from tests.privacy.auditor.streams import Case

FAMILIES: dict[str, Callable[[random.Random], Case]] = {
    "sums": sums.draw,
    "means": means.draw,
    "sharp": sharp.draw,
    "full": full.draw,
    "slots": slots.draw,
    "planes": planes.draw,
    "restarts": restarts.draw,
    "epochs": epochs.draw,
    "variances": variances.draw,
    "predicates": predicates.draw,
    "listed": listed.draw,
    "listed-variances": listed_variances.draw,
    "updates": updates.draw,
    "gaussian": gaussian.draw,
    "few-priors": few_priors.draw,
    "shares": shares.draw,
    "forward": forward.draw,
    "presence": presence.draw,
    "presence-slots": presence_slots.draw,
    "found": found.draw,
    "vectors": vectors.draw,
    "sigma": sigma.draw,
}


def case_of(family: str, seed: int) -> Case:
    """The case of a seed."""
    return FAMILIES[family](random.Random(f"{family}/{seed}"))
