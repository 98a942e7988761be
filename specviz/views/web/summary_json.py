"""A lane's numbers and its verdict in words as JSON: what the race view's final table and `/summary` show."""

from __future__ import annotations

from typing import Any

from specviz.metrics import LaneVerdict, Summary, values, verdict_of
from specviz.metrics.words import holds_back, policy_bias, reason, sentence

# text and ids, which the view has from the events
_BULK = frozenset({"text", "token_ids"})


def numbers(summary: Summary, *, bulk: bool = False, verdict: LaneVerdict | None = None) -> dict[str, Any]:
    """Every number of the lane by its field, and the verdict in words; `bulk` adds text and ids."""
    verdict = verdict or verdict_of(summary)
    found = {name: value for name, value in values(summary).items() if bulk or name not in _BULK}
    because = None if verdict.because is None else reason(verdict.because, verdict.rounds)
    said = {"because": because, "holds_back": holds_back(verdict), "verdict": sentence(verdict)}
    return {**found, **said, "policy_bias": policy_bias(verdict)}
