"""What the page makes of a worker's /metrics and /readyz; a discreet worker shows no counts, and the page has none."""

import asyncio

from aiohttp import ClientSession, web

from shoal.agents.dashboard.workers import ask, summary
from shoal.agents.worker_addresses import addresses_of

PRESENT = """
shoal_owned_partitions 9.0
shoal_event_time_seconds{metric="basket"} 1.7724e+09
shoal_event_time_lag_seconds{topic="purchases"} 12.5
shoal_event_time_lag_seconds{topic="visits"} NaN
shoal_seconds_since_tick{metric="basket"} 4.0
"""
COUNTS = """
shoal_events_total 70000.0
shoal_dead_letters_total{metric="basket",reason="bad-time"} 5.0
shoal_dead_letters_total{metric="basket",reason="bad-value"} 0.0
shoal_consumer_lag_records{stage="bound",topic="purchases",partition="0"} 3.0
shoal_consumer_lag_records{stage="bound",topic="purchases",partition="1"} 4.0
shoal_consumer_lag_records{stage="release",topic="a.contributions",partition="0"} 9.0
shoal_consumer_lag_records{stage="audit",topic="a.releases",partition="0"} 2.0
shoal_audit_lag_records 2.0
"""
REPORT = {
    "ready": False,
    "conditions": [
        {"name": "brokers", "ok": False, "text": "no broker answers"},
        {"name": "started", "ok": True, "text": "it has"},
    ],
    "alarms": {"equivocation": "look at it"},
    "waiting_for": [
        {"metric": "basket", "topic": "purchases", "partition": 3, "since": "2026-03-01T00:00:00Z", "stuck": True}
    ],
    "without_beats": [{"topic": "purchases", "partition": 1}],
    "partitions": [],
}


def test_a_worker_is_summed_up():
    found = summary(PRESENT + COUNTS, REPORT)
    assert found == {
        "ready": False,
        "reasons": [
            "no broker answers",
            "alarm equivocation: look at it",
            "purchases[1] had no beat yet, and no tick closes before: run `shoal beat`",
        ],
        "partitions": 9, "discreet": False, "events": 70_000.0,
        "lag": {"events": 7.0, "messages": 9.0, "audit": 2.0},
        "late": {"purchases": 12.5}, "times": {"basket": 1_772_400_000.0}, "since": {"basket": 4.0},
        "waits": [["basket", "purchases", 3, "2026-03-01T00:00:00Z", True]],
        "dead": [["basket", "bad-time", 5.0]],
    }  # fmt: skip


def test_of_a_discreet_worker_there_is_no_count():
    found = summary(PRESENT, REPORT)
    assert (found["discreet"], found["events"], found["lag"], found["dead"]) == (True, None, {"audit": None}, [])


def test_whoever_does_not_speak_as_a_worker_is_said_to_be_none():
    async def story() -> list[dict[str, object]]:
        async def other(_request: web.Request) -> web.Response:
            return web.Response(text="hello { world")

        pages = web.Application()
        pages.add_routes([web.get("/metrics", other), web.get("/readyz", other)])
        runner = web.AppRunner(pages)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        try:
            async with ClientSession() as session:
                return await ask(session, addresses_of(f"localhost:{port},127.0.0.1:1,no.such.host.invalid:1"))
        finally:
            await runner.cleanup()

    one, away, nowhere = asyncio.run(story())
    assert one["why"] == "it is no worker, or one of another version"
    assert (away["why"], nowhere["why"]) == ("it cannot be reached",) * 2
    assert nowhere["name"] == "no.such.host.invalid:1"
