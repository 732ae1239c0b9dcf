"""`shoal broker`: the embedded Kafka in the foreground."""

from pathlib import Path
from typing import Annotated

import typer

from shoal.agents.broker.process import START_LIMIT, run_broker


def broker(
    port: Annotated[int, typer.Option(min=1, max=65535, help="Where clients connect, on this machine only.")] = 9092,
    data: Annotated[Path, typer.Option(help="Where Kafka keeps its data; made when missing.")] = Path("shoal-kafka"),
    start_limit: Annotated[float, typer.Option(min=1, help="Seconds that its start may take.")] = START_LIMIT,
) -> None:
    """Run a real Kafka on this machine, for development: one node, no password, keeps everything.

    It prints one line when it is ready and runs until Ctrl-C. Start it again on the same folder to go on.

    Example: shoal broker --port 9092 --data shoal-kafka
    """
    run_broker(port, data, start_limit)
