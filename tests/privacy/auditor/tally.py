"""Many configurations audited, and what came of them by family and kind."""

from dataclasses import dataclass, field
from typing import Any

from tests.privacy.auditor.audit import Audited, audit
from tests.privacy.auditor.families import case_of
from tests.privacy.auditor.unknowns import TooManyUnknowns

BRANCHES = ("choices", "woke_late")  # cases that show that a family reaches what it is for


def audited(family: str, seed: int) -> tuple[str, Audited | None, dict[str, Any]]:
    """Family, what was found, and the configuration; None where it cannot be audited or is refused."""
    case = case_of(family, seed)
    try:
        found = audit(case, seed)
    except (TooManyUnknowns, ValueError):
        return family, None, {}
    return family, found, found.told(case)


@dataclass
class Kind:
    """What was found of one kind of configuration."""

    done: int = 0
    over: int = 0
    ratio: float = 0.0  # the largest
    releases: int = 0
    reached: dict[str, int] = field(default_factory=lambda: dict.fromkeys(BRANCHES, 0))

    def add(self, found: Audited) -> None:
        """One more."""
        self.done += 1
        self.over += found.is_over
        self.ratio = max(self.ratio, found.ratio)
        self.releases += found.releases
        for branch in BRANCHES:
            self.reached[branch] += getattr(found, branch) > 0

    def told(self) -> dict[str, Any]:
        """As JSON."""
        counts = {"configurations": self.done, "over": self.over, "largest_ratio": round(self.ratio, 5)}
        return counts | {"releases": self.releases} | {f"with_{name}": count for name, count in self.reached.items()}


class Tally:
    """Of all families."""

    def __init__(self, families: list[str]) -> None:
        self.tried = self.done = self.skipped = 0
        self.failures: list[dict[str, Any]] = []
        self._kinds: dict[str, dict[str, Kind]] = {family: {} for family in families}

    @property
    def over(self) -> int:
        """How many broke the guarantee."""
        return len(self.failures)

    def add(self, family: str, found: Audited | None, told: dict[str, Any]) -> None:
        """One more; None could not be audited."""
        self.tried += 1
        if found is None:
            self.skipped += 1
            return
        self.done += 1
        self._kinds[family].setdefault(found.label, Kind()).add(found)
        if found.is_over:
            self.failures.append({"family": family} | told)

    def told(self) -> dict[str, Any]:
        """As JSON: totals, each family's, each kind's, and all configurations that broke the guarantee."""
        return {
            "configurations": self.done, "skipped": self.skipped, "over": self.over,
            "families": {
                family: self._family(kinds) | {"kinds": {label: kind.told() for label, kind in sorted(kinds.items())}}
                for family, kinds in self._kinds.items()
            },
            "failures": self.failures,
        }  # fmt: skip

    @staticmethod
    def _family(kinds: dict[str, Kind]) -> dict[str, Any]:
        ratio = max((kind.ratio for kind in kinds.values()), default=0.0)
        counts = {"configurations": sum(kind.done for kind in kinds.values())}
        return counts | {"over": sum(kind.over for kind in kinds.values()), "largest_ratio": round(ratio, 5)}

    def table(self) -> str:
        """A line for each family."""
        lines = [f"{'family':<10}{'configurations':>15}{'over':>6}{'largest loss / epsilon':>24}"]
        for family, told in self.told()["families"].items():
            counts = f"{family:<10}{told['configurations']:>15}{told['over']:>6}{told['largest_ratio']:>24.5f}"
            lines.append(counts)
        lines += [f"over epsilon: {failure}" for failure in self.failures]
        return "\n".join(lines)
