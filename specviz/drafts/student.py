"""A student drafts: a few layers trained to say what the target says, under the target's own embedding and head.

The layers come from a file that `specviz distil --kind student` wrote (distillation for drafting: Zhou et al. 2024).
The shallow model shares the target's embedding and head and drafts as any model does.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

from specviz.core.errors import InputError
from specviz.drafting.draft_weights import DraftWeights, check_shapes, load_weights, weights_path
from specviz.drafting.model_drafter import ModelDrafter
from specviz.drafting.strategy import Drafter, Run, Strategy, option
from specviz.drafting.vocabulary import vocabulary_of
from specviz.models import LanguageModel

KIND = "student"


@dataclass(frozen=True)
class Student(Strategy):
    name: ClassVar[str] = KIND
    label: ClassVar[str] = "Distilled student"
    help: ClassVar[str] = "A few layers trained on what this very target says guess token by token."

    weights: str = option("", path=True, help="path of a student's weights (.safetensors); empty: the one bundled")
    shallow: LanguageModel | None = field(default=None, compare=False, repr=False)
    trained: DraftWeights | None = field(default=None, compare=False, repr=False)

    @classmethod
    def make(cls, target: LanguageModel, draft_model: LanguageModel | None, options: dict[str, Any]) -> Self:
        strategy = super().make(target, draft_model, options)
        path = weights_path(strategy.weights, KIND, target)
        trained = load_weights(path, KIND, target)
        return replace(strategy, shallow=_shallow(target, trained, str(path)), trained=trained)

    @property
    def model(self) -> LanguageModel | None:
        return self.shallow

    @property
    def note(self) -> str | None:
        return None if self.trained is None else self.trained.note

    def start(self, run: Run) -> Drafter:
        return ModelDrafter(self.shallow, run, vocabulary_of(run.target, self.trained.ids))


def _shallow(target: LanguageModel, trained: DraftWeights, path: str) -> LanguageModel:
    layers = trained.facts.get("layers")
    if type(layers) is not int or not 1 <= layers <= target.layers:
        raise InputError(f"The weights '{path}' say that they have {layers!r} layers; train the student anew.")
    check_shapes(trained, target.own_shapes(layers), path, target)
    name = f"{target.name}, student of {layers} layers"
    return target.with_layers(name, layers, trained.tensors, trained.ids)
