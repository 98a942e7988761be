"""What the page calls its fields, on a control and in a sentence about what the field holds."""

from __future__ import annotations

from specviz.core.errors import SpecvizError

# by the names of Settings
LABELS = {
    "k": "k",
    "k_policy": "How k is chosen",
    "max_new_tokens": "New tokens",
    "temperature": "Temperature",
    "seed": "Seed",
    "top_k": "top-k",
    "top_p": "top-p",
    "repetition_penalty": "Repetition penalty",
    "presence_penalty": "Presence penalty",
    "frequency_penalty": "Frequency penalty",
    "stop": "Stop strings",
    "ignore_eos": "go on after the end-of-sequence token",
    "telemetry": "keep top-5 and overlap of both models",
}


def draft_label(number: int) -> str:
    """The label of the draft of lane `number`, from 1."""
    return "Draft" if number == 1 else f"Draft {number}"


def model_label(number: int) -> str:
    """The label of the model that drafts in lane `number`, from 1."""
    return "Draft model" if number == 1 else f"Draft model {number}"


def worded(error: SpecvizError) -> str:
    """The error's sentence with the label of its field, so that a person finds the control."""
    if error.lane is not None:
        label = model_label if error.field == "draft.source" else draft_label
        return f"{label(error.lane)}: {error.sentence}"
    if error.field == "target" and error.code != "empty":
        return f"Target: {error.sentence}"
    if error.field in LABELS and error.subject:
        return f"{LABELS[error.field]} {error.said}"
    return str(error)
