"""What a draft strategy is: a frozen description, the drafter that it starts for a run, and what they exchange.

A strategy is one file in `specviz.drafts`. The dataclass fields made by `option` are its options: the page builds
controls from them and the command line parses them, so a new strategy needs no other edit.
"""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from torch import Tensor

from specviz.core.errors import InputError, PairError
from specviz.core.settings import Settings
from specviz.models import LanguageModel
from specviz.sampling.sampler import Counts
from specviz.traces import SourceInfo

# Nodes of a tree: fewer are hardly a tree, and what to begin with.
LEAST_NODES, USUAL_NODES = 8, 16


@dataclass(frozen=True, slots=True)
class Run:
    """What a drafter may know of the run that it drafts for.

    `draws(n)` gives n uniform numbers of the lane's own stream; `counts` the tokens so far, None without penalties.
    """

    target: LanguageModel
    settings: Settings
    prompt_ids: tuple[int, ...]
    capacity: int
    draws: Callable[[int], Tensor]
    counts: Counts | None = None


@dataclass(frozen=True, slots=True)
class Proposal:
    """A block of drafted tokens.

    `ids` (n,), 0 <= n <= k, on the target's device or as plain integers. `probs` (n, target vocabulary): the very
    distributions they were drawn from; None where nothing was drawn (one-hot). `parents` (n,): for a tree, the index
    that each token follows (-1: the context). Siblings are tested in the order of their indexes, which must not depend
    on what was drawn; a sibling's row of `probs` is what it was drawn from given its earlier siblings. `sources` (n,):
    which source proposed each. `previous_choice`: the draft's argmax at the bonus position of the round before.
    `logits` (n, vocabulary): the draft's own, for telemetry. `note` says why there are fewer tokens than asked for.
    """

    ids: Tensor | Sequence[int]
    probs: Tensor | None = None
    parents: tuple[int, ...] | None = None
    sources: tuple[str, ...] | None = None
    previous_choice: Tensor | int | None = None
    logits: Tensor | None = None
    passes: int = 0
    note: str | None = None


NOTHING = Proposal(())


@dataclass(frozen=True, slots=True)
class Seen:
    """A row for each position that the target has just computed; row j is what it said after `ids[j]`.

    `parents` (m,): for a tree, the row that each row follows, -1 for what was kept before the first.
    `choices` (m, 8): its own best successors; `hidden` (m, width): its last hidden states; each None unless asked
    for in the strategy's `needs`.
    """

    ids: tuple[int, ...]
    parents: tuple[int, ...] | None = None
    choices: Tensor | None = None
    hidden: Tensor | None = None


class Drafter:
    """Drafts for one lane of one run; it keeps no more than this run's state."""

    def propose(self, k: int) -> Proposal:
        """At most `k` tokens to follow the kept text."""
        raise NotImplementedError  # every strategy brings its own

    def observe(self, kept_ids: Sequence[int], seen: Seen) -> None:
        """After the prefill: the prompt; after each round: the tokens new to the kept text."""

    def close(self) -> None:
        """Give back what the run held."""


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a strategy: name, type, default, range and a line of help.

    `path`: it names a file of this machine; `choices`: the texts that it may be, where it may not be any; `tree`: the
    value that makes the strategy draft trees, None where the option does not decide that.
    """

    name: str
    type: type
    default: Any
    low: float | None
    high: float | None
    help: str
    path: bool = False
    choices: tuple[str, ...] = ()
    tree: Any = None

    def parse(self, value: Any) -> Any:
        """`value` (or its text) as this option's type, in its range. Raises InputError."""
        try:
            parsed = _as(self.type, value)
        except (TypeError, ValueError, OverflowError) as error:
            raise self._refused(f"must be {_kind(self.type)}, not {_shown(value)}.", "wrong-type") from error
        if self.choices and parsed not in self.choices:
            raise self._refused(f"must be one of {', '.join(self.choices)}, not {_shown(value)}.", "unknown-choice")
        if self.low is not None and not self.low <= parsed <= self.high:
            said = f"must lie between {self.low} and {self.high}; {_shown(parsed)} does not."
            raise self._refused(said, "out-of-range")
        return parsed

    def _refused(self, said: str, code: str) -> InputError:
        return InputError(said, subject=f"The option {self.name}", code=code, field=self.name)


def option(
    default: Any,
    low: float | None = None,
    high: float | None = None,
    help: str = "",
    path: bool = False,
    choices: tuple[str, ...] = (),
    tree: Any = None,
) -> Any:
    """A dataclass field that is an option of its strategy; for the arguments see `Option`."""
    facts = {"low": low, "high": high, "help": help, "path": path, "choices": choices, "tree": tree}
    return dataclasses.field(default=default, metadata={"option": facts})


@dataclass(frozen=True)
class Strategy:
    """A way of drafting, with its options fixed. Subclasses are frozen dataclasses found by `name`.

    A class says what it is, so that no view knows a strategy by name: `needs` names what it reads of the target
    ("hidden", "choices"), `takes_model` and `any_tokenizer` which model it drafts with, `drafts` whether it drafts at
    all, `sources` where its guesses come from (drafted tokens carry a source's name), `parts` the strategies that it
    combines.
    """

    name: ClassVar[str] = ""
    label: ClassVar[str] = ""
    help: ClassVar[str] = ""
    needs: ClassVar[frozenset[str]] = frozenset()
    takes_model: ClassVar[bool] = False
    any_tokenizer: ClassVar[bool] = False  # whether that model may have another tokenizer than the target
    drafts: ClassVar[bool] = True
    sources: ClassVar[tuple[SourceInfo, ...]] = ()
    parts: ClassVar[tuple[str, ...]] = ()

    registry: ClassVar[dict[str, type[Strategy]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.name:
            Strategy.registry[cls.name] = cls

    @classmethod
    def options(cls) -> tuple[Option, ...]:
        fields = (field for field in dataclasses.fields(cls) if "option" in field.metadata)
        return tuple(Option(f.name, type(f.default), f.default, **f.metadata["option"]) for f in fields)

    @classmethod
    def make(cls, target: LanguageModel, draft_model: LanguageModel | None, options: dict[str, Any]) -> Self:
        """The strategy for this target, its options checked. Raises InputError or PairError."""
        if draft_model is not None and not cls.takes_model:
            raise InputError(f"The draft '{cls.name}' takes no model of its own; leave its source out.")
        if cls.takes_model and draft_model is None:
            raise InputError(f"The draft '{cls.name}' needs a draft model; name its source.")
        known = {option.name: option for option in cls.options()}
        for name in options:
            if name not in known:
                have = ", ".join(known) or "none"
                raise InputError(f"The draft '{cls.name}' has no option '{name}'; it has: {have}.")
        values = {name: known[name].parse(value) for name, value in options.items()}
        return cls(draft_model, **values) if cls.takes_model else cls(**values)

    @classmethod
    def drafts_tree(cls, options: Mapping[str, Any]) -> bool:
        """Whether it drafts trees with these options, the others at their defaults; k then counts nodes."""
        deciding = (option for option in cls.options() if option.tree is not None)
        return any(options.get(option.name, option.default) == option.tree for option in deciding)

    @property
    def tree(self) -> bool:
        """Whether it drafts trees as its options stand."""
        return self.drafts_tree(self.option_values)

    @property
    def option_values(self) -> dict[str, Any]:
        return {option.name: getattr(self, option.name) for option in self.options()}

    @property
    def model(self) -> LanguageModel | None:
        """The draft's own model, where it has one."""
        return None

    @property
    def note(self) -> str | None:
        """What there is to say of this draft with this target, for the lane's description."""
        return None

    def start(self, run: Run) -> Drafter:
        """A drafter for one lane of one run."""
        raise NotImplementedError  # every strategy brings its own


def same_device(target: LanguageModel, draft: LanguageModel) -> None:
    """Raises PairError for a draft on another device: it would be slow without a word."""
    if target.device != draft.device:
        raise PairError(
            f"The target is on {target.device} and the draft on {draft.device}; load both on the same device."
        )


def _as(kind: type, value: Any) -> Any:
    """`value` as this type, without guessing: a truth is no number, and a text is no truth."""
    if (kind is bool) != isinstance(value, bool):
        raise TypeError
    parsed = os.fspath(value) if kind is str else kind(value)
    if kind in (int, float) and not (math.isfinite(parsed) and float(value) == parsed):
        raise ValueError
    if not isinstance(parsed, kind):
        raise TypeError
    return parsed


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


def _kind(kind: type) -> str:
    return {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}.get(kind, "a list")
