"""The `selection` of a metric: how keys are found that nobody declared, under relation add-remove.

{ epsilon = 0.2 }    a fifth of an epsilon of 1 finds them; a unit is counted for its first max_groups keys
"""

from typing import Any

from pydantic import Field, model_validator

from shoal.models.config.section import Exact, Section


class SelectionSection(Section):
    """`selection = { ... }` of a metric."""

    epsilon: Exact | None = Field(
        None, gt=0, description="the part of the metric's epsilon; none: a fifth of it, per slot half"
    )

    @model_validator(mode="before")
    @classmethod
    def _renamed(cls, given: Any) -> Any:
        if isinstance(given, dict) and "keys" in given:
            raise ValueError("keys is now max_groups, a key of the metric itself")
        return given
