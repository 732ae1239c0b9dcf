"""The entry point: makes a worker that is told to stop while it still imports end in order, too."""

import os
import signal
import sys

from shoal.agents.cli.stopping import leave


def main() -> None:
    """Watch for SIGTERM, then import and run the command line, which takes half a second."""
    if sys.argv[1:2] == ["worker"]:
        signal.signal(signal.SIGTERM, leave)
    # No plugin of another package looks into our models, and none is searched for in all that is installed.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    from shoal.agents.cli.main import main as run

    run()
