"""Settings: everything about a lane's decoding that is not a model or a draft strategy.

Standard library only; knows nothing of models, text or the page.
"""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass, fields

from specviz.core.errors import InputError

MAX_K = 64
MAX_NEW_TOKENS = 8192
MAX_STOPS = 16
MAX_STOP_LENGTH = 200

# name: (lowest, highest), both allowed
_RANGES = {
    "k": (0, MAX_K),
    "max_new_tokens": (1, MAX_NEW_TOKENS),
    "temperature": (0.0, 10.0),
    "top_k": (0, 1_000_000),
    "top_p": (0.0, 1.0),
    "seed": (0, 2**63 - 1),
    "repetition_penalty": (0.01, 10.0),
    "presence_penalty": (-10.0, 10.0),
    "frequency_penalty": (-10.0, 10.0),
}
_WHOLE = {"k", "max_new_tokens", "top_k", "seed"}

# name: (level where none is given, lowest, highest); the level of a policy is written behind it, as in "confidence-0.4"
K_POLICIES = {
    "fixed": None,
    "confidence": (0.4, 0.0, 1.0),
    "entropy": (2.0, 0.0, 20.0),
    "adaptive": (0.25, 0.01, 0.99),
}


@dataclass(frozen=True, slots=True)
class Settings:
    """How one lane decodes.

    `k` is the number of tokens asked of the draft in a round (0 decodes as standard). `temperature` 0 is greedy;
    `top_k` 0 and `top_p` 1 are off. `repetition_penalty` (CTRL, Keskar et al. 2019) sees prompt and output,
    `presence_penalty` and `frequency_penalty` see the output only. `stop` holds strings matched on generated text.
    `telemetry` adds what only explains a run (top-5, overlap, text); it never changes the tokens.

    `k_policy` says how much of k is drafted. "fixed": all of it. "confidence" and "entropy" stop before a position
    where the draft is unsure: its best token is less probable than the level, or its entropy above the level, in nats.
    "adaptive": as many tokens as have at least the level's chance of being kept, by this run's acceptance so far.

    Raises InputError for a value out of its range.
    """

    k: int = 4
    max_new_tokens: int = 64
    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0
    stop: tuple[str, ...] = ()
    ignore_eos: bool = False
    k_policy: str = "fixed"
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    telemetry: bool = True

    def __post_init__(self) -> None:
        for name, (lowest, highest) in _RANGES.items():
            object.__setattr__(self, name, _number(name, getattr(self, name), lowest, highest))
        if self.top_p == 0.0:
            raise _refused("top_p", "must be above 0 and at most 1; use 1 to switch it off.", "out-of-range")
        object.__setattr__(self, "stop", _stops(self.stop))
        for name in ("ignore_eos", "telemetry"):
            if not isinstance(getattr(self, name), bool):
                raise _refused(name, f"must be true or false, not {getattr(self, name)!r}.", "not-a-truth")
        k_policy(self.k_policy)

    @property
    def greedy(self) -> bool:
        """Temperature 0: argmax against argmax, no random numbers."""
        return self.temperature == 0.0

    @property
    def penalised(self) -> bool:
        return self.repetition_penalty != 1.0 or self.presence_penalty != 0.0 or self.frequency_penalty != 0.0


def k_policy(text: object) -> tuple[str, float | None]:
    """The name and the level of a policy for k, spelt `name` or `name-level`. Raises InputError."""
    name, dash, level = text.partition("-") if isinstance(text, str) else ("", "", "")
    if name not in K_POLICIES or (dash and K_POLICIES[name] is None):
        known = ", ".join(f"{one}-{facts[0]}" if facts else one for one, facts in K_POLICIES.items())
        said = f"k_policy '{text}' is not known; use one of: {known}."
        raise InputError(said, code="unknown-policy", field="k_policy")
    if K_POLICIES[name] is None:
        return name, None
    usual, lowest, highest = K_POLICIES[name]
    try:
        value: float | str = float(level) if dash else usual
    except ValueError:
        value = level
    try:
        return name, _number("k_policy", value, lowest, highest)
    except InputError as error:
        raise InputError(error.said, subject=f"the level of '{name}'", code=error.code, field="k_policy") from error


SETTING_NAMES = tuple(field.name for field in fields(Settings))


def _number(name: str, value: object, lowest: float, highest: float) -> int | float:
    """`value` as a number in its range; whole where the setting counts something."""
    number = _finite(value)
    if number is None:
        what = f"must be a number from {lowest} to {highest}"
        if value is None:
            raise _refused(name, f"{what}; the field is empty.", "empty")
        raise _refused(name, f"{what}, not {value!r}.", "not-a-number")
    if name in _WHOLE:
        if number != int(number):
            raise _refused(name, f"must be a whole number, not {number!r}.", "not-whole")
        number = int(number)
    if not lowest <= number <= highest:
        shown = repr(number) if abs(number) < 1e30 else "the number given"
        raise _refused(name, f"must lie between {lowest} and {highest}; {shown} does not.", "out-of-range")
    return number if name in _WHOLE else float(number)


def _finite(value: object) -> int | float | None:
    """`value` as a finite number, None where it is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, numbers.Integral):
        return int(value)
    return float(value) if isinstance(value, numbers.Real) and math.isfinite(value) else None


def _stops(value: object) -> tuple[str, ...]:
    if not isinstance(value, str | list | tuple):
        raise InputError(f"The stop strings must be texts, not {value!r}.", code="invalid", field="stop")
    stops = (value,) if isinstance(value, str) else tuple(value)
    if len(stops) > MAX_STOPS:
        said = f"At most {MAX_STOPS} stop strings can be used; {len(stops)} were given."
        raise InputError(said, code="too-many", field="stop")
    for stop in stops:
        if not isinstance(stop, str) or not 0 < len(stop) <= MAX_STOP_LENGTH:
            said = f"A stop string must be a text of 1 to {MAX_STOP_LENGTH} characters."
            raise InputError(said, code="out-of-range", field="stop")
    return stops


def _refused(name: str, said: str, code: str) -> InputError:
    return InputError(said, subject=name, code=code, field=name)
