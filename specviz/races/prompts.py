"""From the text of a prompt to the token ids that every lane decodes.

A prompt goes through the model's chat template where there is one, or in raw. Its length is checked before anything
runs. Knows nothing of drafts, lanes, the command line or the page.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jinja2.exceptions import TemplateError

from specviz.core.errors import ContextError, InputError
from specviz.models import LanguageModel

MAX_PROMPT_CHARACTERS = 200_000


@dataclass(frozen=True, slots=True)
class Prompt:
    """`text` as typed; `ids` (n,), n >= 1; `chat`: whether the template was used; `notes`: sentences to show."""

    text: str
    ids: tuple[int, ...]
    chat: bool
    notes: tuple[str, ...] = ()


def make_prompt(
    model: LanguageModel, text: str, *, chat: bool | None = None, max_new_tokens: int | None = None
) -> Prompt:
    """The prompt that `text` makes for this model.

    `chat` False sends the text raw; otherwise it goes through the chat template, and a note says where there is none.
    Another note says where the context leaves less room than `max_new_tokens`. Raises InputError for a text that cannot
    be used, ContextError for one that fills the context.
    """
    check_text(text)
    if model.tokenizer is None:
        said = f"{model.name} has no tokenizer, so it cannot read text; give token ids instead."
        raise InputError(said, code="no-tokenizer", field="target")
    template = has_chat_template(model)
    wanted = chat is not False
    ids = _chat_ids(model, text) if wanted and template else _ids(model.tokenizer(text))
    if not ids:
        said = f"The prompt gives no tokens with the tokenizer of {model.name}; type at least one word."
        raise InputError(said, code="empty", field="prompt")
    _check_room(model, len(ids))
    missing = f"{model.name} has no chat template, so the prompt is used as typed."
    notes = (missing if wanted and not template else None, _short_of_room(model, len(ids), max_new_tokens))
    return Prompt(text, ids, wanted and template, tuple(note for note in notes if note))


def check_text(text: object) -> None:
    """Refuse what no model could use. Raises InputError."""
    if not isinstance(text, str):
        raise InputError("The prompt must be a text.", code="wrong-type", field="prompt")
    if not text.strip():
        raise InputError("The prompt is empty; type at least one word.", code="empty", field="prompt")
    if len(text) > MAX_PROMPT_CHARACTERS:
        said = f"The prompt has {len(text):,} characters; at most {MAX_PROMPT_CHARACTERS:,} can be used."
        raise InputError(said, code="too-long", field="prompt")
    if any("\ud800" <= character <= "\udfff" for character in text):
        said = "The prompt holds bytes that are not UTF-8; save or type it as UTF-8."
        raise InputError(said, code="not-utf-8", field="prompt")


def has_chat_template(model: LanguageModel) -> bool:
    return bool(getattr(model.tokenizer, "chat_template", None))  # a minimal tokenizer lacks the attribute


def _chat_ids(model: LanguageModel, text: str) -> tuple[int, ...]:
    """The text as a turn of the user, followed by the start of the model's answer."""
    messages = [{"role": "user", "content": text}]
    try:
        written = model.tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
    except (TemplateError, ValueError, TypeError) as error:
        said = f"The chat template of {model.name} cannot be used ({error}); send the prompt raw instead."
        raise InputError(said, code="no-chat-template", field="prompt") from error
    # the template has already added the special tokens
    return _ids(model.tokenizer(written, add_special_tokens=False))


def _ids(encoded: Any) -> tuple[int, ...]:
    return tuple(int(token) for token in encoded["input_ids"])


def _check_room(model: LanguageModel, count: int) -> None:
    if count >= model.context_length:
        said = (
            f"The prompt has {count} tokens and {model.name} reads at most {model.context_length}, "
            "its answer included; shorten the prompt."
        )
        raise ContextError(said, code="too-long", field="prompt")


def _short_of_room(model: LanguageModel, count: int, max_new_tokens: int | None) -> str | None:
    room = model.context_length - count
    if max_new_tokens is None or max_new_tokens <= room:
        return None
    return (
        f"The prompt has {count} tokens and {model.name} reads at most {model.context_length}, "
        f"so a lane writes at most {room} new {'token' if room == 1 else 'tokens'}, not {max_new_tokens}."
    )
