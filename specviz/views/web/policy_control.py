"""The control of a lane's k policy, which says how many of k tokens are drafted, and of the policy's level.

In forms, links and drafts a policy is one word, `name` or `name-level`, as in Settings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import gradio as gr

from specviz.core.errors import InputError
from specviz.core.settings import K_POLICIES, k_policy
from specviz.views.web.labels import LABELS

# name: (what it does, what its level is); a policy that is not listed shows its name
_WORDS = {
    "fixed": ("always k", ""),
    "confidence": ("stop at an unsure token, by its probability", "stop below this probability of the likeliest token"),
    "entropy": ("stop at an unsure token, by entropy", "stop above this entropy of the draft, in nats"),
    "adaptive": ("adapt to the acceptance so far", "least chance that a drafted token is kept"),
}


@dataclass(frozen=True, slots=True)
class PolicyControl:
    """The components of a lane's policy."""

    fold: gr.Accordion
    name: gr.Dropdown
    level: gr.Number

    @property
    def inputs(self) -> list[Any]:
        """The components that `read` takes the values of, in its order."""
        return [self.name, self.level]

    def read(self, values: Sequence[Any]) -> str:
        """The policy that the values of `inputs` spell, unchecked."""
        name, level = values
        leveled = K_POLICIES.get(name) is not None and level is not None
        return f"{name}-{level:g}" if leveled else str(name)

    def write(self, policy: str) -> list[Any]:
        """Updates of `inputs` that say `policy`."""
        name, level = _split(policy)
        return [name, _level_update(name, level)]

    def style(self, policy: str) -> Any:
        """The update of `fold`, whose label shows the policy while it is closed."""
        return gr.update(label=fold_label(policy))

    def wire(self, **quietly: Any) -> None:
        """A newly chosen policy starts at its usual level."""
        self.name.input(_usual, self.name, [self.level, self.fold], **quietly)


def policy_control(policy: str) -> PolicyControl:
    """Build the control, standing at `policy`."""
    name, level = _split(policy)
    choices = [(_WORDS.get(other, (other,))[0], other) for other in K_POLICIES]
    visible = len(choices) > 1
    with gr.Accordion(fold_label(policy), open=False, visible=visible, elem_classes="options policy") as fold:
        chosen = gr.Dropdown(choices, value=name, label=LABELS["k_policy"])
        shown = level is not None
        number = gr.Number(level, label=_level_label(name), step=0.05, visible=shown, min_width=100)
    return PolicyControl(fold, chosen, number)


def fold_label(policy: str) -> str:
    name, _ = _split(policy)
    return f"{LABELS['k_policy']}: {_WORDS.get(name, (name,))[0]}"


def _usual(name: str) -> tuple[Any, Any]:
    level = _split(name)[1]
    return _level_update(name, level), gr.update(label=fold_label(name))


def _level_update(name: str, level: float | None) -> Any:
    return gr.update(value=level, label=_level_label(name), visible=level is not None)


def _level_label(name: str) -> str:
    return _WORDS.get(name, ("", ""))[1] or "level"


def _split(policy: str) -> tuple[str, float | None]:
    """Name and level; an impossible level, which a form may hold, becomes the usual one."""
    try:
        return k_policy(policy)
    except InputError:
        return k_policy(policy.partition("-")[0])
