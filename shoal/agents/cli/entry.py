"""The entry point: makes a worker that is told to stop while it still imports end in order, and SIGHUP a SIGTERM."""

import os
import signal
import sys

from shoal.agents.cli.stopping import leave


def main() -> None:
    """Watch for signals, then import and run the command line, which takes half a second."""
    if sys.platform == "win32":
        sys.exit(
            "shoal: Windows has no file locks that keep a key to one process; run shoal in WSL, or on Linux or macOS"
        )
    if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:  # `nohup` has it ignored
        signal.signal(signal.SIGHUP, _as_sigterm)
    if sys.argv[1:2] == ["worker"]:
        signal.signal(signal.SIGTERM, leave)
    # No plugin of another package looks into our models, and none is searched for in all that is installed.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    try:
        from shoal.agents.cli.main import main as run
    except Exception as error:  # no traceback where a file in the way is the reason
        from shoal.agents.cli.shadows import shadow

        if (hidden := shadow(error)) is None:
            raise
        sys.exit(f"shoal: {hidden}")
    run()


def _as_sigterm(_signal: int, _frame: object) -> None:
    """End the command as SIGTERM does, where its terminal has been closed."""
    signal.raise_signal(signal.SIGTERM)
