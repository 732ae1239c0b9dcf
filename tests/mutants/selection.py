"""Mutants of whose samples count under relation add-remove, and of keys that nobody declared."""

from tests.mutants.mutant import Mutant

ACCOUNTS = "mechanisms/two_sided/test_accounts.py::"
TAKES = ACCOUNTS + "test_a_unit_that_is_removed_takes_its_contributions_with_it_and_no_other"
RESTART = ACCOUNTS + "test_a_restart_counts_nothing_anew"


def of_accounts(name: str, old: str, new: str, breach: str, *tests: str, quick: bool = False) -> Mutant:
    """One of accounts."""
    file = "mechanisms/two_sided/accounts.py"
    return Mutant(name=name, family="selection", file=file, old=old, new=new, breach=breach, tests=tests, quick=quick)


MUTANTS = (
    of_accounts(
        "the whole weight in each key",
        "newcomer(before + 1, rule.weights[before])",
        "newcomer(before + 1, rule.weights[0])",
        "a person with several keys has a weight above 1 in all, and loses more than epsilon",
        TAKES,
        quick=True,
    ),
    of_accounts(
        "a newcomer with every sample",
        " and member not in members.held",
        "",
        "a person with many samples in a key counts there as many",
        TAKES,
    ),
    of_accounts(
        "keys forgotten by a restart",
        "members.put(member, 1)",
        "members.held[member] = 1",
        "after a restart a person is a newcomer once more",
        RESTART,
    ),
    of_accounts(
        "steps forgotten by a restart",
        "steps.put(member, 1)",
        "steps.held[member] = 1",
        "after a restart a person counts twice in a step",
        RESTART,
    ),
    of_accounts(
        "one cap for each key",
        "account = accounts.get(user)\n        if account is None:",
        "user += (group or '').encode()\n        account = accounts.get(user)\n        if account is None:",
        "a person's samples move the counters of all keys by more than m",
        TAKES,
    ),
    of_accounts(
        "records of other keys",
        'return "undeclared" if self.declared is not None and group not in self.declared else None',
        "return None",
        "whether a person has samples left depends on what does not count",
        TAKES,
    ),
    of_accounts(
        "users of every sample",
        "if rule.once is not None and not self._is_first(member, effective, is_new=is_new):",
        "if False:",
        "a person counts more than once in a number of users",
        TAKES,
    ),
)  # fmt: skip
