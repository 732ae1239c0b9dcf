"""What may befall a clone of an app's topics: one change each, which an audit must find."""

from typing import Any

import orjson

from tests.support.clone import Clone

HOUR = 3_600_000_000  # microseconds


def forge_release(clone: Clone) -> None:
    key, value, headers = clone.records["releases", 0][-1]
    fields = orjson.loads(value or b"")
    fields |= {"seq": fields["seq"] + 1, "id": f"{fields['id'].rpartition('/')[0]}/{fields['seq'] + 1}"}
    clone.records["releases", 0].append((key, orjson.dumps(fields), headers))


def write_garbage(clone: Clone) -> None:
    clone.records["releases", 1].append((b"x", b"[]", []))


def lose_release(clone: Clone) -> None:
    del clone.records["releases", 0][5]


def lose_last_releases(clone: Clone) -> None:
    del clone.records["releases", 0][-3:]


def swap_releases(clone: Clone) -> None:
    records = clone.records["releases", 0]
    records[3], records[4] = records[4], records[3]


def change_release(clone: Clone) -> None:
    key, value, headers = clone.records["releases", 0][7]
    clone.records["releases", 0][7] = (key, (value or b"").replace(b'"value":', b'"value":1'), headers)


def change_record_key(clone: Clone) -> None:
    _, value, headers = clone.records["releases", 0][7]
    clone.records["releases", 0][7] = (b"other|", value, headers)


def lose_header(clone: Clone) -> None:
    key, value, _ = clone.records["releases", 0][7]
    clone.records["releases", 0][7] = (key, value, [])


def lose_activation(clone: Clone) -> None:
    del clone.records["activations", home_of(clone)][0]


def forge_activation(clone: Clone) -> None:
    records = clone.records["activations", home_of(clone)]
    forged = orjson.loads(records[0][1] or b"") | {"level": 30}
    records.append((records[0][0], orjson.dumps(forged), []))


def home_of(clone: Clone) -> int:
    return next(home for home in range(clone.original.homes) if clone.records["activations", home])


def with_rows(clone: Clone, name: str) -> tuple[int, int, dict[str, Any]]:
    """Home, number and content of a message with at least two rows, or a partial, of a metric."""
    for home in range(clone.original.homes):
        for number in range(len(clone.records["contributions", home])):
            message = clone.contribution(home, number)
            if any(key.startswith(f"{name}/") and len(rows) > 1 for key, rows in message["c"].items()):
                return home, number, message
            if any(key.startswith(f"{name}/") for key in message["s"]):
                return home, number, message
    raise AssertionError(name)


def lose_row(clone: Clone) -> None:
    home, number, message = with_rows(clone, "city-full")
    next(rows for key, rows in message["c"].items() if key.startswith("city-full/") and len(rows) > 1).pop()
    clone.put_contribution(home, number, message)


def change_partial(clone: Clone) -> None:
    home, number, message = with_rows(clone, "city")
    _, flat = next(partials for key, partials in message["s"].items() if key.startswith("city/"))[0]
    flat[2] += 1
    clone.put_contribution(home, number, message)


def lose_message(clone: Clone) -> None:
    del clone.records["contributions", 0][1]


def repeat_message(clone: Clone) -> None:
    clone.records["contributions", 0].append(clone.records["contributions", 0][0])


def break_message(clone: Clone) -> None:
    clone.records["contributions", 0][1] = (None, b'{"t": 7}', [])


def move_clock_back(clone: Clone) -> None:
    """All watermarks of clock records, which say ends of hours; how many messages have them is up to timing."""
    for number in range(len(clone.records["contributions", 0])):
        message = clone.contribution(0, number)
        if message["m"] and message["t"].endswith("events"):
            message["m"] = {label: at if at % HOUR else 0 for label, at in message["m"].items()}
            clone.put_contribution(0, number, message)


def forge_count(clone: Clone) -> None:
    clone.marks["release.changelog", 0]["count"] += 2


def forge_log(clone: Clone) -> None:
    clone.marks["release.changelog", 0]["log"] = "other"


def forget_state(clone: Clone) -> None:
    clone.marks["release.changelog", 0].clear()


def bound_mark(clone: Clone) -> dict[str, Any]:
    return next(mark for (name, p), mark in clone.marks.items() if name.endswith("-events.changelog") and p == 0)


def forget_bound(clone: Clone) -> None:
    bound_mark(clone).clear()


def forge_bound_log(clone: Clone) -> None:
    bound_mark(clone)["log"] = "other"


def forge_numbers(clone: Clone) -> None:
    bound_mark(clone)["numbers"][0] += 1
