"""Chooses the lane of a process, the kernel or its Python twin, and knows why.

Both make the same bytes. By default the kernel is used if it is installed and fits this version, and the twin if not. A
process that is told to use the kernel and cannot is refused. `SHOAL_KERNEL` in the environment chooses for workers and
file runs. An audit uses the twin, which is the specification, unless its command line says otherwise.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

from shoal import __version__
from shoal.models.config.file import Config
from shoal.models.errors import ConfigError
from shoal.stream.bound import BoundPartition
from shoal.stream.topic import TopicPlan, plan_topic

KERNEL, ON, OFF = "SHOAL_KERNEL", "on", "off"  # the variable and its values; not set: on if the kernel can be used
INTERFACE = 11  # that a kernel must have; raised together with `INTERFACE` in `kernel/src/python/mod.rs`
MODULE = "shoal_kernel"
BUILD = "in a checkout `make kernel` builds it, which needs Rust"

Name = Literal["kernel", "twin"]
State = Literal["used", "not installed", "refused", "off"]


@dataclass(frozen=True, slots=True)
class Lane:
    """The lane of a process, and what is known of the kernel."""

    state: State
    module: Any = None  # the kernel; None: the twin is used
    version: str = ""  # that of the kernel that was found, whether or not it is used
    interface: str = ""  # likewise
    why: str = ""  # why the kernel is refused, or not used

    @property
    def name(self) -> Name:
        """The lane that the process uses for every topic that the kernel can read."""
        return "twin" if self.module is None else "kernel"

    def fields(self) -> dict[str, str]:
        """The fields that /metrics and the log show; none depends on an event."""
        return {"lane": self.name, "kernel": self.state, "version": self.version, "interface": self.interface}


TWIN = Lane("off", why=f"{KERNEL} is {OFF}")


def lane_of_environment(environment: Mapping[str, str] | None = None) -> Lane:
    """The lane that `SHOAL_KERNEL` asks for; where it is not set, the kernel if it can be used.

    Raises:
        ConfigError: the kernel is asked for and cannot be used, or the variable is neither on nor off.
    """
    asked = (os.environ if environment is None else environment).get(KERNEL)
    if asked not in (None, ON, OFF):
        raise ConfigError(f"{KERNEL} is {asked}; it can be {ON} or {OFF}")
    if asked == OFF:
        return TWIN
    return find_lane() if asked is None else kernel_lane(f"{KERNEL} is {ON}")


def lane_named(name: Name) -> Lane:
    """The lane that a command line asks for.

    Raises:
        ConfigError: it is the kernel, which cannot be used.
    """
    return TWIN if name == "twin" else kernel_lane("--lane kernel is given")


def kernel_lane(asked: str) -> Lane:
    """The kernel; `asked` says who asks for it, in case it is refused.

    Raises:
        ConfigError: it cannot be used.
    """
    lane = find_lane()
    if lane.module is None:
        raise ConfigError(f"{asked}, and {lane.why}")
    return lane


def find_lane() -> Lane:
    """The kernel if it is installed and fits, else the twin and the reason."""
    try:
        module: Any = import_module(MODULE)
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError) and error.name == MODULE:
            return Lane("not installed", why=f"the kernel is not installed; {BUILD}")
        # Else it is built for another Python or C library.
        return Lane("refused", why=f"the kernel that is installed does not load here; {BUILD}")
    version, interface = getattr(module, "VERSION", "unknown"), str(getattr(module, "INTERFACE", "unknown"))
    found = {"version": version, "interface": interface}
    if interface != str(INTERFACE):
        what = f"the kernel has interface {interface}, and shoal {__version__} speaks {INTERFACE}"
    elif version != __version__:
        what = f"the kernel has version {version}, and this is shoal {__version__}"
    else:
        return Lane("used", module, **found)
    return Lane("refused", why=f"{what}; install the kernel of this version: {BUILD}", **found)


def unknown_of(plans: Iterable[TopicPlan]) -> dict[str, dict[str, str]]:
    """By topic and metric, the keys that keep a topic on the twin, even if the kernel is installed."""
    return {plan.topic: BoundPartition(plan, 0).unknown for plan in plans}


def unknown_of_config(config: Config) -> dict[str, dict[str, str]]:
    """The same for a configuration; neither its key nor counts of partitions matter."""
    any_key = bytes(32)
    plans = (plan_topic(config, t, any_key, source_partitions=1, contributions_partitions=1) for t in config.topics)
    return unknown_of(plans)


def words_of(lacks: Mapping[str, str]) -> str:
    """A sentence's end that says which keys keep a topic on the twin.

    >>> words_of({"": 'partitioner = "crc32"', "speed": "cell"})
    'the twin, because the kernel does not support partitioner = "crc32"; cell of metric "speed"'
    """
    named = (f'{key} of metric "{metric}"' if metric else key for metric, key in lacks.items())
    return f"the twin, because the kernel does not support {'; '.join(named)}"
