"""Repeated measurements of one quantity: all of them, the median, and the quartiles. Standard library only."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any


def described(samples: Sequence[float]) -> dict[str, Any]:
    """The samples in the order taken, with median, lower and upper quartile; None where there are none."""
    first, middle, third = quartiles(samples)
    return {"samples": list(samples), "median": middle, "q1": first, "q3": third}


def spread(value: dict[str, Any], form: str, unit: str = "", scale: float = 1, quartiles: bool = True) -> str:
    """The median of `described` samples, and the quartiles in brackets where there is more than one sample."""
    if value["median"] is None:
        return "-"
    middle, first, third = (format(scale * value[key], form) for key in ("median", "q1", "q3"))
    return f"{middle}{unit} [{first}, {third}]" if quartiles and len(value["samples"]) > 1 else f"{middle}{unit}"


def quartiles(samples: Sequence[float]) -> tuple[float | None, float | None, float | None]:
    """Lower quartile, median and upper quartile (inclusive method: of one sample all three are it)."""
    if not samples:
        return None, None, None
    if len(samples) == 1:
        return samples[0], samples[0], samples[0]
    first, middle, third = statistics.quantiles(samples, n=4, method="inclusive")
    return first, middle, third
