"""Mutants of relations: what a ledger is charged for a metric, and which topics two may not share."""

from tests.mutants.mutant import Mutant

UNIT = "models/config/test_unit.py::"
LEDGER = "agents/audit/test_ledger.py::"
CHARGED = UNIT + "test_a_metric_of_add_remove_is_charged_by_the_relation_of_its_ledger"


def mutant(name: str, file: str, old: str, new: str, breach: str, *tests: str, quick: bool = False) -> Mutant:
    return Mutant(name=name, family="relations", file=file, old=old, new=new, breach=breach, tests=tests, quick=quick)


MUTANTS = (
    mutant(
        "other values charged as one step",
        "models/config/unit.py",
        "return 2 * touched if relations == (VALUES, ADD_REMOVE) else",
        "return touched if relations == (VALUES, ADD_REMOVE) else",
        "a unit whose values change goes and comes back: it loses epsilon twice",
        CHARGED,
        quick=True,
    ),
    mutant(
        "a unit that is cut charged as one step",
        "models/config/unit.py",
        "    return 0 if whole else 2\n",
        "    return 0\n",
        "without a person's first samples others count, and both sums move by twice the cap",
        CHARGED,
        UNIT + "test_a_unit_that_is_cut_goes_and_comes_back",
    ),
    mutant(
        "a public count for nothing in a ledger that hides presence",
        "models/config/unit.py",
        "    if relations == (ADD_REMOVE, VALUES):\n",
        "    if False:\n",
        "an exact count shows who is there, whatever its epsilon",
        UNIT + "test_what_publishes_who_contributes_has_no_cost_where_that_is_hidden",
    ),
    mutant(
        "a ledger that takes any relation",
        "agents/audit/budget.py",
        "    if book.relation != relation:\n",
        "    if False:\n",
        "metrics of values in a ledger that promises to hide presence",
        LEDGER + "test_a_ledger_counts_by_one_relation",
    ),
    mutant(
        "a file with both relations",
        "models/config/file.py",
        "if len(relations := {metric.relation for metric in config.metric}) > 1:",
        "if len(relations := {metric.relation for metric in config.metric}) > 2:",
        "what one metric hides another publishes",
        "cli/test_messages.py::test_a_mistake_is_answered_in_words",
    ),
    mutant(
        "a topic read by both relations once one has retired",
        "agents/audit/registration.py",
        "    readers |= {(row.app, row.metric, row.version): row for row in rows}\n",
        "    readers |= {(row.app, row.metric, row.version): row for row in rows if row.state == ACTIVE}\n",
        "the exact counts of a retired metric stay known",
        LEDGER + "test_a_topic_is_read_by_one_relation",
    ),
)
