"""Settings: everything about a lane's decoding that is not a model or a draft strategy.

Standard library only; knows nothing of models, text or the page.
"""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass, fields

from specviz.errors import InputError

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


@dataclass(frozen=True, slots=True)
class Settings:
    """How one lane decodes.

    `k` is the number of tokens asked of the draft in a round (0 decodes as standard). `temperature` 0 is greedy;
    `top_k` 0 and `top_p` 1 are off. `repetition_penalty` (CTRL, Keskar et al. 2019) sees prompt and output,
    `presence_penalty` and `frequency_penalty` see the output only. `stop` holds strings matched on generated text.
    `telemetry` adds what only explains a run (top-5, overlap, text); it never changes the tokens.

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
        if self.k_policy != "fixed":
            raise InputError(f"k_policy '{self.k_policy}' is not known; use 'fixed'.")

    @property
    def greedy(self) -> bool:
        """Temperature 0: argmax against argmax, no random numbers."""
        return self.temperature == 0.0

    @property
    def penalised(self) -> bool:
        return self.repetition_penalty != 1.0 or self.presence_penalty != 0.0 or self.frequency_penalty != 0.0


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
