"""The demo's data are what their README says, and the example is their beginning."""

import csv
import gzip
import hashlib
import json
import re
from collections import Counter
from pathlib import Path

from shoal.models.config.file import load

ROOT = Path(__file__).parent.parent
DATA = ROOT / "shoal" / "agents" / "demo" / "data"
README = (DATA / "README.md").read_text("utf-8")


def purchases() -> list[dict[str, str]]:
    with gzip.open(DATA / "purchases.csv.gz", "rt", encoding="ascii", newline="") as file:
        return list(csv.DictReader(file))


def test_the_data_are_those_whose_checksum_is_given() -> None:
    packed = (DATA / "purchases.csv.gz").read_bytes()
    for content in (packed, gzip.decompress(packed)):
        assert f"`{hashlib.sha256(content).hexdigest()}`" in README
    assert packed[4:8] == bytes(4)  # gzip's time stamp


def test_the_readme_counts_right() -> None:
    rows = purchases()
    per_customer = Counter(row["customer"] for row in rows)
    amounts = [float(row["amount"]) for row in rows]
    assert f"| {len(rows):,} |" in README
    assert f"| {len(per_customer):,}; the busiest made {max(per_customer.values())} purchases" in README
    assert f"{sum(n > 64 for n in per_customer.values())} made more than 64" in README
    assert f"{rows[0]['at']} to {rows[-1]['at']}, {len({row['at'] for row in rows})} days" in README
    assert f"{min(amounts):.2f} to {max(amounts):.2f}, mean {sum(amounts) / len(amounts):.2f}" in README
    assert f"{sum(a > 200 for a in amounts)} over 200.00, {sum(a == 0 for a in amounts)} of 0.00" in README


def test_purchases_are_in_time_order_and_well_formed() -> None:
    rows = purchases()
    assert [row["at"] for row in rows] == sorted(row["at"] for row in rows)
    for row in rows:
        assert re.fullmatch(r"[1-9]\d*,199[78]-\d\d-\d\d,\d+\.\d\d", ",".join(row.values()))


def test_the_example_is_the_beginning_of_the_data() -> None:
    lines = (ROOT / "examples" / "purchases.jsonl").read_text("ascii").splitlines()
    events = [json.loads(line, parse_float=str) for line in lines]
    assert [{**event, "customer": str(event["customer"])} for event in events] == purchases()[: len(events)]


def test_the_visits_are_a_week_of_the_data_and_say_who_was_new() -> None:
    first: dict[str, str] = {}
    expected = []
    for row in purchases():
        kind = "new" if first.setdefault(row["customer"], row["at"]) == row["at"] else "returning"
        if "1997-03-10" <= row["at"] <= "1997-03-16":
            expected.append({**row, "kind": kind})
    lines = (ROOT / "examples" / "visits.jsonl").read_text("ascii").splitlines()
    events = [json.loads(line, parse_float=str) for line in lines]
    assert [{**event, "customer": str(event["customer"])} for event in events] == expected
    assert f"({len(events):,} purchases) likewise" in README


def test_the_visits_as_a_table_are_the_same_events() -> None:
    lines = (ROOT / "examples" / "visits.jsonl").read_text("ascii").splitlines()
    with (ROOT / "examples" / "visits.csv").open(encoding="ascii", newline="") as table:
        rows = [{**row, "customer": int(row["customer"])} for row in csv.DictReader(table)]
    assert rows == [json.loads(line, parse_float=str) for line in lines]


def test_the_example_configuration_names_the_fields_of_the_example() -> None:
    (metric,) = load(ROOT / "examples" / "shoal.toml").metric
    first = json.loads((ROOT / "examples" / "purchases.jsonl").read_text("ascii").splitlines()[0])
    assert {metric.user, metric.value, metric.time} == set(first)
