"""A Form is what the page's left column says, unchecked: the bridge between components, links, presets and requests.

Knows nothing of Gradio.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any

from specviz.core.draft_spec import DraftSpec
from specviz.core.settings import Settings
from specviz.drafting import strategies
from specviz.drafting.strategy import LEAST_NODES, USUAL_NODES

# of Settings; k and k_policy belong to a lane
SHARED = tuple(spec.name for spec in fields(Settings) if spec.name not in ("k", "k_policy"))
NATIVE = "native"


@dataclass(frozen=True, slots=True)
class Form:
    """What the column says; whatever a field of the page holds may stand in it.

    `lanes` are the drafts that are shown, each with a k. `settings` holds the fields of SHARED. `weights`: how the
    target's weights are run, NATIVE or one of the sources' FORMS.
    """

    prompt: str
    target: str
    lanes: tuple[DraftSpec, ...]
    chat: bool = True
    settings: dict[str, Any] = field(default_factory=dict)
    weights: str = NATIVE

    @property
    def target_source(self) -> str:
        """The source of the target, with the way its weights are run."""
        return self.target if self.weights == NATIVE else f"{self.target}#{self.weights}"


def as_lane(spec: DraftSpec, k: int) -> DraftSpec:
    """The spec as the controls of a lane say it: with a k, `k` where it names none, and no policy that is the usual."""
    settings = {"k": k, **dict(spec.settings)}
    if settings.get("k_policy") == Settings().k_policy:
        del settings["k_policy"]
    return replace(spec, settings=settings)


def drafts_tree(lane: DraftSpec) -> bool:
    """Whether the lane drafts trees, so that its k counts nodes."""
    kind = strategies().get(lane.strategy)
    return kind is not None and kind.drafts_tree(dict(lane.options))


def with_fitting_k(lane: DraftSpec) -> DraftSpec:
    """The lane with a k that suits its shape: a tree of a few nodes is hardly one."""
    small = drafts_tree(lane) and isinstance(lane.k, int | float) and 0 < lane.k < LEAST_NODES
    return lane.with_k(USUAL_NODES) if small else lane
