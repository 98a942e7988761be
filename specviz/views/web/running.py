"""Run a request: wait for the device and for the weights, then race.

What happens comes out as steps: events of the race, and before them `Waiting` sentences. Knows nothing of Gradio.
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
    """A sentence that says what the race waits for."""

    sentence: str


Step = Event | Waiting
Cancelled = Callable[[], bool]
# Takes a request and a function that says whether it was cancelled; gives batches of steps as they come.
Runner = Callable[[RaceRequest, Cancelled], Iterator[list[Step]]]


def thread_runner(store: ModelStore, hz: float) -> Runner:
    """Races run one at a time, each in its own thread; steps come at most `hz` times per second."""
    queue = DeviceQueue()

    def run(request: RaceRequest, cancelled: Cancelled) -> Iterator[list[Step]]:
        return in_thread(_in_turn(queue, steps(request, store, cancelled), cancelled), 1.0 / hz)

    return run


def _in_turn(queue: DeviceQueue, race_steps: Iterator[Step], cancelled: Cancelled) -> Iterator[Step]:
    """The steps, once the races before are over: two engines at once would slow each other down."""
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
    """The steps from the first wait to RaceFinished; they end early where the race is cancelled while it waits."""
    models = yield from wait_for_models(request, store, cancelled)
    if models is not None:
        yield from request.events(models, cancelled=cancelled)


def wait_for_models(
    request: RaceRequest, store: ModelStore, cancelled: Cancelled
) -> Generator[Waiting, None, dict[str, LanguageModel] | None]:
    """The models of a request by source, loaded where needed; None if cancelled before they were ready."""
    models: dict[str, LanguageModel] = {}
    for source in request.sources:
        loading = store.begin(source, tuple(models.values()))
        while not loading.wait(_LOOK_SECONDS):
            yield Waiting(loading.words)
            if cancelled():
                return None
        models[source] = loading.result()
    return models
