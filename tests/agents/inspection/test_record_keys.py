"""Which records of a compacted source have their user as key, and of which topics that is asked."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from shoal.agents.inspection.record_keys import UserField, refuse_other_keys
from shoal.agents.kafka.settings import KafkaSettings
from shoal.agents.kafka.topics import PolicyError, Verified
from tests.stream.simulation import config

PRESENCE: dict[str, Any] = {
    "statistic": "count", "every": "1h", "relation": "add-remove", "start": "2001-09-09", "value": None, "range": None,
}  # fmt: skip
EVENT = b'{"u":"a","x":1,"t":1}'


@pytest.mark.parametrize(
    ("key", "value", "is_key"),
    [
        (b"a", EVENT, True),
        (b"17", b'{"u":17}', True),
        (b"b", EVENT, False),
        (b'"a"', EVENT, False),
        (None, EVENT, False),
        (b"b", None, True),  # a beat, or a deletion
        (b"b", b"{", True),  # a record without a user counts nowhere
        (b"b", b'{"u":1.5}', True),
        (b"b", b"[]", True),
    ],
)
def test_a_key_is_the_bytes_of_the_user(key: bytes | None, value: bytes | None, is_key: bool) -> None:
    field = UserField.of(config({"every": "10s"}), "events")
    assert field.path == "u"
    assert field.is_key(cast("Any", SimpleNamespace(key=key, value=value))) is is_key


def test_only_compacted_sources_are_read_where_presence_is_protected(monkeypatch: pytest.MonkeyPatch) -> None:
    async def other_key(*_: object) -> bool:
        return False

    monkeypatch.setattr("shoal.agents.inspection.record_keys._have_key", other_key)

    def ask(metric: dict[str, Any], topic: dict[str, str] | None) -> None:
        settings = KafkaSettings("b:9092", "app", compacted=("events",))
        verified = Verified({"events": 1}, configs={} if topic is None else {"events": topic})
        asyncio.run(refuse_other_keys(settings, config(metric, compacted=("events",)), verified))

    ask({"every": "10s"}, {"cleanup.policy": "compact"})
    ask(PRESENCE, {"cleanup.policy": "delete"})
    with pytest.raises(PolicyError, match=r"producers key records by u in a new topic, .* cleanup.policy=delete$"):
        ask(PRESENCE, {"cleanup.policy": "compact", "retention.ms": "-1"})
    # a topic whose configuration the client may not read could be compacted, with any retention
    with pytest.raises(PolicyError, match="--add-config cleanup.policy=delete,retention.ms=-1,retention.bytes=-1$"):
        ask(PRESENCE, None)
