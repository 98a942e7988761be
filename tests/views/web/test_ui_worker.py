"""The thread between the engine and the page: nothing is lost, nothing waits, and leaving ends it."""

import contextvars
import threading
import time

import pytest

from specviz.views.web.device_queue import DeviceQueue
from specviz.views.web.worker import in_thread

SECONDS = 10.0


def wait_until(true):
    end = time.monotonic() + SECONDS
    while not true():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_all_items_arrive_in_order():
    batches = list(in_thread(iter(range(1000)), 0.01))
    assert [item for batch in batches for item in batch] == list(range(1000))


def test_a_slow_reader_does_not_slow_the_source():
    times = []

    def source():
        for item in range(20):
            times.append(time.monotonic())
            yield item

    reader = in_thread(source(), 0.001)
    next(reader)
    wait_until(lambda: len(times) == 20)
    assert sum(len(batch) for batch in reader) <= 20


def test_what_the_source_raises_comes_after_its_items():
    def source():
        yield 1
        raise ValueError("broken")

    seen = []
    with pytest.raises(ValueError, match="broken"):
        for batch in in_thread(source(), 0.005):
            seen += batch
    assert seen == [1]


def test_leaving_ends_the_source_after_its_next_item_and_closes_it():
    closed = threading.Event()
    made = []

    def source():
        try:
            while True:
                made.append(time.sleep(0.005))
                yield
        finally:
            closed.set()

    reader = in_thread(source(), 0.01)
    next(reader)
    reader.close()
    count = len(made)
    assert closed.wait(SECONDS)
    assert len(made) <= count + 2


def test_the_source_sees_the_readers_context():
    name = contextvars.ContextVar("name", default="nobody")

    def source():
        yield name.get()

    name.set("visitor")
    assert [item for batch in in_thread(source(), 0.01) for item in batch] == ["visitor"]


def test_the_first_in_line_has_the_device_and_the_others_know_their_place():
    queue = DeviceQueue()
    first, second, third = (queue.join() for _ in range(3))
    assert [queue.ahead(place) for place in (first, second, third)] == [0, 1, 2]
    assert queue.wait(first, 0)
    assert not queue.wait(second, 0)
    queue.leave(second)
    assert queue.ahead(third) == 1
    queue.leave(first)
    assert queue.wait(third, 0)
