"""The `clip` of a metric: how the range that values are clipped to is chosen, under relation add-remove.

"auto"                            by the defaults
{ epsilon = 0.1, share = 0.02 }   a tenth of an epsilon of 1 chooses, and 2 % of units may have their number above
"""

from fractions import Fraction
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, field_validator

from shoal.models.config.section import Exact, Section


class ClipSection(Section):
    """`clip = { ... }` of a metric."""

    epsilon: Exact | None = Field(
        None, gt=0, description="the part of the metric's epsilon that chooses the range; none: 0.2 of it"
    )
    crossing: Exact | None = Field(
        None, gt=0, description="the part that tells when enough units have come to a key; none: 0.02 of it"
    )
    share: Exact | None = Field(
        None,
        gt=0,
        description="f, at most 0.5: the part of units whose first value may lie above the range; none: 0.01, or "
        "where users are declared 0.001 to 0.05, so that a third of them choose",
    )

    @field_validator("share")
    @classmethod
    def _is_half(cls, value: Fraction | None) -> Fraction | None:
        if value is not None and value > Fraction(1, 2):
            raise ValueError("must be 0.5 at most")
        return value


def _auto(value: Any) -> Any:
    return {} if value == "auto" else value


Clip = Annotated[ClipSection, BeforeValidator(_auto)]
