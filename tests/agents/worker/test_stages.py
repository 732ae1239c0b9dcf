"""What a worker knows of the log when it starts, and what it does with it."""

from pathlib import Path

import pytest
from sqlalchemy import delete

from shoal.agents.audit import key_file
from shoal.agents.audit.ledger import Ledger
from shoal.agents.audit.session import Session
from shoal.agents.kafka.settings import KafkaSettings
from shoal.agents.worker.health import Health
from shoal.agents.worker.stages import Stages
from shoal.models.errors import FailStop
from shoal.models.tables import Release
from tests.agents.audit.audit_examples import APP, register, release, version
from tests.stream.simulation import config


def test_a_release_that_the_log_lost_is_no_release_that_never_was(tmp_path: Path) -> None:
    # given a log of two releases, of which somebody took the first
    with Ledger.open(f"sqlite:///{tmp_path}/log.db") as ledger:
        register(ledger, version())
        ledger.append(APP, [release(1), release(2)])
        session = Session(tmp_path, config({}), key_file.new(tmp_path / "key"), ledger)
        domain = Stages(session, KafkaSettings("localhost:1", APP), Health())
        domain._heads = ledger.heads(APP)
        with ledger.database.write() as connection:
            connection.execute(delete(Release).where(Release.seq == 1))
        # then what is there is compared, what is beyond is new, and what is missing is the end
        assert domain._published("basket/1", "NL", 2) == release(2)
        assert domain._published("basket/1", "NL", 3) is None
        assert domain._published("basket/1", "DE", 1) is None
        with pytest.raises(FailStop, match="release 1 is missing in the audit log, which goes on to 2"):
            domain._published("basket/1", "NL", 1)
