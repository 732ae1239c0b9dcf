"""Mutants of first configurations: what is proposed must not tell a value of the sample."""

from tests.mutants.mutant import Mutant

SAMPLE = "agents/init/test_sample.py::"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        name="rare names of fields are shown",
        family="drafts",
        file="agents/init/fields.py",
        old="SHOWN_FROM = 0.1",
        new="SHOWN_FROM = 0.0",
        breach="a name that one person's record has is proposed for a public configuration",
        tests=(f"{SAMPLE}test_a_name_that_few_records_have_may_be_somebodys_and_is_left_out",),
        quick=True,
    ),
    Mutant(
        name="the first record of a table without a header is taken for names",
        family="drafts",
        file="agents/init/sample.py",
        old="if file.header is not None and any(",
        new="if file.header == [] and any(",
        breach="values of one person are printed, and proposed for a public configuration",
        tests=(f"{SAMPLE}test_what_cannot_be_a_sample_says_why_and_shows_nothing_of_it",),
    ),
)
