"""What a worker knows of the log when it starts, and what it does with it."""

import asyncio
from fractions import Fraction
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
from shoal.models.tables import BudgetChange, ReleaseRow
from tests.agents.audit.audit_examples import APP, register, release, version
from tests.stream.simulation import config


def test_a_release_that_the_log_lost_is_no_release_that_never_was(tmp_path: Path) -> None:
    # given a log of two releases, of which somebody took the first
    with Ledger.open(f"sqlite:///{tmp_path}/log.db") as ledger:
        register(ledger, version())
        ledger.of(APP).append([release(1), release(2)])
        session = Session(tmp_path, config({}), key_file.new(tmp_path / "key"), ledger)
        domain = Stages(session, KafkaSettings("localhost:1", APP), Health())
        domain._heads = ledger.of(APP).heads()
        with ledger.database.write() as connection:
            connection.execute(delete(ReleaseRow).where(ReleaseRow.seq == 1))
        # then what is there is compared, what is beyond is new, and what is missing is the end
        assert domain._published("basket/1", "NL", 2) == release(2)
        assert domain._published("basket/1", "NL", 3) is None
        assert domain._published("basket/1", "DE", 1) is None
        with pytest.raises(FailStop, match="release 1 is missing in the audit log, which goes on to 2"):
            domain._published("basket/1", "NL", 1)


def test_the_budget_is_read_again_and_what_was_read_last_is_kept_while_the_log_is_not_whole(tmp_path: Path) -> None:
    # given a log with a budget
    with Ledger.open(f"sqlite:///{tmp_path}/log.db") as ledger:
        register(ledger, version())
        before = ledger.budget_report()
        assert before is not None
        session = Session(tmp_path, config({}), key_file.new(tmp_path / "key"), ledger)
        domain = Stages(session, KafkaSettings("localhost:1", APP), Health())
        asyncio.run(domain.ask_budget())
        assert domain.budget == before
        # when it is raised, then a worker that asks again knows
        raised = ledger.raise_budget(before.epsilon + 1, Fraction(0))
        asyncio.run(domain.ask_budget())
        assert domain.budget == raised
        # and when the log loses rows, it goes by what it knew
        with ledger.database.write() as connection:
            connection.execute(delete(BudgetChange))
        asyncio.run(domain.ask_budget())
        assert domain.budget == raised
