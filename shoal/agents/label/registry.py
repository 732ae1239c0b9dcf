"""A record for the deployments registry of OpenDP, tier 3, from the facts of a label.

The models below have the form of the registry's schema (github.com/opendp/deployments-registry-data, commit 3e9c812),
as far as it is used: what cannot be built cannot be written. What only the owner of the deployment knows is marked
TODO; once it is filled in, a later record takes it over.
"""

from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from shoal import __version__
from shoal.agents.label.facts import Facts
from shoal.mechanisms.spec import VALUES
from shoal.models.errors import InputError
from shoal.models.loss_numbers import told

TODO = "TODO"
Texts = list[str]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Basic(_Part):
    """The product, in its owner's words."""

    name: str = f"{TODO}: name of the data product"
    data_curators: Texts = Field([f"{TODO}: who publishes"], min_length=1)
    intended_use: str = f"{TODO}: what it is for"
    data_product_type: Literal["Summary statistics"] = "Summary statistics"
    data_product_region: str = f"{TODO}: whose people, under which law"
    data_product_sector: Literal["Technology", "Healthcare", "Education", "Government", "Energy", "Finance"] | None = (
        None
    )
    description: str
    publication_date: str = Field(pattern=r"^\d{4}-\d\d-\d\d$")


class Variant(_Part):
    """What is protected, in whose sense."""

    variant_name: Literal["Pure DP", "Approximate DP"]
    data_domain: str
    unprotected_quantities: str


class Parameters(_Part):
    """Epsilon, and delta if there is one."""

    epsilon: float
    delta: float | None = None


class PrivacyLoss(_Part):
    """Whose loss, and how much."""

    privacy_unit: str
    privacy_unit_details: str
    privacy_parameters: Parameters
    privacy_parameters_details: str


class Model(_Part):
    """Who is trusted, and what is released."""

    model_name: Literal["Central"] = "Central"
    actors: str = (
        "The workers, and whoever holds the key or may read events and internal topics, are trusted. Readers of the "
        "releases and of the audit log are not."
    )
    release_type: Literal["Many releases"] = "Many releases"
    release_type_details: str
    data_source_type: Literal["Dynamic"] = "Dynamic"
    access_type: Literal["Non-interactive"] = "Non-interactive"


class Accounting(_Part):
    """How losses add up."""

    post_processing: str = (
        "Means and bounds may be clamped to their public range; whatever readers compute of releases."
    )
    composition: str = (
        "Sequential: the losses of all metrics add up. Each metric version is charged once, when it is registered, for "
        "everything that it will ever release; the ledger refuses what exceeds the budget."
    )


class Implementation(_Part):
    """How it is computed."""

    preprocessing_and_hyperparameter_tuning: str = (
        f"{TODO}: how ranges, caps and epsilon were chosen, and from what data"
    )
    mechanisms: str
    justification: str = f"{TODO}: why this unit and this epsilon"


class Administrative(_Part):
    """The authors of the record, who need not be those of the deployment, and their sources."""

    sources: str | None = None
    notes: str | None = None
    registry_authors: Texts = Field([TODO], min_length=1)


class Deployment(_Part):
    """All parts of a record."""

    basic: Basic
    dp_variant: Variant
    privacy_loss: PrivacyLoss
    deployment_model: Model
    accounting: Accounting
    implementation: Implementation
    administrative: Administrative


class Record(_Part):
    """A record, as the registry takes it."""

    url_slug: str
    status: str = "Draft"
    tier: Literal[3] = 3
    deployment: Deployment


# What the owner of a deployment fills in, by part.
OWNED = {
    "basic": (
        "name", "data_curators", "intended_use", "data_product_region", "data_product_sector", "description",
        "publication_date",
    ),
    "implementation": ("preprocessing_and_hyperparameter_tuning", "justification"),
    "administrative": ("sources", "notes", "registry_authors"),
}  # fmt: skip


def record(facts: Facts, today: date, former: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The record as the registry has it; what the owner filled into a former one stays.

    Raises:
        InputError: the former record is none, or says what the registry does not take.
    """
    made = _made(facts, today).model_dump(exclude_none=True)
    if former is None:
        return made
    try:
        made |= {key: former[key] for key in ("url_slug", "status")}
        for part, keys in OWNED.items():
            held = former["deployment"][part]
            made["deployment"][part] |= {key: held[key] for key in keys if key in held}
        return Record.model_validate(made).model_dump(exclude_none=True)
    except (KeyError, TypeError) as error:
        raise InputError(f"the former record has no {error}; write a new one, to another file") from None
    except ValueError as error:
        raise InputError(f"the former record is not what the registry takes: {error}") from None


def open_points(made: Mapping[str, Any]) -> Iterator[str]:
    """Where a record still says TODO, as paths."""
    for part, keys in made["deployment"].items():
        for key, value in keys.items():
            if TODO in str(value):
                yield f"deployment.{part}.{key}"


def _made(facts: Facts, today: date) -> Record:
    total = facts.charged
    by_values = facts.relation == VALUES
    return Record(
        url_slug=f"{facts.app}-{today.year}",
        deployment=Deployment(
            basic=Basic(
                description="Released continually: " + "; ".join(metric.content for metric in facts.metrics) + ".",
                publication_date=today.isoformat() if facts.since is None else facts.since[:10],
            ),
            dp_variant=Variant(
                variant_name="Approximate DP" if total.delta else "Pure DP",
                data_domain=(
                    "Streams of events with the same pattern: who, when, and in which group and place."
                    if by_values
                    else "Streams of events of any number of people."
                ),
                unprotected_quantities=" ".join(facts.statement.public),
            ),
            privacy_loss=PrivacyLoss(
                privacy_unit=facts.unit,
                privacy_unit_details=" ".join([_relation(by_values), *facts.statement.protected]),
                privacy_parameters=Parameters(
                    epsilon=float(total.epsilon), delta=float(total.delta) if total.delta else None
                ),
                privacy_parameters_details=_details(facts),
            ),
            deployment_model=Model(
                release_type_details=(
                    f"The stated loss covers all releases, for ever. {facts.words.cost} The budget is never reset."
                )
            ),
            accounting=Accounting(),
            implementation=Implementation(mechanisms=_mechanisms(facts)),
            administrative=Administrative(),
        ),
    )


def _relation(by_values: bool) -> str:
    if by_values:
        return 'Neighbours differ in the values of one unit; their pattern is the same (relation "values").'
    return 'Neighbours differ in all records of one unit, which are there or are not (relation "add-remove").'


def _details(facts: Facts) -> str:
    parts = [
        f"{metric.name} version {metric.version}, charged {told(metric.charge)}: {metric.guarantee}"
        for metric in (*facts.metrics, *facts.others)
    ]
    return ". ".join([*parts, " ".join(facts.statement.loss)])


def _mechanisms(facts: Facts) -> str:
    gaussian = ", and discrete Gaussian noise where a metric has a delta for it" if facts.charged.delta else ""
    log = "" if facts.log is None else f" Audit log {facts.log}."
    return (
        f"shoal {__version__}. Exact discrete Laplace noise on an integer grid{gaussian}, a function of a secret key; "
        "no floating point between the grid and the noise. Every release is in a log of chained digests and can be "
        f"made again bit for bit.{log} Digest of the label: {facts.digest}."
    )
