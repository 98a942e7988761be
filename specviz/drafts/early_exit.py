"""Early exit: the target's first layers, under its own norm and head, draft for the whole (Elhoushi et al. 2024)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from specviz.drafting.model_drafter import ModelDrafter
from specviz.drafting.strategy import Drafter, Run, Strategy, option
from specviz.drafting.vocabulary import CommonVocabulary
from specviz.models import LanguageModel


@dataclass(frozen=True)
class EarlyExit(Strategy):
    name: ClassVar[str] = "early-exit"
    label: ClassVar[str] = "Early exit"
    help: ClassVar[str] = "The target's first layers guess, all of them verify. Untrained exits are rarely right."

    layers: int = option(0, 0, 256, "layers to use; 0: a quarter of the target's")
    shallow: LanguageModel | None = None

    @classmethod
    def make(cls, target: LanguageModel, draft_model: LanguageModel | None, options: dict[str, Any]) -> Self:
        chosen = super().make(target, draft_model, options).layers
        layers = chosen or max(1, target.layers // 4)
        return cls(layers, target.first_layers(layers))

    @property
    def model(self) -> LanguageModel | None:
        return self.shallow

    def start(self, run: Run) -> Drafter:
        shallow = self.shallow or run.target.first_layers(self.layers)
        return ModelDrafter(shallow, run, CommonVocabulary(run.target.vocabulary, None))
