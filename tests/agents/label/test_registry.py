"""The record for the registry of deployments: what the registry takes, with what its owner filled in."""

import json
from datetime import date
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from shoal.agents.label.facts import facts_of
from shoal.agents.label.registry import TODO, open_points, record
from shoal.models.config.file import Config
from shoal.models.errors import InputError

SCHEMA = json.loads((Path(__file__).parent / "registry-schema.json").read_text())
TODAY = date(2026, 5, 17)
MEAN = {
    "name": "basket", "topic": "purchases", "user": "customer", "value": "amount", "time": "at", "statistic": "mean",
    "range": [0, 200], "epsilon": 1, "max_contributions": 4, "every": "1d", "users": 100,
}  # fmt: skip
CLICKS = {
    "name": "clicks", "topic": "clicks", "user": "visitor", "time": "at", "statistic": "count", "every": "1h",
    "epsilon": 1, "max_contributions": 4, "relation": "add-remove", "group": "link", "delta": "1e-9", "life": "365d",
    "start": "2026-01-01",
}  # fmt: skip


def facts(*metrics, **privacy):
    return facts_of(Config.model_validate({"privacy": {"epsilon": 8, **privacy}, "metric": metrics}), None)


@pytest.mark.parametrize(
    ("made", "variant", "parameters"),
    [
        (facts(MEAN), "Pure DP", {"epsilon": 1.0}),
        (facts(CLICKS, delta="1e-6"), "Approximate DP", {"epsilon": 1.0, "delta": 1e-9}),
    ],
)
def test_a_record_is_what_the_registry_takes(made, variant, parameters):
    shown = record(made, TODAY)
    Draft202012Validator(SCHEMA).validate(shown)
    assert shown["deployment"]["dp_variant"]["variant_name"] == variant
    assert shown["deployment"]["privacy_loss"]["privacy_parameters"] == parameters
    assert shown["deployment"]["basic"]["publication_date"] == "2026-05-17"


def test_the_schema_of_the_test_refuses_what_the_registry_refuses():
    broken = record(facts(MEAN), TODAY) | {"tier": 4}
    assert not Draft202012Validator(SCHEMA).is_valid(broken)
    assert not Draft202012Validator(SCHEMA).is_valid(record(facts(MEAN), TODAY) | {"surprise": 1})


def test_each_relation_says_what_neighbours_are_and_what_is_public():
    of_values, of_presence = (record(made, TODAY)["deployment"] for made in (facts(MEAN), facts(CLICKS, delta="1e-6")))
    assert "differ in the values of one unit" in of_values["privacy_loss"]["privacy_unit_details"]
    assert "which are there or are not" in of_presence["privacy_loss"]["privacy_unit_details"]
    assert "(fields customer and at)" in of_values["dp_variant"]["unprotected_quantities"]
    assert "customer" not in of_presence["dp_variant"]["unprotected_quantities"]


def test_what_only_the_owner_knows_is_to_be_filled_in():
    made = record(facts(MEAN), TODAY)
    points = list(open_points(made))
    assert "deployment.basic.name" in points
    assert "deployment.administrative.registry_authors" in points
    assert json.dumps(made).count(TODO) >= len(points)


def test_what_the_owner_filled_in_stays_and_everything_else_is_made_again():
    former = record(facts(MEAN), TODAY)
    former["url_slug"], former["status"] = "our-shop", "Pending"
    former["deployment"]["basic"]["name"] = "Baskets of our shop"
    former["deployment"]["basic"]["data_product_sector"] = "Technology"
    former["deployment"]["privacy_loss"]["privacy_parameters"]["epsilon"] = 0.1
    made = record(facts(MEAN, MEAN | {"name": "other"}), TODAY, former)
    Draft202012Validator(SCHEMA).validate(made)
    assert (made["url_slug"], made["status"]) == ("our-shop", "Pending")
    assert made["deployment"]["basic"]["name"] == "Baskets of our shop"
    assert made["deployment"]["basic"]["data_product_sector"] == "Technology"
    assert made["deployment"]["privacy_loss"]["privacy_parameters"]["epsilon"] == 2.0
    assert "deployment.basic.name" not in open_points(made)


@pytest.mark.parametrize("former", [{}, {"url_slug": "a", "status": "Draft", "deployment": None}])
def test_what_is_no_record_is_refused(former):
    with pytest.raises(InputError, match="the former record has no"):
        record(facts(MEAN), TODAY, former)


def test_an_entry_that_the_registry_does_not_take_is_refused():
    former = record(facts(MEAN), TODAY)
    former["deployment"]["basic"]["data_product_sector"] = "Retail"
    with pytest.raises(InputError, match="not what the registry takes"):
        record(facts(MEAN), TODAY, former)
