"""`shoal simulate`: realistic events, for trying things out."""

from contextlib import ExitStack
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.agents.cli.output import AsJson, open_lines, progress, refuse_packed, result, writing
from shoal.models.config.durations import SECOND
from shoal.models.extras import require
from shoal.models.times import time_of_text

if TYPE_CHECKING:
    from shoal.agents.simulate.city import City
    from shoal.agents.simulate.events import Trips

FIRST, LAST = datetime(1971, 1, 1, tzinfo=UTC), datetime(2900, 1, 1, tzinfo=UTC)
MOST_USERS, MOST_HOURS = 1_000_000, 9000.0
LEAST_HOURS = 1 / 60


class Format(StrEnum):
    """The formats of simulated reports: lines of JSON, or a GTFS-realtime feed."""

    JSON = "json"
    GTFS_RT = "gtfs-rt"


Users = Annotated[int, typer.Option(min=1, max=MOST_USERS, help="How many buses.")]
Hours = Annotated[float, typer.Option(min=LEAST_HOURS, max=MOST_HOURS, help="For how long.")]
Seed = Annotated[
    int, typer.Option(min=0, max=2**63 - 1, help="Another seed makes other trips, the same seed the same bytes.")
]
Out = Annotated[str, typer.Option(help="A file, or - for stdout.")]
AsFormat = Annotated[Format, typer.Option("--format", help="JSON lines, or messages of a GTFS-realtime feed.")]
Start = Annotated[str, typer.Option(metavar="TIME", help="When it begins, ISO 8601.")]
Resolution = Annotated[int, typer.Option("--h3", min=7, max=10, help="Resolution of the cells that roads follow.")]
Where = Annotated[str, typer.Option("--city", metavar="NAME|LAT,LON", help="The centre of the city.")]
Radius = Annotated[float, typer.Option(min=2.0, max=60.0, help="How far lines go from the centre, in km.")]


def buses(
    users: Users,
    hours: Hours,
    seed: Seed = 0,
    out: Out = "-",
    start: Start = "2026-03-02T06:00:00Z",
    resolution: Resolution = 8,
    where: Where = "london",
    radius: Radius = 9.0,
    form: AsFormat = Format.JSON,
    as_json: AsJson = False,
) -> None:
    """Write trips of buses: {"bus", "at", "lat", "lon", "speed"}, a JSON line each, in order of time.

    Buses drive to and fro on lines that follow paths of H3 cells. Their speeds are normal around a mean of the cell and
    hour (slow centre, fast ring road, rush hours by the city's own clock), clipped to 0 to 65 km/h. A few buses report
    every 10 seconds, most of them every 5 to 10 minutes; at night few drive.

    With --format gtfs-rt, each second in which buses report is a feed message with their vehicle positions, after its
    length: speeds in m/s, all numbers with the four bytes that such feeds have for them.

    Example: shoal simulate buses --users 400 --hours 6 --out trips.jsonl
    """
    refuse_packed(out=out)
    require("shoal simulate", "geo")
    from shoal.agents.simulate.events import batches  # numpy and H3: other commands should not wait for them
    from shoal.agents.simulate.forms import feed_messages, json_lines

    trips = _trips(users, hours, seed, start, _city(where, radius, resolution))
    events = 0
    with writing(out), ExitStack() as files, progress("simulating buses", trips.end - trips.start) as advance:
        written = open_lines(files, out)
        for done, count, content in batches(trips, json_lines if form is Format.JSON else feed_messages):
            written.write(content)
            events += count
            advance(done)
        written.flush()
    fields = {"events": events, "users": users, "seed": seed, "out": out}
    summary = f"{events:,} events of {users:,} {'bus' if users == 1 else 'buses'}" + (
        "" if out == "-" else f" in {out}"
    )
    result(fields, as_json=as_json, text=lambda: summary, to_stderr=out == "-" or not as_json)


def _city(where: str, radius: float, resolution: int) -> "City":
    from shoal.agents.simulate.city import City, find_city

    try:
        return City(*find_city(where), radius=radius, resolution=resolution)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--city") from None


def _trips(users: int, hours: float, seed: int, start: str, city: "City") -> "Trips":
    from shoal.agents.simulate.events import Trips

    moment = time_of_text(start)
    if moment is None or not FIRST.timestamp() <= moment // SECOND <= LAST.timestamp():
        message = f"{start!r} is no time between {FIRST:%Y} and {LAST:%Y}; say it as in 2026-03-02T06:00:00Z"
        raise typer.BadParameter(message, param_hint="--start")
    began = moment // SECOND
    return Trips(users, began, began + round(hours * 3600), seed, city)
