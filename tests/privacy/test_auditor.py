"""The auditor's answer for a few configurations of each family; `make audit-privacy` asks it for thousands."""

import json
import random
import sys
from fractions import Fraction

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from shoal.mechanisms.noise.laplace import DiscreteLaplace
from tests.privacy.auditor import __main__ as command
from tests.privacy.auditor.audit import audit
from tests.privacy.auditor.families import FAMILIES, case_of
from tests.privacy.auditor.parsing import body, outcomes
from tests.privacy.auditor.program import Unsolved, least_loss, solver
from tests.privacy.auditor.streams import Case
from tests.privacy.auditor.tally import Tally, audited
from tests.privacy.auditor.unknowns import Law, TooManyUnknowns, Unknowns
from tests.support.cover import FULL

# Seeds that take little time and between them reach what their family is for.
SEEDS = {
    "sums": (20012, 20013, 20014, 20036),
    "means": (20023, 20128, 20009, 20028, 20047),
    "sharp": (20030, 20023, 21020, 21053),
    "full": (20001, 20008, 20035, 20007),
    "slots": (20036, 20013, 20014, 20009, 20031),
    "planes": (20001, 20006, 20008, 20011),
    "restarts": (21003, 21012, 21015, 21045, 21228),
    "epochs": (30007, 30001, 30021, 30002, 30028, 30032),
    "variances": (20000, 20004, 20013, 20029),
    "predicates": (20003, 20005, 20009, 20015),
    "listed": (20000, 20002, 20005, 20011),
    "listed-variances": (20010, 20004, 20018, 20032),
    "updates": (20000, 20001, 20002, 20003),
    "gaussian": (20002, 20020, 20027, 20033),
    "few-priors": (20207, 20178, 20063, 20007),
    "shares": (20002, 20005, 20006, 20011),
    "forward": (20001, 20006, 20007, 20023),
    "presence": (20000, 20001, 20004, 20009, 20016, 20022, 20153, 20208, 20394),
    "presence-slots": (20000, 20001, 20002, 20003, 20004, 20005),
    "found": (20001, 20004, 20005, 20008, 20009, 20017, 20021, 20039, 20045, 20063, 20160),
    "vectors": (20001, 20003, 20008, 20013),
    "sigma": (20016, 20004, 20141, 20092),
}
# Seeds that take a second or more and reach nothing that the others of their family do not: with full effort only.
COSTLY = {
    "means": {20028}, "restarts": {21003, 21012, 21015}, "epochs": {30028, 30032},
    "variances": {20013}, "predicates": {20009},
    "listed-variances": {20010}, "few-priors": {20007}, "forward": {20007}, "vectors": {20008},
    "sigma": {20016, 20004},
}  # fmt: skip
LARGEST = {
    "gaussian": 0.926,  # what calls may lose is kept for them, and values seldom reach it
    "full": 0.5,  # half of epsilon is for first estimates, which one value seldom moves as far as it may
    "variances": 0.96,  # a value must move by three quarters of the range, not by all of it
    "predicates": 0.99999,  # to what a linear program is exact where the range is 1
    "listed-variances": 0.93,  # likewise, in few steps
    "shares": 0.99999,  # to what a linear program is exact for the part of epsilon that its noise has
    "listed": 0.99999,  # to what it is where a sum has a denominator
    "forward": 0.99999,  # likewise
    "presence": 0.99999,  # likewise
    "presence-slots": 0.99999,  # likewise
    "vectors": 0.99999,  # to what a linear program is exact
    "sigma": 0.99999,  # likewise
}


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_no_configuration_of_a_family_tells_more_than_its_epsilon(family):
    seeds = [seed for seed in SEEDS[family] if FULL or seed not in COSTLY.get(family, ())]
    found = [audit(case_of(family, seed), seed) for seed in seeds]
    assert [(one.label, one.ratio, one.problems) for one in found if one.is_over] == []
    # and the bound is no larger than it must be: some noise could not be any smaller
    assert max(one.ratio for one in found) >= LARGEST.get(family, 1) - 1e-6
    assert all(one.releases for one in found)
    assert any(one.unknowns for one in found) or family == "planes"
    assert any(one.choices for one in found) or family in (
        "sums",
        "means",
        "variances",
        "predicates",
        "listed",
        "updates",
        "listed-variances",
        "forward",
        "presence",
        "presence-slots",
    )


def test_a_number_decides_nothing_but_itself():
    drawn = random.Random(4)
    assert [found for found in (outcomes(body(drawn)) for _ in range(60)) if len(found) > 1] == []


def test_the_command_tells_what_it_audited(monkeypatch):
    app = typer.Typer()
    app.command()(command.main)
    said = CliRunner().invoke(app, ["--configurations", "3", "--family", "sums", "--seed", "20012", "--json"])
    assert said.exit_code == 0, said.output
    told = json.loads(said.stdout)
    assert (told["configurations"], told["over"], told["families"]["sums"]["largest_ratio"]) == (3, 0, 1.0)
    # and what is over epsilon is told with its configuration: here it would be, were half of epsilon declared
    monkeypatch.setattr(Case, "epsilon", property(lambda case: float(case.metric["epsilon"]) / 2))
    said = CliRunner().invoke(app, ["--configurations", "1", "--family", "sums", "--seed", "20013", "--jobs", "1"])
    assert said.exit_code == 1, said.output
    assert "2.00000" in said.stdout
    assert "'statistic'" in said.stdout
    assert CliRunner().invoke(app, ["--family", "none"]).exit_code == 2


def test_what_cannot_be_audited_is_counted_apart():
    tally = Tally(["sums"])
    tally.add("sums", None, {})
    tally.add(*audited("sums", 20013))
    assert (tally.tried, tally.done, tally.skipped, tally.over) == (2, 1, 1, 0)
    with Unknowns(most=1).installed(), pytest.raises(TooManyUnknowns):
        [DiscreteLaplace(1, bytes(32)).draw(index) for index in range(2)]


def test_noise_that_is_no_noise_is_noticed():
    """Releases that differ though no draw could make one of the other are beyond every epsilon."""
    with pytest.raises(Unsolved, match="without noise"):
        least_loss(np.zeros((1, 0)), np.array([1.0]), [], Fraction(0))
    for gaussian in (False, True):
        with pytest.raises(Unsolved, match="no noise gives"):
            least_loss(np.array([[1.0], [0.0]]), np.array([1.0, 1.0]), [Law(gaussian, Fraction(1))], Fraction(1, 9))


def test_without_scipy_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    with pytest.raises(RuntimeError, match=r"needs scipy: pip install 'shoal\[test\]'"):
        solver()
