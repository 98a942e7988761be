"""Every number of a lane as a line of a table: what it is called, and how it is written. Undefined is a dash."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from specviz.metrics import Summary, expected_tokens, percent, relative_cost, teaching_speedup, times

Line = tuple[str, Callable[[Summary], str]]
NONE = "-"


def _number(name: str, form: str) -> Callable[[Summary], str]:
    def written(summary: Summary) -> str:
        value = getattr(summary, name)
        return NONE if value is None else format(value, form)

    return written


def _share(name: str) -> Callable[[Summary], str]:
    def written(summary: Summary) -> str:
        value = getattr(summary, name)
        return NONE if value is None else percent(value)

    return written


def _count(label: str, name: str) -> Line:
    return label, _number(name, ",d")


def _rate(label: str, name: str) -> Line:
    return label, _number(name, ".3f")


def _seconds(label: str, name: str) -> Line:
    return f"{label}, s", _number(name, ".4g")


def _verify_cost(summary: Summary) -> str:
    costs = summary.costs
    return NONE if costs is None else f"{relative_cost(costs.curve, costs.drafted + 1):.3f}"


def _teaching_tokens(summary: Summary) -> str:
    known = summary.alpha is not None and summary.mean_drafted is not None
    return f"{expected_tokens(summary.alpha, summary.mean_drafted):.2f}" if known else NONE


def _teaching_speedup(summary: Summary) -> str:
    known = None not in (summary.alpha, summary.mean_drafted, summary.c)
    return times(teaching_speedup(summary.alpha, summary.mean_drafted, summary.c)) if known else NONE


def _times(name: str) -> Callable[[Summary], str]:
    def written(summary: Summary) -> str:
        value = getattr(summary, name)
        return NONE if value is None else times(value)

    return written


def _identical(summary: Summary) -> str:
    answer = {True: "yes", False: "no"}.get(summary.identical_to_standard)
    return answer or NONE


# groups of lines, in the order in which a run happens
GROUPS: tuple[tuple[str, tuple[Line, ...]], ...] = (
    (
        "counts",
        (
            ("ended by", lambda summary: summary.finish_reason or NONE),
            _count("kept tokens", "kept_tokens"),
            _count("target passes", "target_passes"),
            _count("draft passes", "draft_passes"),
            _count("rounds", "rounds"),
            _count("rounds that drafted", "drafting_rounds"),
            _count("drafted (nodes of a tree)", "drafted"),
            _count("accepted", "accepted"),
            _count("tested (accepted + corrections)", "tested"),
            _count("drafted, not kept", "wasted_drafts"),
            _count("target positions computed", "positions_computed"),
            _count("target positions not kept", "wasted_positions"),
        ),
    ),
    (
        "rates",
        (
            ("accepted / drafted", _share("acceptance")),
            _rate("alpha (accepted / tested)", "alpha"),
            _rate("alpha (mean overlap)", "alpha_overlap"),
            _rate("tau (tokens per target pass)", "tau"),
            ("coverage (rounds that drafted)", _share("coverage")),
            ("mean drafted (nodes)", _number("mean_drafted", ".2f")),
            ("mean depth (a chain's is the same)", _number("mean_depth", ".2f")),
            ("mean accepted", _number("mean_accepted", ".2f")),
        ),
    ),
    (
        "clocks",
        (
            _seconds("decode", "seconds"),
            _seconds("  draft", "draft_seconds"),
            _seconds("  verify", "verify_seconds"),
            _seconds("  other", "other_seconds"),
            _seconds("telemetry, off the clock", "telemetry_seconds"),
            _seconds("wall time of its turns", "wall_seconds"),
            _seconds("prefill, shared + own", "prefill_seconds"),
            _seconds("  the draft's own", "draft_prefill_seconds"),
            _seconds("to the first token", "first_token_seconds"),
            ("tokens / s", _number("tokens_per_second", ".2f")),
        ),
    ),
    (
        "costs, in one-token target passes",
        (
            _seconds("one-token target pass", "one_token_pass_seconds"),
            _rate("c (a drafted token)", "c"),
            ("v (a pass over the mean drafted + 1)", _verify_cost),
            _rate("overhead of a round", "overhead"),
        ),
    ),
    (
        "predictions",
        (
            ("predicted speed-up S", _times("predicted_speedup")),
            ("teaching E(alpha, mean drafted)", _teaching_tokens),
            ("teaching E / (k c + 1)", _teaching_speedup),
            _count("best k", "best_k"),
            ("S at the best k", _times("best_speedup")),
        ),
    ),
    (
        "against standard decoding",
        (
            ("measured speed-up", _times("speedup")),
            ("identical to standard", _identical),
            _count("first divergence, token (from 0)", "first_divergence"),
            ("the target's top-2 gap there", _number("divergence_margin", ".4g")),
        ),
    ),
)


def by_position(summary: Summary) -> Iterator[str]:
    """Acceptance at each drafted position: conditional, vLLM's, and the rounds that reached it."""
    columns = (summary.accepted_per_position, summary.accepted_per_position_vllm, summary.reached_per_position)
    for conditional, vllm, reached in zip(*columns, strict=True):
        yield f"{_rounded(conditional)} / {_rounded(vllm)} of {reached}"


def by_source(summary: Summary) -> dict[str, str]:
    """For each of the draft's sources: accepted of drafted, and the share that is; empty where there is one."""
    return {one.source: f"{one.accepted:,d} of {one.drafted:,d}, {percent(one.acceptance)}" for one in summary.sources}


def _rounded(value: float | None) -> str:
    return NONE if value is None else f"{value:.2f}"
