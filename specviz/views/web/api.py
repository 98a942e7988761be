"""The endpoints for programs: `/race` streams a race's events as JSON objects, `/summary` gives its numbers.

They run what the page and the command line run: the same arguments and seed give the same counts.
"""

import contextlib
import inspect
import json
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from itertools import chain
from typing import Any

import gradio as gr
from pydantic import RootModel

from specviz.core.errors import InputError, SpecvizError
from specviz.metrics import summarize
from specviz.races.request import RaceRequest, make_request
from specviz.traces import Event, RaceStarted, event_to_json
from specviz.views.report import lane_json, race_report
from specviz.views.web.offer import Offer
from specviz.views.web.running import Runner, Waiting

_MESSAGE_SECONDS = 0.25
Ask = Callable[..., RaceRequest]


def add_api(offer: Offer, runner: Runner, **queueing: Any) -> None:
    """Add both endpoints to the Blocks that is being built."""
    ask = _asker(offer)

    @_asking(ask, list)
    def race(*values: Any, **named: Any) -> Iterator[_Message]:
        """Race standard decoding against one lane per draft; streams lists of the trace's events, one object per event.

        A list comes four times a second and holds what happened since the last one. `drafts` are spelt as on the
        command line: "prompt-lookup:k=8", "draft-model=hub:ID:k=4". The message of an error is a sentence; its title
        is a JSON object with "code", "field" and "lane".
        """
        with _refusals():
            for events in _batches(runner, ask(*values, **named)):
                yield _Message([event_to_json(event) for event in events])

    @_asking(ask, dict)
    def summary(*values: Any, **named: Any) -> dict:
        """Race as `/race` does; returns every number of each lane by its field, and the report in words."""
        with _refusals():
            request = ask(*values, **named)
            return _summary(request, chain.from_iterable(_batches(runner, request)))

    gr.api(race, api_name="race", **queueing)
    gr.api(summary, api_name="summary", **queueing)


def _asker(offer: Offer) -> Ask:
    """What both endpoints take, turned into a request that this machine allows."""

    def ask(
        prompt: str,
        drafts: list[str] = ["prompt-lookup"],  # noqa: B006, shown as the default and never changed
        target: str = "",
        k: int = 5,
        max_new_tokens: int = 128,
        temperature: float = 0.0,
        seed: int = 0,
        chat: bool = True,
        top_k: int = 0,
        top_p: float = 1.0,
        repetition_penalty: float = 1.0,
        presence_penalty: float = 0.0,
        frequency_penalty: float = 0.0,
        stop: list[str] = [],  # noqa: B006
        ignore_eos: bool = False,
        telemetry: bool = True,
    ) -> RaceRequest:
        settings = {
            "k": k,
            "max_new_tokens": max_new_tokens,
            "temperature": temperature,
            "seed": seed,
            "top_k": top_k,
            "top_p": top_p,
            "repetition_penalty": repetition_penalty,
            "presence_penalty": presence_penalty,
            "frequency_penalty": frequency_penalty,
            "stop": stop,
            "ignore_eos": ignore_eos,
            "telemetry": telemetry,
        }
        if not isinstance(chat, bool):
            raise InputError(f"must be true or false, not {chat!r}.", subject="chat", code="not-a-truth", field="chat")
        return make_request(prompt, drafts, target or offer.target, settings, chat, offer.limits)

    return ask


def _asking(ask: Ask, returns: type) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give an endpoint the parameters of `ask`; Gradio reads them from signature and annotations."""

    def dress(endpoint: Callable[..., Any]) -> Callable[..., Any]:
        endpoint.__signature__ = inspect.signature(ask).replace(return_annotation=returns)
        endpoint.__annotations__ = {**ask.__annotations__, "return": returns}
        return endpoint

    return dress


class _Message(RootModel[list[dict]]):
    """Events that Gradio sends whole.

    Between two plain lists it sends what differs, and gets nested lists of different lengths wrong.
    """


@contextlib.contextmanager
def _refusals() -> Iterator[None]:
    """A refusal reaches the client as its sentence; its title carries code, field and lane."""
    try:
        yield
    except SpecvizError as error:
        facts = {"code": error.code, "field": error.field, "lane": error.lane}
        raise gr.Error(str(error), title=json.dumps(facts), print_exception=False) from error


def _batches(runner: Runner, request: RaceRequest) -> Iterator[list[Event]]:
    """The events of a race, a list a message; a client that leaves closes this iterator, and with it the race."""
    events: list[Event] = []
    sent = 0.0
    for steps in runner(request, lambda: False):
        events += [step for step in steps if not isinstance(step, Waiting)]
        if events and time.monotonic() - sent > _MESSAGE_SECONDS:
            yield events
            events, sent = [], time.monotonic()
    if events:
        yield events


def _summary(request: RaceRequest, events: Iterable[Event]) -> dict[str, Any]:
    """Lanes by name, the report that the page shows, the settings that lanes share, and what they ran on."""
    trace = tuple(events)
    header = next(event.header for event in trace if isinstance(event, RaceStarted))
    summaries = summarize(trace)
    return {
        "lanes": {name: lane_json(summary) for name, summary in summaries.items()},
        "report": race_report(trace, summaries).as_json(),
        "settings": asdict(request.settings),
        "target": header.target.name,
        "device": header.device,
        "dtype": header.dtype,
    }
