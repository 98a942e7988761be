"""What a machine lets people ask of a race: sources, files, memory and length."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from specviz.core.draft_spec import DraftSpec
from specviz.core.errors import InputError, LoadError, located
from specviz.core.settings import MAX_NEW_TOKENS
from specviz.drafting import strategy_of
from specviz.sources import names_file, normalise, split_form


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one machine.

    `sources` are the only ones allowed, with the bytes of their weights; None allows any. `files`: whether people may
    name files and folders of the machine. `memory`: bytes that the models of one race may take.
    """

    max_new_tokens: int = MAX_NEW_TOKENS
    sources: Mapping[str, int] | None = None
    files: bool = True
    memory: float = math.inf

    def check_source(self, source: str, field: str) -> None:
        """Raises LoadError for what is not a source of weights, or not one that this machine offers."""
        with located(field):
            known = split_form(normalise(source))[0]
        if not self.files and names_file(known):
            said = f"'{source}' names a file of this machine, which visitors may not; choose a model from the list."
            raise LoadError(said, code="names-file", field=field)
        if self.sources is not None and known not in self.sources:
            said = f"'{source}' is not offered on this machine; choose a model from the list."
            raise LoadError(said, code="not-offered", field=field)

    def check_memory(self, sources: Sequence[str]) -> None:
        """Raises LoadError for models of which each fits, but not all together."""
        if self.sources is None:
            return
        known = {split_form(source)[0] for source in sources}
        if sum(self.sources[source] for source in known) > self.memory:
            said = (
                f"A race of {' and '.join(sources)} is not offered on this machine: together they exceed its memory; "
                "choose smaller models or fewer."
            )
            raise LoadError(said, code="too-large", field="target")

    def check_draft(self, draft: DraftSpec) -> None:
        """Raises InputError or LoadError for a draft that this machine does not allow."""
        if draft.source is not None:
            self.check_source(draft.source, "draft.source")
        self.check_files(draft.strategy, dict(draft.options))

    def check_files(self, strategy: str, options: Mapping[str, Any]) -> None:
        """Raises InputError for an option that names a file where none may be named."""
        for option in () if self.files else strategy_of(strategy).options():
            if option.path and options.get(option.name):
                said = "names a file of this machine, which visitors may not; leave it empty."
                field = f"draft.options.{option.name}"
                raise InputError(said, subject=f"The option {option.name}", code="names-file", field=field)

    def check_length(self, max_new_tokens: int) -> None:
        """Raises InputError for more new tokens than this machine writes."""
        most = self.max_new_tokens
        if max_new_tokens > most:
            said = f"This machine writes at most {most} new tokens per lane; {max_new_tokens} were asked for."
            raise InputError(said, code="out-of-range", field="max_new_tokens")
