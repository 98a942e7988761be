"""What a distillation is asked for: the fields of a Plan, each with its flag of the command line. Loads no torch."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from dataclasses import MISSING, Field, dataclass, field, fields
from pathlib import Path
from typing import Any

from specviz.core.errors import InputError
from specviz.distil.kinds import KINDS

AUTO = "auto"


@dataclass(frozen=True, slots=True)
class Flag:
    """How a field of `Plan` is given on the command line; it takes a number where it has bounds."""

    name: str
    help: str
    metavar: str | None
    bounds: tuple[float, float] | None
    whole: bool


def _flag(
    name: str,
    help: str,
    metavar: str | None = "N",
    bounds: tuple[float, float] | None = None,
    whole: bool = True,
    default: Any = MISSING,
) -> Any:
    """A field of `Plan` with its flag."""
    return field(default=default, metadata={"flag": Flag(name, help, metavar, bounds, whole)})


@dataclass(frozen=True, slots=True)
class SynthesisRecipe:
    """How a batch of text is written: `batch` prompts of at most `prompt_tokens`, replies of at most `reply_tokens`.

    Prompts are drawn at `temperature` from the `top_k` likeliest tokens, cut to those of mass `top_p`. A batch ends
    once no more than the share `stragglers` of its rows is unfinished: unfinished prompts are dropped, replies cut
    short.
    """

    batch: int = 96
    prompt_tokens: int = 80
    reply_tokens: int = 160
    temperature: float = 1.0
    top_k: int = 64
    top_p: float = 0.95
    stragglers: float = 0.2


@dataclass(frozen=True, slots=True)
class Plan:
    """What `distil` is asked for. Raises InputError for a number out of its bounds.

    `minutes` covers everything but the evaluation; text that a killed run wrote counts. With `tokens`, the minutes are
    the draft's alone.
    """

    source: str = _flag("--target", "source of the target", "SOURCE")
    kind: str = _flag("--kind", f"what to make: {', '.join(kind.name for kind in KINDS)}", "KIND")
    out: Path = _flag("--out", "folder of the draft", "DIR")
    minutes: float = _flag("--minutes", "time for text and draft", bounds=(0, 100_000), whole=False, default=60)
    seed: int = _flag("--seed", "seed of every draw", bounds=(0, 2**31 - 1), default=0)
    tokens: int | None = _flag(
        "--tokens",
        "write N reply tokens, however long it takes; --minutes then limits the draft alone",
        bounds=(1, 10**9),
        default=None,
    )
    text: Path | None = _flag(
        "--text", "folder of the text, DIR/text unless given; text that is there already counts", "DIR", default=None
    )
    vocabulary: int | None = _flag(
        "--vocabulary", "let a neural draft predict the N most frequent tokens alone", bounds=(2, 10**7), default=None
    )
    megabytes: float = _flag("--mb", "largest n-gram table, in MB", bounds=(0.001, 10_000), whole=False, default=8)
    steps: int | None = _flag(
        "--steps", "train a neural draft for N steps instead of --minutes", bounds=(1, 10**9), default=None
    )
    held_out: int = _flag("--held-out", "number of prompts to race the draft on", bounds=(1, 1000), default=12)
    device: str = _flag("--device", "auto, cuda, mps or cpu", None, default=AUTO)
    dtype: str = _flag(
        "--dtype", "dtype of the target as it writes: auto, float32, bfloat16 or float16", None, default=AUTO
    )
    recipe: SynthesisRecipe = field(default_factory=SynthesisRecipe)

    def __post_init__(self) -> None:
        for name in ("out", "text"):
            folder = getattr(self, name)
            if folder is not None:
                object.__setattr__(self, name, Path(os.path.expanduser(folder)))
        for each, flag in flags():
            value = getattr(self, each.name)
            if flag.bounds and value is not None:
                _check(each.name, flag, value)

    @property
    def text_folder(self) -> Path:
        return self.text or self.out / "text"

    @property
    def command(self) -> str:
        """The command line of this plan."""
        words = ["python", "-m", "specviz", "distil"]
        for each, flag in flags():
            value = getattr(self, each.name)
            if value is not None and value != AUTO:
                words += [flag.name, f"{value:g}" if isinstance(value, float) else str(value)]
        return shlex.join(words)


def flags() -> Iterator[tuple[Field, Flag]]:
    """The fields of a plan that have a flag, each with it."""
    yield from ((each, each.metadata["flag"]) for each in fields(Plan) if "flag" in each.metadata)


def _check(name: str, flag: Flag, value: float | str) -> None:
    low, high = flag.bounds
    if isinstance(value, str) or not low <= value <= high:
        said = f"must be a number from {low:g} to {high:,g}, not {value}."
        raise InputError(said, subject=flag.name, code="out-of-range", field=name)
    if flag.whole and isinstance(value, float):
        raise InputError(f"must be a whole number, not {value}.", subject=flag.name, code="wrong-type", field=name)
