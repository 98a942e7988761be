"""Races on ZeroGPU, which lends a GPU for the seconds of one call.

The call runs in a forked process, and everything that passes is pickled: it takes a request, not models, and yields
tuples of JSON texts. No thread runs inside; the main process collects the trace. Elsewhere nothing here is used.
"""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from specviz.catalogue.catalog import Profile
from specviz.core.errors import ContextError, LoadError, SpecvizError
from specviz.models import LanguageModel
from specviz.races.request import RaceRequest
from specviz.traces import (
    Event,
    LaneFinished,
    RaceFinished,
    RaceStarted,
    Reason,
    RoundDone,
    event_from_json,
    event_to_json,
)
from specviz.views.web.model_store import ModelStore
from specviz.views.web.running import Cancelled, Runner, Step, wait_for_models

_USUAL_SECONDS = 60  # of a profile that names no costs
_BATCH = 4  # events per tuple; only between tuples is a cancel noticed
REFUSED = (
    "The GPU was not granted ({}). Ask for fewer tokens or lanes, sign in for a larger quota, "
    "or look at a recorded race meanwhile."
)


def spaces_module() -> ModuleType | None:
    """The `spaces` package on a ZeroGPU machine, else None. Import it before CUDA is touched."""
    if not os.environ.get("SPACES_ZERO_GPU"):
        return None
    try:
        return importlib.import_module("spaces")
    except ImportError:
        return None


def duration(request: RaceRequest, profile: Profile) -> int:
    """Seconds of GPU to ask for: the worst case of this race, capped. Short requests are served first."""
    if profile.zero_gpu is None:
        return _USUAL_SECONDS
    return max(1, round(profile.zero_gpu.seconds(request.max_new_tokens, request.k_max, len(request.drafts))))


def zero_runner(spaces: Any, store: ModelStore, profile: Profile) -> Runner:
    """Each race is one `@spaces.GPU` call: all lanes run on the same card, for one charge."""

    def seconds(request: RaceRequest) -> int:
        return duration(request, profile)

    @spaces.GPU(duration=seconds)
    def race_on_gpu(request: RaceRequest) -> Iterator[tuple[str, ...]]:
        yield from _texts(request, store)

    def run(request: RaceRequest, cancelled: Cancelled) -> Iterator[list[Step]]:
        waiting = wait_for_models(request, store, cancelled)
        yield from ([step] for step in waiting)
        if cancelled():
            return
        yield from _received(race_on_gpu(request), cancelled)

    return run


def _texts(request: RaceRequest, store: ModelStore) -> Iterator[tuple[str, ...]]:
    """Inside the call: events as JSON, several per tuple. A refusal is sent the same way."""
    batch: list[str] = []
    try:
        for event in request.events(_models(request, store)):
            batch.append(json.dumps(event_to_json(event)))
            if len(batch) >= _BATCH:
                yield tuple(batch)
                batch = []
    except SpecvizError as error:
        batch.append(json.dumps({"refused": str(error), "code": error.code, "field": error.field, "lane": error.lane}))
    yield tuple(batch)


def _models(request: RaceRequest, store: ModelStore) -> dict[str, LanguageModel]:
    """The models that were loaded when the process was forked. To load here would cost a thread and lent seconds."""
    models = {source: store.loaded(source) for source in request.sources}
    missing = next((source for source, model in models.items() if model is None), None)
    if missing is not None:
        raise LoadError(f"{store.title(missing)} came too late for this GPU call; press Run again.")
    return models


def _received(batches: Iterator[tuple[str, ...]], cancelled: Cancelled) -> Iterator[list[Step]]:
    """In the main process: the events again. Closing the iterator of the call stops it."""
    trace: list[Event] = []
    try:
        for batch in batches:
            steps = [_step(text) for text in batch]
            trace += steps
            yield steps
            if cancelled() and not any(isinstance(step, RaceFinished) for step in steps):
                yield cut_short(trace)
                return
    except SpecvizError:
        raise
    except Exception as error:  # a used-up quota raises several types, gradio's Error among them
        raise ContextError(REFUSED.format(error)) from error
    finally:
        close = getattr(batches, "close", None)
        if close is not None:
            close()


def cut_short(trace: list[Event]) -> list[Event]:
    """The events that end a trace whose engine was stopped from outside."""
    texts: dict[str, str] = {}
    for event in trace:
        match event:
            case RaceStarted(header):
                texts = {lane.name: "" for lane in header.lanes}
            case RoundDone(lane, round_):
                texts[lane] += "".join(token.text or "" for token in round_.kept)
            case LaneFinished(lane):
                del texts[lane]
    return [*(LaneFinished(lane, Reason.CANCELLED, text) for lane, text in texts.items()), RaceFinished(True)]


def _step(text: str) -> Step:
    value = json.loads(text)
    if "refused" in value:
        raise ContextError(value["refused"], code=value["code"], field=value["field"], lane=value["lane"])
    return event_from_json(value)
