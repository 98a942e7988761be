"""How numbers are written for people: one rule per kind of number, on the page, in the terminal and in tables.

The race view writes the numbers of a race in progress itself, by the same rules (race_view/words.js); a test holds the
two together.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from enum import StrEnum
from typing import Any

UNDEFINED = "–"
# Room for every digit of any float, so that nothing is rounded twice.
_EXACT = Context(prec=400, rounding=ROUND_HALF_UP)


def fixed(value: float, digits: int) -> str:
    """`value` with `digits` decimals, ties rounded up: what a browser's `toFixed` writes."""
    return f"{Decimal(value).quantize(Decimal(1).scaleb(-digits), context=_EXACT):f}"


def times(ratio: float) -> str:
    """A speed-up, as in "1.8×": one decimal, two near 1 and near 0, so that 0.97 never reads as 1.0."""
    short = fixed(ratio, 1)
    return f"{fixed(ratio, 2)}×" if ratio < 0.1 or short == "1.0" else f"{short}×"


def percent(share: float) -> str:
    """A share in percent, with a decimal below 1 and above 99. "0%" is exactly none and "100%" exactly all."""
    if 0 < share < 0.001:
        return "<0.1%"
    if 0.999 < share < 1:
        return ">99.9%"
    value = share * 100
    return f"{fixed(value, 1 if 0 < value < 1 or 99 < value < 100 else 0)}%"


def seconds(value: float) -> str:
    """A duration in seconds, milliseconds or microseconds, to about three digits."""
    if value < 0.001:
        return f"{fixed(value * 1e6, 0)} µs"
    if value < 1:
        milliseconds = value * 1000
        digits = 2 if value < 0.01 else 1 if value < 0.1 and milliseconds % 1 > 0.05 else 0
        return f"{fixed(milliseconds, digits)} ms"
    return f"{fixed(value, 2 if value < 10 else 1)} s"


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """A number with its noun: "1 token", "2 tokens"."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def parameters(count: int) -> str:
    """The size of a model: "135 M", "1.54 B"."""
    return f"{fixed(count / 1e9, 2)} B" if count >= 1e9 else f"{fixed(count / 1e6, 0)} M"


class Format(StrEnum):
    """How one of a lane's numbers is written."""

    TEXT = "text"
    YES_NO = "yes or no"
    COUNT = "count"
    MEAN = "mean"
    RATE = "rate"
    DIGITS = "digits"
    PERCENT = "percent"
    TIMES = "times"
    SECONDS = "seconds"
    LIST = "list"

    def __call__(self, value: Any) -> str:
        """`value` in words; a dash where it is None."""
        return UNDEFINED if value is None else _WRITERS[self](value)


_WRITERS: dict[Format, Callable[[Any], str]] = {
    Format.TEXT: str,
    Format.YES_NO: lambda value: "yes" if value else "no",
    Format.COUNT: lambda value: f"{value:,d}",
    Format.MEAN: lambda value: fixed(value, 2),
    Format.RATE: lambda value: fixed(value, 3),
    Format.DIGITS: lambda value: f"{value:.4g}",
    Format.PERCENT: percent,
    Format.TIMES: times,
    Format.SECONDS: seconds,
    Format.LIST: lambda values: ", ".join(UNDEFINED if value is None else str(value) for value in values),
}
