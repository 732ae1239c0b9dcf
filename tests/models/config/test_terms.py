"""Terms of registered versions: what their parameters say of them, and what is read of it again."""

import pytest

from shoal.mechanisms.continual_mean.full import AS_PRINTED, Full
from shoal.mechanisms.kinds import statistic_of
from shoal.models.config.terms import Terms
from shoal.models.version import VersionId
from tests.stream.simulation import config
from tests.support.cover import in_a_loop


@in_a_loop
@pytest.mark.parametrize("algorithm", ["naive", "full"])
@pytest.mark.parametrize("terms", [Terms(reading, median) for reading in (1, 2) for median in (1, 2)], ids=str)
def test_what_parameters_say_of_terms_is_read_again(terms: Terms, algorithm: str) -> None:
    read = Terms.of({"algorithm": algorithm} | terms.said(algorithm))
    # then they are the same; without private medians there is nothing to keep of them
    assert read == (terms if algorithm == "full" else terms._replace(median=Terms().median))


def test_the_first_terms_are_those_of_which_nothing_is_said() -> None:
    assert Terms.of({"algorithm": "full"}) == Terms(1, 1)
    assert Terms(1, 1).said("full") == {}


@pytest.mark.parametrize("said", [{"reading": 3}, {"median": 0}, {"median": 3}])
def test_terms_of_a_later_version_are_refused(said: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="of a later version"):
        Terms.of({"algorithm": "full"} | said)


def test_a_registered_version_keeps_the_printed_number_of_arrays() -> None:
    cfg = config({"name": "old", "algorithm": "full"}, {"name": "new", "algorithm": "full"})
    old, new = (statistic_of(metric) for metric in cfg.under({VersionId("shoal", "old", 1): Terms(median=1)}).metric)
    assert isinstance(old, Full)
    assert isinstance(new, Full)
    assert (old.sensitivity, new.sensitivity) == (AS_PRINTED, 1)
    assert old.median_epsilon == old.prior_epsilon == new.median_epsilon / 2
