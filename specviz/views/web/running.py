"""A request becomes a race: weights are waited for, lanes are made, and what happens comes out as steps.

A step is an Event of the race, or a `Waiting`: a sentence for as long as nothing races yet. Knows nothing of Gradio.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass

from specviz.metrics import counted
from specviz.models import LanguageModel
from specviz.races.request import RaceRequest
from specviz.traces import Event
from specviz.views.web.device_queue import DeviceQueue
from specviz.views.web.model_store import ModelStore
from specviz.views.web.worker import in_thread

_LOOK_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Waiting:
    """What is being waited for, in words."""

    sentence: str


Step = Event | Waiting
Cancelled = Callable[[], bool]
# A request and the question whether it is still wanted -> batches of steps, as they come.
Runner = Callable[[RaceRequest, Cancelled], Iterator[list[Step]]]


def thread_runner(store: ModelStore, hz: float) -> Runner:
    """Races run in a thread of their own, one at a time; their steps come at most `hz` times a second."""
    queue = DeviceQueue()

    def run(request: RaceRequest, cancelled: Cancelled) -> Iterator[list[Step]]:
        return in_thread(_in_turn(queue, steps(request, store, cancelled), cancelled), 1.0 / hz)

    return run


def _in_turn(queue: DeviceQueue, race_steps: Iterator[Step], cancelled: Cancelled) -> Iterator[Step]:
    """The steps, once those who came before are done: two engines at once would slow each other."""
    place = queue.join()
    try:
        while not queue.wait(place, _LOOK_SECONDS):
            ahead = queue.ahead(place)
            yield Waiting(f"The device is busy: {counted(ahead, 'race')} before yours")
            if cancelled():
                return
        yield from race_steps
    finally:
        queue.leave(place)


def steps(request: RaceRequest, store: ModelStore, cancelled: Cancelled) -> Iterator[Step]:
    """Everything from the first wait to RaceFinished; nothing more once `cancelled` while waiting."""
    models = yield from wait_for_models(request, store, cancelled)
    if models is not None:
        yield from request.events(models, cancelled=cancelled)


def wait_for_models(
    request: RaceRequest, store: ModelStore, cancelled: Cancelled
) -> Generator[Waiting, None, dict[str, LanguageModel] | None]:
    """The models of a request by source, loaded where they are not; None if cancelled before they were there."""
    models: dict[str, LanguageModel] = {}
    for source in request.sources:
        loading = store.begin(source, tuple(models.values()))
        while not loading.wait(_LOOK_SECONDS):
            yield Waiting(loading.words)
            if cancelled():
                return None
        models[source] = loading.result()
    return models
