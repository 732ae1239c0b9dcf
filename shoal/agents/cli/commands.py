"""The commands, by name; a module each."""

from collections.abc import Callable

from shoal.agents.cli.audit import replay, verify
from shoal.agents.cli.broker import broker
from shoal.agents.cli.budget import budget
from shoal.agents.cli.check import check
from shoal.agents.cli.demo import demo
from shoal.agents.cli.key import new
from shoal.agents.cli.map import map_
from shoal.agents.cli.migrate import migrate
from shoal.agents.cli.plan import plan
from shoal.agents.cli.produce import produce
from shoal.agents.cli.run import run
from shoal.agents.cli.simulate import buses
from shoal.agents.cli.topics import topics
from shoal.agents.cli.window import window
from shoal.agents.cli.worker import worker

COMMANDS: dict[str, Callable[..., None]] = {
    "demo": demo,
    "worker": worker,
    "run": run,
    "produce": produce,
    "window": window,
    "map": map_,
    "plan": plan,
    "check": check,
    "topics": topics,
    "migrate": migrate,
    "budget": budget,
    "broker": broker,
}
GROUPS: dict[str, tuple[str, dict[str, Callable[..., None]]]] = {
    "audit": ("Proofs of what was released.", {"verify": verify, "replay": replay}),
    "key": ("The secret key.", {"new": new}),
    "simulate": ("Events to try things with.", {"buses": buses}),
}
