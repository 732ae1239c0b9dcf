"""The `selection` of a metric: how keys are found that nobody declared, under relation add-remove.

{ epsilon = 0.2, keys = 1 }    a fifth of an epsilon of 1 finds them, and a unit is counted for its first key
"""

from pydantic import Field

from shoal.models.config.section import Exact, Section


class SelectionSection(Section):
    """`selection = { ... }` of a metric."""

    epsilon: Exact | None = Field(
        None, gt=0, description="the part of the metric's epsilon; none: a fifth of it, per slot half"
    )
    keys: int = Field(1, ge=1, le=64, description="G: for how many keys, its first, a unit counts when keys are found")
