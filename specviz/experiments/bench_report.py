"""A benchmark's result as a person reads it: tables of medians with their quartiles, by part."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from specviz.experiments.aggregate import spread
from specviz.experiments.comparison_report import contest_failures, contest_sections

Row = Sequence[str]
Section = tuple[str, Row, list[Row]]  # a title, the columns' names, the rows
_NONE = "-"


def sections(result: dict[str, Any]) -> Iterator[Section]:
    """The tables of a result, in the order of its parts."""
    for name, part in result["parts"].items():
        yield from _SECTIONS[name](part)


def markdown(section: Section) -> str:
    """A table as Markdown, its title above it."""
    title, head, rows = section
    lines = [f"| {' | '.join(row)} |" for row in ([*head], ["---"] * len(head), *rows)]
    return "\n".join([f"{title}:", "", *lines, ""])


def facts(result: dict[str, Any]) -> Iterator[str]:
    """What was measured on what, in lines."""
    machine = result["machine"]
    threads = f"{machine['threads']} threads, load {machine['load_average'] or 0:.1f} before"
    yield f"{machine['device_name']} ({machine['device']}), {machine['cores']} cores, {threads}"
    yield ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    for role in ("target", "draft"):
        model = result[role]
        if model and "name" in model:
            size = f"{model['parameters'] / 1e6:,.0f} M parameters, {model['bytes'] / 1e6:,.0f} MB"
            yield f"{role}: {model['name']}, {size}, {model['dtype']}, {model['execution']} passes"


def closing(result: dict[str, Any]) -> Iterator[str]:
    """Why parts are missing, and how long it took."""
    yield from (f"{name} was left out: {reason}" for name, reason in result["skipped"].items())
    peers = result["parts"].get("peers", {"failed": {}, "missing": []})
    yield from (f"{name} failed: {words}" for name, words in peers["failed"].items())
    if "drafts" in result["parts"]:
        yield from contest_failures(result["parts"]["drafts"])
    yield from (f"{name} is not installed; pip install --no-deps {name}" for name in peers["missing"])
    yield f"Medians, with the quartiles in brackets. Took {result['seconds'] / 60:.1f} minutes."


def _generate(part: dict[str, Any]) -> Iterator[Section]:
    title = f"standard lane ({part['our_dtype']}) against transformers' generate ({part['their_dtype']}), greedy"
    yield _duel(title, part)


def _assisted(part: dict[str, Any]) -> Iterator[Section]:
    for name, compared in part["compared"].items():
        yield _duel(f"{name} lane against transformers' own, k = {part['k']}, {part['dtype']}", compared)


def _peers(part: dict[str, Any]) -> Iterator[Section]:
    for peer, compared in part["compared"].items():
        for name, one in compared.items():
            who = f"{peer} {part['versions'][peer]}'s"
            yield _whole_duel(f"{name} lane against {who}, whole calls, k = {part['k']}, {part['dtype']}", one)


def _duel(title: str, compared: dict[str, Any]) -> Section:
    head = ("prompt", "tokens", "ours, tokens/s", "theirs, tokens/s", "ratio", "with the prompt", "tau", "theirs")
    return title, head, [_decoding_row(name, one) for name, one in _by_prompt(compared)]


def _decoding_row(name: str, one: dict[str, Any]) -> Row:
    ours, theirs = one["ours"], one["theirs"]
    return (
        name,
        str(one.get("tokens", "")),
        spread(ours["tokens_per_second"], ".1f"),
        spread(theirs["tokens_per_second"], ".1f"),
        spread(one["ratio"], ".2f", "x"),
        spread(one["whole_ratio"], ".2f", "x"),
        spread(ours["tau"], ".2f", quartiles=False),
        spread(theirs["tau"], ".2f", quartiles=False),
    )


def _whole_duel(title: str, compared: dict[str, Any]) -> Section:
    head = ("prompt", "tokens", "ours, tokens/s", "theirs, tokens/s", "ratio")
    return title, head, [_whole_row(name, one) for name, one in _by_prompt(compared)]


def _whole_row(name: str, one: dict[str, Any]) -> Row:
    speeds = (spread(one[side]["whole_tokens_per_second"], ".1f") for side in ("ours", "theirs"))
    return (name, str(one.get("tokens", "")), *speeds, spread(one["whole_ratio"], ".2f", "x"))


def _by_prompt(compared: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [*compared["prompts"].items(), ("all", compared)]


def _verify(part: dict[str, Any]) -> Iterator[Section]:
    head = ("tokens in the pass", "ms", "over one token")
    rows = [
        (width, spread(one["seconds"], ".1f", scale=1000), f"{one['v']:.2f}") for width, one in part["widths"].items()
    ]
    yield "verify curve", head, rows


def _roofline(part: dict[str, Any]) -> Iterator[Section]:
    rows = [
        ("a one-token pass, ms", spread(part["pass_seconds"], ".1f", scale=1000)),
        ("weights read, MB", f"{part['weight_bytes_read'] / 1e6:,.0f}"),
        (f"best read of {part['bytes_a_read'] / 1e9:.2f} GB, GB/s", f"{part['best_bandwidth'] / 1e9:.1f}"),
        ("roofline, ms", f"{1000 * part['floor_seconds']:.1f}"),
        ("pass over roofline", f"{part['ratio']:.2f}"),
        ("largest cache, MB", _size(part["last_level_cache_bytes"])),
    ]
    yield f"roofline, {part['dtype']}", ("", ""), rows


def _page(part: dict[str, Any]) -> Iterator[Section]:
    rows = [
        ("engine tokens/s, page and client", spread(part["page"], ".1f")),
        ("engine tokens/s, headless", spread(part["headless"], ".1f")),
        ("ratio", spread(part["ratio"], ".3f")),
        ("ratio, by the time of turns", spread(part["turn_ratio"], ".3f")),
        ("cores used outside the engine", spread(part["cores_outside_engine"], ".3f")),
        ("app start to the client's first round, s", f"{part['app_start_to_first_round_seconds']:.1f}"),
        ("peak memory of the app, MB", _size(part["app_peak_bytes"])),
    ]
    yield f"with the page against headless, {part['tokens']} tokens a lane", ("", ""), rows


def _startup(part: dict[str, Any]) -> Iterator[Section]:
    rows = [
        ("first start to first token, s", f"{part['first_start_seconds']:.1f}"),
        ("later starts to first token, s", spread(part["later_starts_seconds"], ".1f")),
        ("memory up to the first token, MB", _size(part["first_token_bytes"])),
        ("peak memory with every lane, MB", _size(part["peak_bytes"])),
    ]
    yield "start-up and memory", ("", ""), rows


_SECTIONS: dict[str, Callable[[dict[str, Any]], Iterable[Section]]] = {
    "generate": _generate,
    "assisted": _assisted,
    "peers": _peers,
    "verify": _verify,
    "roofline": _roofline,
    "page": _page,
    "startup": _startup,
    "drafts": contest_sections,
}


def _size(value: int | None) -> str:
    return _NONE if value is None else f"{value / 1e6:,.0f}"
