"""Prints what a race was and what came of it: its header, its numbers, its verdicts. All are read from the trace."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from specviz.metrics import Group, Place, Row, Summary, rows, shown_in, verdict_of
from specviz.metrics.formats import UNDEFINED, Format, fixed, parameters, percent
from specviz.metrics.words import holds_back, policy_bias, sentence
from specviz.traces import Header, LaneInfo, ModelInfo, VerifyCurve
from specviz.views.lane_names import source_label
from specviz.views.report import output_row
from specviz.views.terminal.escaping import one_line
from specviz.views.terminal.lane_text import BOLD, FAINT

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
    tell(f"prompt, {len(header.prompt_ids)} tokens{_template(header)}: {_shortened(header.prompt)}")
    tell(
        f"load {Format.SECONDS(header.load_seconds)}, warm-up {Format.SECONDS(header.warmup_seconds)}, "
        f"prefill, shared by all lanes, {Format.SECONDS(header.prefill_seconds)}"
    )
    tell()


def notes_of(header: Header) -> Iterator[str]:
    """The notes that the header has on models and lanes."""
    if header.target.note:
        yield f"{header.target.name}: {header.target.note}"
    for lane in header.lanes:
        if lane.note:
            yield lane.note
        if lane.draft_model is not None and lane.draft_model.note:
            yield f"{lane.draft_model.name}: {lane.draft_model.note}"


def print_numbers(
    console: Console, summaries: Sequence[Summary], lanes: Sequence[LaneInfo], curve: VerifyCurve | None
) -> None:
    """The table of all numbers, as many lanes across as the terminal holds, and the verify curve."""
    across = max(1, (console.width - _LABEL_WIDTH) // _LANE_WIDTH)
    for start in range(0, len(summaries), across):
        console.print(_table(summaries[start : start + across], lanes[start : start + across]))
    say(console)(_curve(curve))
    say(console)()


def print_verdicts(console: Console, summaries: Sequence[Summary], lanes: Sequence[LaneInfo]) -> None:
    """The verdict on each lane, with what holds back one that is not slower and how its policy of k biases it."""
    tell = say(console)
    for summary, lane in zip(summaries, lanes, strict=True):
        verdict = verdict_of(summary)
        tell(f"{one_line(lane.name)}: {one_line(sentence(verdict))}", BOLD)
        for more in filter(None, (holds_back(verdict), policy_bias(verdict))):
            tell(f"  {one_line(more)}", FAINT)


def _table(summaries: Sequence[Summary], lanes: Sequence[LaneInfo]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("")
    for summary in summaries:
        table.add_column(Text(one_line(summary.name)), justify="right", overflow="fold", min_width=8)
    for title, lines in _sections(summaries, lanes):
        table.add_row(Text(title, BOLD))
        for label, cells in lines:
            table.add_row(Text(f"  {one_line(label)}"), *map(Text, cells))
    return table


def _sections(
    summaries: Sequence[Summary], lanes: Sequence[LaneInfo]
) -> Iterator[tuple[str, list[tuple[str, Sequence[str]]]]]:
    """(title, [(label, a cell per lane)]) in the catalogue's order; sections that no lane fills are left out."""
    metrics = shown_in(Place.TERMINAL)
    for group in Group:
        found = rows(summaries, [metric for metric in metrics if metric.group is group])
        lines = [_line(row) for row in found]
        if group is Group.AGREEMENT:
            lines.append(_line(output_row(summaries)))
        if lines:
            yield group.value, lines
    if positions := list(_by_position(summaries)):
        yield "acceptance by position: conditional / vLLM's, of n rounds", positions
    if sources := list(_by_source(summaries, lanes)):
        yield "accepted by source, of drafted", sources


def _line(row: Row) -> tuple[str, Sequence[str]]:
    return row.title, row.cells


def _by_position(summaries: Sequence[Summary]) -> Iterator[tuple[str, Sequence[str]]]:
    """A line per drafted position, from 1."""
    lanes = [list(_positions(summary)) for summary in summaries]
    for position, cells in enumerate(zip_longest(*lanes, fillvalue=UNDEFINED), start=1):
        yield str(position), cells


def _positions(summary: Summary) -> Iterator[str]:
    columns = (summary.accepted_per_position, summary.accepted_per_position_vllm, summary.reached_per_position)
    for conditional, vllm, reached in zip(*columns, strict=True):
        yield f"{Format.MEAN(conditional)} / {Format.MEAN(vllm)} of {reached}"


def _by_source(summaries: Sequence[Summary], lanes: Sequence[LaneInfo]) -> Iterator[tuple[str, Sequence[str]]]:
    """A line per source of drafts; none where no draft names its sources."""
    told = [_sources(summary, lane) for summary, lane in zip(summaries, lanes, strict=True)]
    for source in dict.fromkeys(source for lane in told for source in lane):
        yield source, [lane.get(source, UNDEFINED) for lane in told]


def _sources(summary: Summary, lane: LaneInfo) -> dict[str, str]:
    return {
        source_label(lane, one.source): f"{one.accepted:,d} of {one.drafted:,d}, {percent(one.acceptance)}"
        for one in summary.sources
    }


def _curve(curve: VerifyCurve | None) -> str:
    points = list(zip(curve.widths, curve.seconds, curve.spread, strict=False)) if curve else []
    if not points or points[0][1] <= 0:
        return "verify curve: pending"
    one = points[0][1]
    costs = "  ".join(f"{width}: {fixed(cost / one, 2)} ± {fixed(spread / one, 2)}" for width, cost, spread in points)
    return f"verify curve v(tokens), in one-token passes of {1000 * one:.4g} ms: {costs}"


def _model(model: ModelInfo) -> str:
    revision = f"@{model.revision[:12]}" if model.revision else ""
    return one_line(f"{model.role} {model.name} ({model.source}{revision}, {parameters(model.parameters)} weights)")


def _template(header: Header) -> str:
    return ", in the chat template" if header.chat else ", raw"


def _shortened(prompt: str | None) -> str:
    text = one_line(prompt or "given as token ids")
    return text if len(text) <= _PROMPT_SHOWN else text[: _PROMPT_SHOWN - 1] + "…"
