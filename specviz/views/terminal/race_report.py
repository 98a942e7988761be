"""What a race was and what came of it, in lines, tables and sentences. Everything is read from its trace."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from specviz.metrics import Summary, holds_back, policy_bias, verdict
from specviz.traces import Header, LaneInfo, ModelInfo, VerifyCurve
from specviz.views.terminal.escaping import one_line
from specviz.views.terminal.number_lines import GROUPS, NONE, by_position, by_source
from specviz.views.terminal.token_styles import BOLD, FAINT

_LABEL_WIDTH, _LANE_WIDTH, _PROMPT_SHOWN = 38, 14, 72

Say = Callable[..., None]


def say(console: Console) -> Say:
    """A printer of plain sentences: nothing in them is markup, and they wrap on a terminal only."""

    def print_(text: str = "", style: object = "") -> None:
        console.print(Text(text, style), soft_wrap=not console.is_terminal)

    return print_


def print_header(console: Console, header: Header) -> None:
    """What runs on what, and the prompt."""
    tell = say(console)
    tell(_model(header.target), BOLD)
    threads = f", {header.threads} threads" if header.device == "cpu" else ""
    tell(f"on {one_line(header.device_name)} ({one_line(header.device)}), {one_line(header.dtype)}{threads}")
    for lane in header.lanes:
        if lane.draft_model is not None:
            tell(f"{one_line(lane.name)}: {_model(lane.draft_model)}")
    tell(f"prompt, {len(header.prompt_ids)} tokens{_shape(header)}: {_shortened(header.prompt)}")
    tell(
        f"load {_seconds(header.load_seconds)}, warm-up {_seconds(header.warmup_seconds)}, "
        f"prefill, shared by all lanes, {_seconds(header.prefill_seconds)}"
    )
    tell()


def notes_of(header: Header) -> Iterator[str]:
    """What the header has to say of models and lanes."""
    if header.target.note:
        yield f"{header.target.name}: {header.target.note}"
    for lane in header.lanes:
        if lane.note:
            yield lane.note
        if lane.draft_model is not None and lane.draft_model.note:
            yield f"{lane.draft_model.name}: {lane.draft_model.note}"


def print_numbers(console: Console, summaries: Sequence[Summary], curve: VerifyCurve | None) -> None:
    """The table of every number, as many lanes across as the terminal holds, and the verify curve."""
    across = max(1, (console.width - _LABEL_WIDTH) // _LANE_WIDTH)
    for start in range(0, len(summaries), across):
        console.print(_table(summaries[start : start + across]))
    say(console)(_curve(curve))
    say(console)()


def print_verdicts(console: Console, summaries: Sequence[Summary], lanes: Sequence[LaneInfo]) -> None:
    """A sentence for each lane, for one that is not slower what holds it back, and what its policy of k does."""
    tell = say(console)
    for summary, lane in zip(summaries, lanes, strict=True):
        tell(f"{one_line(lane.name)}: {one_line(verdict(summary))}", BOLD)
        for more in filter(None, (holds_back(summary), policy_bias(summary))):
            tell(f"  {one_line(more)}", FAINT)


def _table(summaries: Sequence[Summary]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("")
    for summary in summaries:
        table.add_column(Text(one_line(summary.name)), justify="right", overflow="fold", min_width=8)
    for title, lines in GROUPS:
        table.add_row(Text(title, BOLD))
        for label, written in lines:
            table.add_row(Text(f"  {label}"), *(Text(written(summary)) for summary in summaries))
    positions = list(zip_longest(*(by_position(summary) for summary in summaries), fillvalue=NONE))
    if positions:
        table.add_row(Text("accepted at position: conditional / vLLM's, of n rounds", BOLD))
    for position, cells in enumerate(positions, start=1):
        table.add_row(Text(f"  {position}"), *map(Text, cells))
    _add_sources(table, summaries)
    return table


def _add_sources(table: Table, summaries: Sequence[Summary]) -> None:
    """Rows of what each of a draft's sources gave, where a draft has several."""
    found = [by_source(summary) for summary in summaries]
    sources = list(dict.fromkeys(source for one in found for source in one))
    if sources:
        table.add_row(Text("accepted by source, of drafted", BOLD))
    for source in sources:
        table.add_row(Text(f"  {one_line(source)}"), *(Text(one.get(source, NONE)) for one in found))


def _curve(curve: VerifyCurve | None) -> str:
    points = list(zip(curve.widths, curve.seconds, curve.spread, strict=False)) if curve else []
    if not points or points[0][1] <= 0:
        return "verify curve: pending"
    one = points[0][1]
    costs = "  ".join(f"{width}: {seconds / one:.2f} ± {spread / one:.2f}" for width, seconds, spread in points)
    return f"verify curve v(tokens), a one-token pass being {1000 * one:.4g} ms: {costs}"


def _model(model: ModelInfo) -> str:
    revision = f"@{model.revision[:12]}" if model.revision else ""
    weights = f"{model.parameters / 1e6:,.4g} M" if model.parameters < 1e9 else f"{model.parameters / 1e9:.3g} B"
    return one_line(f"{model.role} {model.name} ({model.source}{revision}, {weights} weights)")


def _shape(header: Header) -> str:
    return ", in the chat template" if header.chat else ", raw"


def _shortened(prompt: str | None) -> str:
    text = one_line(prompt or "given as token ids")
    return text if len(text) <= _PROMPT_SHOWN else text[: _PROMPT_SHOWN - 1] + "…"


def _seconds(value: float | None) -> str:
    return NONE if value is None else f"{value:.3g} s"
