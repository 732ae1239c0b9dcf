"""The `decay` of a metric: how its sums forget.

{ kind = "none" }                              everything counts, for ever
{ kind = "window", length = "7d" }             the last seven days
{ kind = "window", updates = 100 }             the last hundred steps in which anything came
{ kind = "all-windows" }                       any last steps; `shoal window` answers afterwards
{ kind = "exponential", half_life = "1d" }     half as much a day later; or `alpha`, what is left after a step
{ kind = "polynomial", exponent = 1.5 }        (age in steps + 1) ** -1.5
{ kind = "forward", exponent = 2 }             (a step's number / the newest step's) ** 2
{ kind = "table", weights = [1, 0.5, 0.2] }    what a step of age 0, 1, 2 weighs; older ones weigh nothing
{ kind = "formula", weight = "1/(1+i)^1.5", horizon = "30d" }    what a step of age i weighs, up to the horizon
"""

from fractions import Fraction
from typing import Literal

from pydantic import Field, field_validator, model_validator

from shoal.mechanisms.parts import at
from shoal.models.config.section import Duration, Exact, Section

NEEDS = {"none": (), "window": ("length", "updates"), "all-windows": (), "exponential": ("half_life", "alpha"),
         "polynomial": ("exponent",), "forward": ("exponent",), "table": ("weights",),
         "formula": ("weight", "horizon")}  # fmt: skip
LEAST_ERROR = Fraction(1, 100)  # the number of windows grows with its inverse
TAKES = {"all-windows": ("zeta",), "polynomial": ("horizon", "error"), "table": ("error",), "formula": ("error",)}


class DecaySection(Section):
    """`decay = { kind = ... }` of a metric."""

    kind: Literal["none", "window", "all-windows", "exponential", "polynomial", "forward", "table", "formula"] = Field(
        ..., description="how sums forget"
    )
    length: Duration | None = Field(None, gt=0, description="window: its length, a multiple of every")
    updates: int | None = Field(
        None, ge=1, le=2**40, description="window: the number of last steps that count in which anything came"
    )
    half_life: Duration | None = Field(None, gt=0, description="exponential: after this time a step counts half")
    alpha: Exact | None = Field(None, gt=0, lt=1, description="exponential: the weight of a step one step later")
    exponent: Exact | None = Field(
        None,
        gt=0,
        description="polynomial: a step of age a weighs (a + 1) ** -exponent; forward: step i weighs "
        "(i / t) ** exponent at step t",
    )
    weights: tuple[Exact, ...] | None = Field(
        None, description="table: what a step of age 0, 1, 2, ... weighs, from 1 down to 0; older ones weigh nothing"
    )
    weight: str | None = Field(
        None, min_length=1, description="formula: what a step of age i weighs, such as 1/(1+i)^1.5"
    )
    horizon: Duration | None = Field(
        None,
        gt=0,
        description="formula: older steps weigh nothing; polynomial: up to this age weights are what they should be, "
        "none: ten million steps; a multiple of every",
    )
    error: Exact | None = Field(
        None,
        description="polynomial, table or formula, with patent: by which part sums may be too small; none: 0.2",
    )
    zeta: Exact | None = Field(
        None, gt=1, le=8, description="all-windows, with patent: noise grows with the level to this power; none: 1.25"
    )

    def part(self) -> at.Decay:
        """The decay as a part of a metric."""
        match self:
            case DecaySection(kind="window", length=int(length)):
                return at.Window(length)
            case DecaySection(kind="window", updates=int(count)):
                return at.Updates(count)
            case DecaySection(kind="all-windows"):
                return at.AllWindows(self.zeta)
            case DecaySection(half_life=int(half_life)):
                return at.HalfLife(half_life)
            case DecaySection(alpha=Fraction() as alpha):
                return at.Exponential(alpha)
            case DecaySection(kind="polynomial", exponent=Fraction() as exponent):
                return at.Polynomial(exponent, self.horizon, self.error)
            case DecaySection(kind="forward", exponent=Fraction() as exponent):
                return at.Forward(exponent)
            case DecaySection(weights=tuple(weights)):
                return at.Table(weights, self.error)
            case DecaySection(kind="none"):
                return at.Undecayed()
            case _:
                return at.Formula(self.weight or "", self.horizon or 0, self.error)

    @field_validator("error")
    @classmethod
    def _needs_few_windows(cls, value: Fraction | None) -> Fraction | None:
        if value is not None and not LEAST_ERROR <= value < 1:
            raise ValueError(f"must lie between {float(LEAST_ERROR)} and 1")
        return value

    @model_validator(mode="after")
    def _complete(self) -> "DecaySection":
        given = [name for name in type(self).model_fields if name != "kind" and getattr(self, name) is not None]
        wanted, taken = NEEDS[self.kind], TAKES.get(self.kind, ())
        for name in given:
            if name not in (*wanted, *taken):
                raise ValueError(f"{name} is not for a decay of kind {self.kind}; remove it")
        given = [name for name in given if name in wanted]
        if self.kind == "formula":
            if len(given) < len(wanted):
                raise ValueError("of kind formula needs weight and horizon")
        elif wanted and len(given) != 1:
            raise ValueError(f"of kind {self.kind} needs {' or '.join(wanted)}{', not both' if given else ''}")
        return self
