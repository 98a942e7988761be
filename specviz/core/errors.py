"""The one family of errors that a user sees: a sentence for a person, a code and a field for a program."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from typing import ClassVar, Self


class SpecvizError(Exception):
    """Base of every error that the page or the command line shows.

    `str(error)` is a sentence that says what to do. It joins `subject`, what the error is about in the words of the
    Python interface ("temperature"), and `said` ("must lie between 0 and 10; 11 does not."); a view that has a label
    of its own for the field puts it in the subject's place. Without a subject, `said` is the whole sentence.
    `context` comes before it, as in "In the draft 'prompt-lookup:k=99': ".

    `code` is a short stable identifier. `field` names what was refused: "prompt", "target", a field of Settings,
    "draft", "draft.source", "draft.k" or "draft.options.layers". `lane` counts drafts from 1.
    """

    usual_code: ClassVar[str] = "refused"

    def __init__(
        self,
        said: str = "",
        *,
        subject: str = "",
        code: str | None = None,
        field: str | None = None,
        lane: int | None = None,
        context: str = "",
    ) -> None:
        super().__init__(said)
        self.said, self.subject, self.context = said, subject, context
        self.code, self.field, self.lane = code or self.usual_code, field, lane

    def __str__(self) -> str:
        return self.context + self.sentence

    @property
    def sentence(self) -> str:
        """The sentence without its context."""
        return f"{self.subject} {self.said}" if self.subject else self.said

    def at(self, field: str | None = None, *, lane: int | None = None, context: str | None = None) -> Self:
        """A copy of the error that says where it happened; what is not given stays."""
        located = copy.copy(self)
        located.field = self.field if field is None else field
        located.lane = self.lane if lane is None else lane
        located.context = self.context if context is None else context
        return located


class InputError(SpecvizError):
    """A prompt, a setting or an option that cannot be used as given."""

    usual_code = "invalid"


class LoadError(SpecvizError):
    """Weights that cannot be found, fetched, verified, read or placed on the device."""

    usual_code = "not-loaded"


class LayoutError(LoadError):
    """Weights that were laid out for the device and then said something else; loaded plainly they may be right."""


class PairError(SpecvizError):
    """A target and a draft that cannot work together."""

    usual_code = "no-pair"


class ContextError(SpecvizError):
    """More tokens than a context holds, or a step that its cache cannot take back."""

    usual_code = "no-room"


class TraceError(SpecvizError):
    """A trace file that is not one, or is broken at a line that the message names."""

    usual_code = "broken-trace"


@contextlib.contextmanager
def located(field: str | None = None, *, lane: int | None = None, context: str | None = None) -> Iterator[None]:
    """Whatever SpecvizError is raised inside leaves with these facts; see `SpecvizError.at`."""
    try:
        yield
    except SpecvizError as error:
        raise error.at(field, lane=lane, context=context) from error
