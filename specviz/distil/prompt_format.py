"""Where a target's own prompts begin and end: the text of the chat template around a user's turn.

Prompts are rendered as `specviz.races.prompts` renders a typed prompt, with the template's own system part.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from specviz.core.errors import InputError
from specviz.distil.teacher import Teacher
from specviz.races.prompts import has_chat_template, make_prompt

_PLACEHOLDER = "specvizuserturn"


@dataclass(frozen=True, slots=True)
class PromptFormat:
    """How prompts are written: `header` (n,) precedes a prompt's own ids, any of the ids in `ends` ends it.

    `closing` is a text that ends a prompt too, '' for none. `chat` is False for a base model, whose prompts are the
    beginning of the text that it continues.
    """

    chat: bool
    header: tuple[int, ...]
    ends: tuple[int, ...]
    closing: str = ""

    def render(self, teacher: Teacher, written: tuple[int, ...]) -> tuple[int, ...]:
        """The ids that a run reads for the prompt `written` (header and end left out); () for an empty prompt."""
        if not self.chat:
            return (*self.header, *written) if written else ()
        text = teacher.tokenizer.decode(written, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        text = (text.partition(self.closing)[0] if self.closing else text).strip()
        return make_prompt(teacher, text, chat=True).ids if text else ()


def prompt_format(teacher: Teacher) -> PromptFormat:
    """The format of this target's prompts. Raises InputError where the target has nothing to begin a prompt with."""
    if not has_chat_template(teacher):
        return PromptFormat(False, (_first_id(teacher),), teacher.eos_ids)
    # the template has written the special tokens already
    written = teacher.tokenizer.decode(make_prompt(teacher, _PLACEHOLDER, chat=True).ids)
    before, found, after = written.partition(_PLACEHOLDER)
    if not found:
        raise InputError(
            f"The chat template of {teacher.name} drops the user's turn, so the target cannot write prompts; "
            "choose another target."
        )
    header = teacher.tokenizer(before, add_special_tokens=False)["input_ids"]
    closing = teacher.tokenizer(after, add_special_tokens=False)["input_ids"]
    special = [token for token in closing[:1] if token in _special_ids(teacher.tokenizer)]
    text = "" if special else after.strip().partition("\n")[0]
    return PromptFormat(True, tuple(header), tuple(dict.fromkeys((*teacher.eos_ids, *special))), text)


def _special_ids(tokenizer: Any) -> set[int]:
    """Ids of the tokens with a role, such as eos, and of those only marked as special."""
    added = getattr(tokenizer, "added_tokens_decoder", {})
    return {*tokenizer.all_special_ids, *(number for number, token in added.items() if token.special)}


def _first_id(teacher: Teacher) -> int:
    first = teacher.tokenizer.bos_token_id
    if first is None and not teacher.eos_ids:
        raise InputError(
            f"{teacher.name} has neither a chat template nor a first token, so it cannot write prompts; "
            "choose another target."
        )
    return int(teacher.eos_ids[0] if first is None else first)
