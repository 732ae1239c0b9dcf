"""Which lane a process goes by: the kernel, where it is installed and fits this version, or its Python twin; and why.

Both make the same bytes. Who does not choose gets the kernel if it can be used, and the twin if it cannot; who asks for
the kernel is refused where it cannot be used. `SHOAL_KERNEL` in the environment chooses for workers and file runs;
an audit goes by the twin, which is the specification, unless its command line says otherwise.
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

KERNEL, ON, OFF = "SHOAL_KERNEL", "on", "off"  # in the environment; not set: on where it can be used
INTERFACE = 7  # of the kernel that this version of shoal speaks to
MODULE = "shoal_kernel"
BUILD = "in a checkout `make kernel` builds it, which needs Rust"

Name = Literal["kernel", "twin"]
State = Literal["used", "not installed", "refused", "off"]


@dataclass(frozen=True, slots=True)
class Lane:
    """The lane of a process, and what there is of the kernel."""

    state: State
    module: Any = None  # the kernel; None: the twin does all
    version: str = ""  # of the kernel that was found, whether or not it is used
    interface: str = ""
    why: str = ""  # it is refused, or not used

    @property
    def name(self) -> Name:
        """What the process goes by, wherever the kernel knows a topic's rules."""
        return "twin" if self.module is None else "kernel"

    def fields(self) -> dict[str, str]:
        """What /metrics and the log show; nothing of it depends on an event."""
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
    """The kernel, which `asked` says is asked for.

    Raises:
        ConfigError: it cannot be used.
    """
    lane = find_lane()
    if lane.module is None:
        raise ConfigError(f"{asked}, and {lane.why}")
    return lane


def find_lane() -> Lane:
    """The kernel, if it is installed and fits, else the twin with the reason."""
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
    """What keeps each topic on the twin, by metric, whatever is installed; nothing, where the kernel knows all."""
    return {plan.topic: BoundPartition(plan, 0).unknown for plan in plans}


def unknown_of_config(config: Config) -> dict[str, dict[str, str]]:
    """The same of a configuration, of which rules are all that matters here: neither key nor counts of partitions."""
    nobody = bytes(32)
    plans = (plan_topic(config, t, nobody, source_partitions=1, contributions_partitions=1) for t in config.topics)
    return unknown_of(plans)


def words_of(lacks: Mapping[str, str]) -> str:
    """What keeps a topic on the twin.

    >>> words_of({"": 'partitioner = "crc32"', "speed": "cell"})
    'the twin, for the kernel lacks partitioner = "crc32"; cell of metric "speed"'
    """
    named = (f'{key} of metric "{metric}"' if metric else key for metric, key in lacks.items())
    return f"the twin, for the kernel lacks {'; '.join(named)}"
