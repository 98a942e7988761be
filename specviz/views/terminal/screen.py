"""The lanes of a race on a terminal: side by side and growing on a tty, one block per lane anywhere else."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.live import Live
from rich.table import Table
from rich.text import Text

from specviz.metrics import Summary, Tally, counted
from specviz.traces import Event, LaneFinished, RaceStarted, RoundDone
from specviz.views.terminal.escaping import one_line
from specviz.views.terminal.lane_text import BOLD, FAINT, LaneText, Styles, legend, styles_of

_GAP = 3
_NARROWEST = 30  # columns of text that a lane needs before it goes below the others
_HEAD = 4  # a lane's lines that are not its text: name, two of counters, an empty one
_INTERVAL_SECONDS = 0.1
_SHARE = 0.1  # of the time, at most, that may go into drawing


@dataclass(slots=True)
class Lanes:
    """The text of every lane, by name in the header's order. The numbers are the tally's."""

    tally: Tally
    styles: Styles = field(default_factory=styles_of)
    texts: dict[str, LaneText] = field(default_factory=dict)

    def add(self, event: Event) -> None:
        match event:
            case RaceStarted(header):
                self.texts = {lane.name: LaneText(self.styles) for lane in header.lanes}
            case RoundDone(lane, round_):
                self.texts[lane].add(round_)
            case LaneFinished(lane):
                self.texts[lane].finish(event)

    def notes(self) -> Iterator[str]:
        """The notes of rounds, each once with its number of rounds."""
        for name, text in self.texts.items():
            for note, rounds in text.notes.items():
                yield f"{name}: {note} ({counted(rounds, 'round')})"


class Blocks:
    """Prints each lane when it ends: its name, and its text as it would be copied."""

    def __init__(self, console: Console, lanes: Lanes) -> None:
        self._console, self._lanes = console, lanes

    def add(self, event: Event) -> None:
        if isinstance(event, LaneFinished):
            # not through rich, which would make spaces of tabs
            text = self._lanes.texts[event.lane].plain
            print(f"== {one_line(event.lane)} ==\n{text}\n", file=self._console.file, flush=True)

    def __enter__(self) -> Blocks:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class Columns:
    """Draws all lanes side by side as they grow, seldom enough to cost little, and their whole text at the end.

    Nothing is drawn from another thread: that would compete with the passes.
    """

    def __init__(self, console: Console, lanes: Lanes) -> None:
        self._console = console
        self._frame = _Frame(lanes)
        self._live = Live(self._frame, console=console, auto_refresh=False)
        self._due = 0.0

    def add(self, event: Event) -> None:
        if isinstance(event, RaceStarted):
            self._open()
        start = time.monotonic()
        if start >= self._due or isinstance(event, LaneFinished):
            self._live.refresh()
            end = time.monotonic()
            self._due = end + max(_INTERVAL_SECONDS, (end - start) / _SHARE)

    def __enter__(self) -> Columns:
        return self

    def __exit__(self, *_: object) -> None:
        self._frame.whole = True
        self._live.stop()

    def _open(self) -> None:
        """Take the screen when the race starts, not while the models load and draw bars of their own."""
        if not self._live.is_started:
            self._console.print(legend(self._frame.lanes.styles))
            self._console.print()
            self._live.start()


def screen_for(console: Console, lanes: Lanes) -> Blocks | Columns:
    animated = console.is_terminal and not console.is_dumb_terminal
    return Columns(console, lanes) if animated else Blocks(console, lanes)


class _Frame:
    """One picture of all lanes. `whole`: all of their text, not just the lines that fit the screen."""

    def __init__(self, lanes: Lanes) -> None:
        self.lanes = lanes
        self.whole = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        names = list(self.lanes.texts)
        across = max(1, min(len(names), (options.max_width + _GAP) // (_NARROWEST + _GAP)))
        rows = [names[start : start + across] for start in range(0, len(names), across)]
        width = (options.max_width + _GAP) // across - _GAP
        height = None if self.whole or not rows else max(1, (console.height - 2) // len(rows) - _HEAD)
        for row in rows:
            grid = Table.grid(padding=(0, _GAP, 0, 0))
            for _ in row:
                grid.add_column(width=width)
            grid.add_row(*(self._cell(name, console, width, height) for name in row))
            yield grid

    def _cell(self, name: str, console: Console, width: int, height: int | None) -> Group:
        head = Text(one_line(name), BOLD, no_wrap=True, overflow="ellipsis")
        counters = (Text(line, FAINT, no_wrap=True) for line in _counters(self.lanes.tally.summary(name)))
        lines = self.lanes.texts[name].styled().wrap(console, width, overflow="fold", tab_size=4)
        return Group(head, *counters, *(lines if height is None else lines[-height:]), Text())


def _counters(summary: Summary) -> tuple[str, str]:
    """Tokens, speed and clock; passes, and how the lane ended."""
    speed = "-" if summary.tokens_per_second is None else f"{summary.tokens_per_second:.3g}"
    clock = "" if summary.seconds is None else f" · {summary.seconds:.3g} s"
    passes = "" if summary.target_passes is None else counted(summary.target_passes, "target pass", "target passes")
    end = "" if summary.finish_reason is None else f" · ended: {summary.finish_reason}"
    return f"{counted(summary.kept_tokens, 'token')} · {speed} tok/s{clock}", f"{passes}{end}"
