"""The result of a comparison of drafts as tables: by group, by prompt, the best k, and combined drafts. No torch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from specviz.experiments.aggregate import MeanAndWorst
from specviz.experiments.bench_report import ABSENT, Table, median_cell, number_cell
from specviz.experiments.comparison_result import (
    ALL,
    AgainstParts,
    ComparisonResult,
    DraftNumbers,
    GroupNumbers,
    PromptNumbers,
)
from specviz.metrics.definitions import METRICS

Drafts = Mapping[str, DraftNumbers]
_BESIDE_TAU = tuple(METRICS[name] for name in ("alpha", "mean_drafted", "mean_depth"))


def comparison_tables(result: ComparisonResult, what: str) -> Iterator[Table]:
    """Cells of groups are the mean of their prompts, the worst prompt in brackets. `what` says what was measured."""
    drafts = result.drafts
    yield _speedups(f"{METRICS['speedup'].name} over standard decoding, mean (worst prompt); {what}", drafts)
    yield _taus(f"{METRICS['tau'].title}, mean (worst prompt)", drafts)
    if any(len(draft.ks) > 1 for draft in drafts.values()):
        yield _best_ks("best k by group, and its mean speed-up", drafts)
    yield _prompts("speed-up by prompt, median [quartiles], tau; each draft at its best k over all prompts", result)
    yield from map(_against, result.against_parts)


def _speedups(title: str, drafts: Drafts) -> Table:
    rows = []
    for name, k, groups in _by_k(drafts):
        whole = groups[ALL]
        means = (_mean_worst(group.speedup) for group in groups.values())
        same = f"{whole.identical} of {whole.of}"
        rows.append((name, k, *means, METRICS["c"].format(whole.means["c"].mean), same))
    return Table(title, ("draft", "k", *_groups(drafts), METRICS["c"].symbol, "same text"), tuple(rows))


def _taus(title: str, drafts: Drafts) -> Table:
    rows = []
    for name, k, groups in _by_k(drafts):
        taus = (_mean_worst(group.means["tau"]) for group in groups.values())
        means = groups[ALL].means
        rows.append((name, k, *taus, *(metric.format(means[metric.field].mean) for metric in _BESIDE_TAU)))
    return Table(title, ("draft", "k", *_groups(drafts), *(metric.title for metric in _BESIDE_TAU)), tuple(rows))


def _best_ks(title: str, drafts: Drafts) -> Table:
    rows = ((name, *(_best(draft, group) for group in _groups(drafts))) for name, draft in drafts.items())
    return Table(title, ("draft", *_groups(drafts)), tuple(rows))


def _best(draft: DraftNumbers, group: str) -> str:
    k = draft.best_k[group]
    return ABSENT if k is None else f"{k}: {number_cell(draft.ks[k].groups[group].speedup.mean, '.2f')}"


def _prompts(title: str, result: ComparisonResult) -> Table:
    best = {f"{name} k={draft.best_k[ALL]}": draft.at_best_k() for name, draft in result.drafts.items()}
    rows = []
    for name, prompt in result.prompts.items():
        tokens, speed = str(prompt.tokens or ABSENT), number_cell(prompt.tokens_per_second.median, ".1f")
        rows.append((name, prompt.group, tokens, speed, *(_cell(lane.prompts.get(name)) for lane in best.values())))
    return Table(title, ("prompt", "group", "tokens", "standard, tokens/s", *best), tuple(rows))


def _cell(one: PromptNumbers | None) -> str:
    if one is None:
        return ABSENT
    parted = f", differs at token {one.first_divergence + 1}" if one.identical is False else ""
    return f"{median_cell(one.speedup, '.2f')}, {number_cell(one.medians['tau'], '.2f')}{parted}"


def _against(one: AgainstParts) -> Table:
    ks = ", ".join(f"{name} k={k}" for name, k in one.best_k.items())
    held = f"{one.share} of it or more on {one.held} of {len(one.ratio)}"
    title = f"{one.draft} against the better of its parts: {held} ({ks})"
    return Table(title, ("prompt", "ratio"), tuple((name, f"{ratio:.3f}") for name, ratio in one.ratio.items()))


def _groups(drafts: Drafts) -> tuple[str, ...]:
    return next((tuple(draft.best_k) for draft in drafts.values()), ())


def _by_k(drafts: Drafts) -> Iterator[tuple[str, str, Mapping[str, GroupNumbers]]]:
    for name, draft in drafts.items():
        for k, lane in draft.ks.items():
            yield name, str(k), lane.groups


def _mean_worst(value: MeanAndWorst) -> str:
    return f"{number_cell(value.mean, '.2f')} ({number_cell(value.worst, '.2f')})"
