"""Registration requests to the ledger, and the agreements that answer them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import orjson

from shoal.mechanisms.spec import VALUES
from shoal.models.tables import FILE, WORKERS
from shoal.models.version import VersionId

Number = Fraction | str | int


@dataclass(frozen=True)
class Registration:
    """A metric version as its configuration has it; amounts are exact, given as numbers or as text of them."""

    app: str
    metric: str
    version: int
    digest: str  # hexadecimal, of `parameters`
    parameters: str  # JSON object
    epsilon: Number
    delta: Number
    unit: str
    relation: str
    charge_epsilon: Number  # what it costs the ledger's unit at most
    charge_delta: Number

    @property
    def id(self) -> VersionId:
        return VersionId.of(self)

    @cached_property
    def said(self) -> dict[str, Any]:
        """Parameters of the version, parsed from their JSON."""
        said: dict[str, Any] = orjson.loads(self.parameters)
        return said


@dataclass(frozen=True)
class Request:
    """All that one configuration asks of the ledger."""

    app: str
    registrations: Sequence[Registration]
    budget_epsilon: Fraction
    budget_delta: Fraction
    key_fingerprint: str
    partitions: Mapping[str, int] = field(default_factory=dict)
    unit: str = "user"
    counts_by: str = VALUES  # the relation of the ledger
    file_run: bool = False  # a run over a file may repeat an ended version; its input is compared at its end
    run: str = ""  # the id of a file run, which alone adds to these versions from then on

    @property
    def owner(self) -> str:
        """Kind of owner of the versions that are new."""
        return FILE if self.file_run else WORKERS


@dataclass(frozen=True)
class Agreement:
    """Result of a registration, or of its check: new, retired and absent versions."""

    log_id: str
    charged: tuple[Registration, ...]  # new in the ledger; all others were there already
    retired: tuple[VersionId, ...]  # active versions that a newer one of the same metric replaces
    absent: tuple[VersionId, ...]  # active versions of workers that were not asked for
