"""A lane's Summary as JSON: what the race view's final table and the `/summary` endpoint show."""

from __future__ import annotations

from dataclasses import asdict, fields, is_dataclass
from typing import Any

from specviz.metrics import Summary, holds_back, policy_bias, verdict

# what only explains how a prediction is made, or is text and ids that the view has from the events already
_INNER = frozenset({"costs", "comparison", "because"})
_BULK = frozenset({"text", "token_ids"})


def numbers(summary: Summary, *, bulk: bool = False) -> dict[str, Any]:
    """Every number of the lane by its field's name, and what it means in words; `bulk` adds text and ids."""
    hidden = _INNER if bulk else _INNER | _BULK
    values = {spec.name: _plain(getattr(summary, spec.name)) for spec in fields(summary) if spec.name not in hidden}
    because = summary.because.sentence if summary.because else None
    said = {"because": because, "holds_back": holds_back(summary), "verdict": verdict(summary)}
    said["policy_bias"] = policy_bias(summary)
    return {**values, "comparison": summary.comparison.value, **said}


def _plain(value: Any) -> Any:
    if not isinstance(value, tuple):
        return value
    return [asdict(item) if is_dataclass(item) else item for item in value]
