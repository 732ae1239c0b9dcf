"""The entry point: makes a worker that is told to stop while it still imports end in order, too."""

import signal
import sys

from shoal.agents.cli.stopping import leave


def main() -> None:
    """Watch for SIGTERM, then import and run the command line, which takes half a second."""
    if sys.argv[1:2] == ["worker"]:
        signal.signal(signal.SIGTERM, leave)
    from shoal.agents.cli.main import main as run

    run()
