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

    `k_policy` says how much of k is drafted: "fixed" all of it; "confidence" stops before a position where the draft
    holds no token for more probable than the level, "entropy" where the draft's entropy in nats is above it; "adaptive"
    asks for as many tokens as have, by this run's acceptance so far, at least that chance of being kept.

    Raises InputError, in a sentence, for a value out of its range.
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
            raise InputError("top_p must be above 0 and at most 1; use 1 to switch it off.")
        object.__setattr__(self, "stop", _stops(self.stop))
        for name in ("ignore_eos", "telemetry"):
            if not isinstance(getattr(self, name), bool):
                raise InputError(f"{name} must be true or false, not {getattr(self, name)!r}.")
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
        raise InputError(f"k_policy '{text}' is not known; use one of: {known}.")
    if K_POLICIES[name] is None:
        return name, None
    usual, lowest, highest = K_POLICIES[name]
    try:
        value: float | str = float(level) if dash else usual
    except ValueError:
        value = level
    return name, _number(f"the level of k_policy '{name}'", value, lowest, highest)


SETTING_NAMES = tuple(field.name for field in fields(Settings))


def _number(name: str, value: object, lowest: float, highest: float) -> int | float:
    """`value` as a number in its range; whole where the setting counts something."""
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        value = int(value)
    elif isinstance(value, numbers.Real) and not isinstance(value, bool):
        value = float(value)
    finite = isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
    if isinstance(value, bool) or not finite:
        raise InputError(f"{name} must be a number from {lowest} to {highest}, not {value!r}.")
    if name in _WHOLE:
        if value != int(value):
            raise InputError(f"{name} must be a whole number, not {value!r}.")
        value = int(value)
    if not lowest <= value <= highest:
        shown = repr(value) if abs(value) < 1e30 else "the number given"
        raise InputError(f"{name} must lie between {lowest} and {highest}; {shown} does not.")
    return value if name in _WHOLE else float(value)


def _stops(value: object) -> tuple[str, ...]:
    if not isinstance(value, str | list | tuple):
        raise InputError(f"The stop strings must be texts, not {value!r}.")
    stops = (value,) if isinstance(value, str) else tuple(value)
    if len(stops) > MAX_STOPS:
        raise InputError(f"At most {MAX_STOPS} stop strings can be used; {len(stops)} were given.")
    for stop in stops:
        if not isinstance(stop, str) or not 0 < len(stop) <= MAX_STOP_LENGTH:
            raise InputError(f"A stop string must be a text of 1 to {MAX_STOP_LENGTH} characters.")
    return stops
