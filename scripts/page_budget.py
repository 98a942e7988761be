"""Measures what the race view costs a browser, and says where a budget is broken (exit status 1).

A trace goes through the real Gradio server with no model running. Give a recorded trace (JSONL, two lanes of about 500
tokens) or none for a made one:  python scripts/page_budget.py [TRACE]
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import contextmanager
from pathlib import Path

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from playwright.sync_api import sync_playwright  # noqa: E402
from support.browser_kit import CHROMIUM_ARGS, Watched, chromium_path, launch, race_app  # noqa: E402
from support.synthetic_race import race_events  # noqa: E402

from specviz.traces import RoundDone, read_trace  # noqa: E402

SECONDS = 9.0
LONG_SECONDS = 30.0
HZ = 20.0
FRAMES = "seconds => new Promise(done => { let n = 0; const start = performance.now(); const tick = () => { n += 1; \
performance.now() - start < seconds * 1000 ? requestAnimationFrame(tick) : done(n / seconds); }; tick(); })"
WATCH = "window.longTasks = []; new PerformanceObserver(list => list.getEntries().forEach(e => \
longTasks.push(e.duration))).observe({ type: 'longtask' });"
DONE = "!document.querySelector('.final').hidden"
ENDED = f"() => new Promise(done => {{ const look = () => {DONE} ? done(Date.now() / 1000) : setTimeout(look, 5); \
look(); }})"


class Budget:
    """Prints each number beside its limit and remembers whether all were kept."""

    kept = True

    def check(self, name: str, value: float, limit: float, least: bool = False) -> None:
        ok = value >= limit if least else value <= limit
        self.kept &= ok
        print(f"{'ok  ' if ok else 'OVER'}  {name}: {value:,.2f} ({'at least' if least else 'at most'} {limit:,.2f})")


@contextmanager
def opened(browser, url: str):
    """A watched page at the app, with its DevTools session and what it received from the stream, in bytes."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    watched = Watched(context.new_page())
    devtools = context.new_cdp_session(watched.page)
    devtools.send("Network.enable")
    devtools.send("Performance.enable", {"timeDomain": "threadTicks"})
    received = [0]
    devtools.on("Network.dataReceived", lambda data: received.__setitem__(0, received[0] + data["dataLength"]))
    watched.page.goto(url)
    watched.page.wait_for_selector(".specviz-race .headline")
    watched.page.wait_for_timeout(800)
    watched.page.evaluate(WATCH)
    received[0] = 0
    yield watched, devtools, received
    context.close()


def run_two_lanes(browser, url: str, events: list, ended: list[float], budget: Budget) -> None:
    with opened(browser, url) as (watched, _, received):
        page = watched.page
        empty = page.evaluate(FRAMES, 3)
        page.click("#run-trace")
        frames = page.evaluate(FRAMES, SECONDS - 0.5)
        done = page.evaluate(ENDED)
        page.wait_for_timeout(300)
        tokens = page.locator(".log .tok:not(.rejected)").count()
        nodes = page.evaluate("document.querySelectorAll('.specviz-race *').length")
        tasks = page.evaluate("longTasks")
        budget.check("kB on the wire", received[0] / 1000, 500)
        budget.check("longest task, ms", max(tasks, default=0), 200)
        budget.check("frames, of an empty page's", frames / empty, 0.85, least=True)
        budget.check("lag of the page behind the source, s", done - ended[-1], 0.5)
        budget.check("DOM nodes a kept token", nodes / tokens, 1.4)
        budget.check("tokens lost", kept_in(events) - tokens, 0)
        budget.check("requests to other machines", len(watched.outside), 0)
        budget.check("console errors", len(watched.errors), 0)


def kept_in(events: list) -> int:
    return sum(len(event.round.kept) for event in events if isinstance(event, RoundDone))


def run_slow(browser, url: str, budget: Budget) -> None:
    with opened(browser, url) as (watched, devtools, _):
        devtools.send("Emulation.setCPUThrottlingRate", {"rate": 6})
        start = time.monotonic()
        watched.page.click("#run-trace")
        watched.page.wait_for_function("document.querySelectorAll('.log .tok').length > 0", timeout=60_000)
        watched.page.wait_for_function(DONE, timeout=120_000)
        budget.check("CPU slowed 6 times: wall / source", (time.monotonic() - start) / SECONDS, 1.6)


def run_long(browser, url: str, budget: Budget) -> None:
    """Processor time of the main thread in the tenths of a run of 2 x 2000 tokens."""
    with opened(browser, url) as (watched, devtools, _):
        page = watched.page
        page.click("#run-trace")
        page.wait_for_function("document.querySelectorAll('.log .tok').length > 0")
        costs = [task_seconds(devtools)]
        start = time.monotonic()
        for tenth in range(1, 11):
            page.wait_for_timeout(max(0, (start + tenth * LONG_SECONDS / 10 - time.monotonic()) * 1000 - 30))
            costs.append(task_seconds(devtools))
        spent = [later - earlier for earlier, later in zip(costs, costs[1:], strict=False)]
        print("      main thread, s in each tenth:", " ".join(f"{cost:.2f}" for cost in spent))
        budget.check("2 x 2000 tokens: last tenth / first", spent[-1] / spent[0], 1.5)


def task_seconds(devtools) -> float:
    metrics = devtools.send("Performance.getMetrics")["metrics"]
    return next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration")


def main() -> int:
    events = list(read_trace(sys.argv[1])) if len(sys.argv) > 1 else race_events(500, (5,), temperature=1.0)
    budget, ended = Budget(), []
    short = race_app({"trace": events}, HZ, SECONDS, ended)
    long = race_app({"trace": race_events(2000, (5,), temperature=1.0)}, HZ, LONG_SECONDS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_path(), args=list(CHROMIUM_ARGS))
        url = launch(short)
        run_two_lanes(browser, url, events, ended, budget)
        run_slow(browser, url, budget)
        run_long(browser, launch(long), budget)
        browser.close()
    short.close()
    long.close()
    return 0 if budget.kept else 1


if __name__ == "__main__":
    sys.exit(main())
