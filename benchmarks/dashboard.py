"""How fast the page of releases is, in a real Chromium; prints JSON.

    python -m benchmarks.dashboard [--days 200] [--groups 1000] [--repeat 5]

A town's releases, some 30,000 with the defaults, are served as `shoal dashboard` serves them; only Kafka is left out,
so that what is measured is the page. Milliseconds are medians of `--repeat` loads, with an empty cache each:

    first_chart    from the navigation to the first chart that is drawn
    on_screen      from the moment at which the server has a new release to its number on the page; the largest of them
    longest_task   what kept the page from answering for longest while it was scrolled from end to end and all groups
                   were opened and scrolled through; beside it the largest processor time, if the machine is busy
"""

import argparse
import asyncio
import gzip
import json
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from shoal.agents.dashboard.file import page_of
from shoal.agents.dashboard.live import Hub
from shoal.agents.dashboard.page import page
from shoal.agents.dashboard.server import MOST_CONNECTIONS, Access, Pages
from shoal.agents.http_server.limits import listen, serving
from shoal.agents.http_server.names import Names
from shoal.models.config.file import load
from tests.support.browser import Browser, Tab, open_browser
from tests.support.releases import lines, release, town

CONFIG = """
[privacy]
epsilon = 4
[[metric]]
name = "basket"
topic = "purchases"
user = "customer"
value = "amount"
time = "at"
statistic = "mean"
range = [0, 200]
every = "1d"
max_contributions = 64
epsilon = 1
"""
DRAWN = """
new Promise((done) => {
  const drawn = () => document.querySelector('article .plot .line');
  const look = () => drawn() ? done(performance.now()) : requestAnimationFrame(look);
  look();
})
"""  # milliseconds since the navigation
SCROLL = """
(async () => {
  const frame = () => new Promise(requestAnimationFrame), v = views.get('m-visit'), box = v.box;
  const end = document.documentElement.scrollHeight;
  for (let y = 0; y < end; y += 200) { scrollTo({top: y, behavior: 'instant'}); await frame(); }
  box.scrollIntoView({behavior: 'instant'}); await frame();
  v.grid.more.click(); await frame();
  v.grid.frame.scrollIntoView({behavior: 'instant'});
  for (let y = 0; v.grid.made < v.names.length || y < v.grid.frame.scrollHeight; y += 120) {
    v.grid.frame.scrollTop = y; await frame();
  }
  await new Promise((done) => setTimeout(done, 300));
  return v.grid.made;
})()
"""


@contextmanager
def served(hub: Hub) -> Iterator[tuple[str, Callable[..., object]]]:
    """The page's address, and what hands a function to the server's event loop."""
    loop, ready, address = asyncio.new_event_loop(), threading.Event(), list[str]()

    ended = asyncio.Event()

    async def serve() -> None:
        with listen("127.0.0.1", 0, remedy="") as listening:
            async with serving(Pages(hub, Access(Names("127.0.0.1"))).app(), listening, MOST_CONNECTIONS):
                address.append(f"http://127.0.0.1:{listening.getsockname()[1]}/")
                ready.set()
                await ended.wait()

    def work() -> None:
        loop.run_until_complete(serve())

    thread = threading.Thread(target=work)
    thread.start()
    ready.wait()
    try:
        yield address[0], loop.call_soon_threadsafe
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()


def loads(browser: Browser, url: str, repeat: int) -> float:
    """The median time to the first chart."""
    times = []
    for _ in range(repeat):
        with browser.tab() as tab:
            tab.open(url)
            times.append(tab.run(DRAWN))
    return float(round(statistics.median(times)))


@contextmanager
def traced(browser: Browser) -> Iterator[list[tuple[float, float]]]:
    """Wall and processor time of the tasks of all pages, in milliseconds; filled at the end of the block."""
    tasks: list[tuple[float, float]] = []
    browser.events.clear()
    browser.call("Tracing.start", traceConfig={"includedCategories": ["toplevel"]})
    yield tasks
    browser.call("Tracing.end")
    while not any(event["method"] == "Tracing.tracingComplete" for event in browser.events):
        browser.listen(0.1)
    events = [
        each for said in browser.events if said["method"] == "Tracing.dataCollected" for each in said["params"]["value"]
    ]
    main = {
        (each["pid"], each["tid"])
        for each in events
        if each["name"] == "thread_name" and each["args"]["name"] == "CrRendererMain"
    }
    tasks += [
        (each["dur"] / 1000, each.get("tdur", 0) / 1000)
        for each in events
        if (each["pid"], each["tid"]) in main and each["name"].endswith("RunTask") and "dur" in each
    ]


def on_screen(tab: Tab, hub: Hub, soon: Callable[..., object], days: int, repeat: int) -> float:
    """The longest that a new release took, in milliseconds, as this process sees it."""
    tab.run(DRAWN)
    times = []
    for number in range(repeat):
        value = 1000 + number
        raw = json.dumps(release("basket", days + 1 + number, float(value), 0.5, samples=9)).encode()
        began = time.monotonic()
        soon(hub.take, [raw])
        tab.until(f"document.querySelector('#m-basket .now b').innerText.startsWith('{value:,}')")
        times.append(1000 * (time.monotonic() - began))
    return round(max(times))


def measure(days: int, groups: int, repeat: int) -> dict[str, Any]:
    """All of it."""
    releases = lines(town(days, groups)).splitlines()
    with tempfile.TemporaryDirectory() as name, open_browser() as browser:
        folder = Path(name)
        (folder / "shoal.toml").write_text(CONFIG)
        config = load(folder / "shoal.toml")
        hub = Hub(config)
        began = time.process_time()
        hub.take(releases, quiet=True)
        reading = time.process_time() - began
        hub.is_read()
        text = page_of(releases, "releases.jsonl", config).text
        (folder / "page.html").write_text(text)
        figures = {
            "releases": len(releases),
            "groups": groups,
            "page_bytes": len(page().encode()),
            "page_bytes_gzipped": len(gzip.compress(page().encode())),
            "snapshot_bytes_gzipped": len(asyncio.run(hub.whole())),
            "file_bytes": len(text.encode()),
            "read_microseconds": round(1e6 * reading / len(releases), 1),
        }
        with served(hub) as (url, soon):
            figures["first_chart"] = loads(browser, url, repeat)
            figures["first_chart_of_file"] = loads(browser, (folder / "page.html").as_uri(), repeat)
            with browser.tab() as tab:
                tab.open(url)
                figures["on_screen"] = on_screen(tab, hub, soon, days, repeat)
            with browser.tab() as tab:
                tab.open(url)
                tab.run(DRAWN)
                with traced(browser) as tasks:
                    figures["groups_scrolled"] = tab.run(SCROLL)
                figures["longest_task"] = round(max(wall for wall, _ in tasks))
                figures["longest_task_cpu"] = round(max(cpu for _, cpu in tasks))
                figures["heap_megabytes"] = round(tab.run("performance.memory.usedJSHeapSize / 1e6"), 1)
        return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--days", type=int, default=200)
    parser.add_argument("--groups", type=int, default=1000)
    parser.add_argument("--repeat", type=int, default=5)
    arguments = parser.parse_args()
    print(json.dumps(measure(arguments.days, arguments.groups, arguments.repeat)))


if __name__ == "__main__":
    main()
