"""Mutants of what readers are shown: formulas in spreadsheets, noise that is not told, versions that are mixed."""

from tests.mutants.mutant import Mutant

READING = "agents/reading/"

MUTANTS = (
    Mutant(
        name="formulas in a spreadsheet",
        family="readers",
        file="agents/reading/csv_text.py",
        old="""return f"'{text}" if text.startswith(DANGEROUS) else text""",
        new="return text",
        breach="whoever sends an event names a group =HYPERLINK(...), which the analyst's spreadsheet runs",
        tests=(READING + "test_records.py::test_no_text_begins_a_formula",),
        quick=True,
    ),
    Mutant(
        name="noise that drowns a sum, untold",
        family="readers",
        file="agents/reading/chart.py",
        old='if point.low <= 0 and (kind == "variance" or point.high >= 0) else ""',
        new='if point.low > 0 and (kind == "variance" or point.high >= 0) else ""',
        breach="a number that may be nothing is shown as a result",
        tests=(READING + "test_chart.py::test_what_a_number_is_worth_is_said",),
        quick=True,
    ),
    Mutant(
        name="the latest of an older version",
        family="readers",
        file="agents/reading/releases.py",
        old="for each in self._releases if each.version == newest[each.metric]}",
        new="for each in self._releases}",
        breach="a number of a version that was replaced is shown as the last one",
        tests=(READING + "test_read.py::test_the_latest_is_of_the_newest_version",),
        quick=True,
    ),
)
