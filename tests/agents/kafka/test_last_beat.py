"""The beat with which a file of events ends in Kafka: by the configuration, not by the events."""

import pytest

from shoal.agents.kafka.beats import last_beat
from shoal.models.errors import ConfigError
from tests.privacy.attended import SECOND, present


def test_the_last_beat_closes_the_steps_of_all_metrics_up_to_their_ends() -> None:
    later = {"topic": "others", "end": "1970-01-01T00:05:00Z", "lateness": "7s"}
    for metrics, seconds in (([{}], 200), ([{"lateness": "5s"}], 205), ([{}, later], 307)):
        assert last_beat(present(*metrics), "events") == seconds * SECOND
    with pytest.raises(ConfigError, match='"m0" has no end to which'):
        last_beat(present({"end": None}), "events")
