"""The standings of a contest of drafts as tables: by group, by prompt, the best k, and combined drafts. No torch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from specviz.experiments.aggregate import spread
from specviz.experiments.comparison_numbers import ALL
from specviz.experiments.prompt_set import GROUPS

Row = tuple[str, ...]
Section = tuple[str, Row, list[Row]]  # a title, the columns' names, the rows
_COLUMNS = (*GROUPS, ALL)
_NONE = "-"


def contest_sections(part: dict[str, Any]) -> Iterator[Section]:
    """Mean of a group's prompts, its worst prompt in brackets, but for the tables that say otherwise."""
    what = f"{part['repeats']} repeats of at most {part['longest']} tokens, greedy, {part['dtype']}"
    yield _speedups(f"speed-up over standard decoding, mean (worst prompt); {what}", part["drafts"])
    yield _taus("tokens per target pass, mean (worst prompt)", part["drafts"])
    if any(len(draft["ks"]) > 1 for draft in part["drafts"].values()):
        yield _best_ks("best k by group, and its mean speed-up", part["drafts"])
    yield _prompts("speed-up by prompt, median [quartiles], tau; each draft at its best k over all prompts", part)
    for one in part["against_parts"]:
        yield _against(one)


def contest_failures(part: dict[str, Any]) -> Iterator[str]:
    return (f"{lane} failed: {message}" for lane, message in part["failed"])


def _speedups(title: str, drafts: dict[str, Any]) -> Section:
    head = ("draft", "k", *_COLUMNS, "c", "same text")
    rows = []
    for name, k, groups in _by_k(drafts):
        whole = groups[ALL]
        same = f"{whole['identical']} of {whole['of']}"
        means = (_mean_worst(groups[group]["speedup"]) for group in _COLUMNS)
        rows.append((name, k, *means, _number(whole["c"]["mean"], ".3f"), same))
    return title, head, rows


def _taus(title: str, drafts: dict[str, Any]) -> Section:
    head = ("draft", "k", *_COLUMNS, "alpha", "drafted a round", "depth")
    rows = []
    for name, k, groups in _by_k(drafts):
        means = (_number(groups[ALL][fact]["mean"], ".2f") for fact in ("alpha", "mean_drafted", "mean_depth"))
        rows.append((name, k, *(_mean_worst(groups[group]["tau"]) for group in _COLUMNS), *means))
    return title, head, rows


def _best_ks(title: str, drafts: dict[str, Any]) -> Section:
    return (
        title,
        ("draft", *_COLUMNS),
        [(name, *(_best(draft, group) for group in _COLUMNS)) for name, draft in drafts.items()],
    )


def _best(draft: dict[str, Any], group: str) -> str:
    k = draft["best_k"][group]
    return _NONE if k is None else f"{k}: {_number(draft['ks'][str(k)]['groups'][group]['speedup']['mean'], '.2f')}"


def _prompts(title: str, part: dict[str, Any]) -> Section:
    best = {
        f"{name} k={draft['best_k'][ALL]}": draft["ks"][str(draft["best_k"][ALL])]
        for name, draft in part["drafts"].items()
    }
    rows = []
    for name, prompt in part["prompts"].items():
        cells = (_cell(draft["prompts"].get(name)) for draft in best.values())
        speed = spread(prompt["tokens_per_second"], ".1f", quartiles=False)
        rows.append((name, prompt["group"], str(prompt["tokens"] or _NONE), speed, *cells))
    return title, ("prompt", "group", "tokens", "standard, tokens/s", *best), rows


def _cell(one: dict[str, Any] | None) -> str:
    if one is None:
        return _NONE
    parted = f", differs at token {one['first_divergence'] + 1}" if one["identical"] is False else ""
    return f"{spread(one['speedup'], '.2f')}, {_number(one['tau'], '.2f')}{parted}"


def _against(one: dict[str, Any]) -> Section:
    ks = ", ".join(f"{name} k={k}" for name, k in one["best_k"].items())
    held = f"{one['share']} of it or more on {one['held']} of {len(one['ratio'])}"
    title = f"{one['draft']} against the better of its parts: {held} ({ks})"
    return title, ("prompt", "ratio"), [(name, f"{ratio:.3f}") for name, ratio in one["ratio"].items()]


def _by_k(drafts: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for name, draft in drafts.items():
        for k, numbers in draft["ks"].items():
            yield name, k, numbers["groups"]


def _mean_worst(value: dict[str, Any]) -> str:
    return f"{_number(value['mean'], '.2f')} ({_number(value['worst'], '.2f')})"


def _number(value: float | None, form: str) -> str:
    return _NONE if value is None else format(value, form)
