"""A race: several lanes decode one prompt, each on a clock that counts only its own compute.

Lanes never compute at the same moment, because they would slow each other down: the lane whose clock is furthest behind
runs the next round. The stream of events is the trace; a slow reader does not change it.
"""

from __future__ import annotations

import contextlib
import platform
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib import metadata

import torch

from specviz.core.errors import ContextError, InputError, SpecvizError
from specviz.core.settings import Settings
from specviz.decoding.engine import Decoding, Outcome, capacity_for, check_prompt
from specviz.drafting import Strategy
from specviz.models import LanguageModel
from specviz.models.calibration import known_curve, measure_curve
from specviz.models.device import device_name
from specviz.models.stopwatch import synchronize
from specviz.traces import (
    STANDARD,
    Calibrated,
    Event,
    Header,
    LaneFinished,
    LaneInfo,
    LaneStarted,
    RaceFinished,
    RaceStarted,
    Reason,
    Round,
    RoundDone,
)

SERVED = "served"
MAX_LANES = 8


@dataclass(frozen=True, slots=True)
class Lane:
    """What one lane runs: a strategy for a target under settings, or `rounds` from elsewhere (a served lane).

    A served lane needs no target and no strategy; its rounds carry their own times. `note` is shown with the lane.
    """

    name: str
    target: LanguageModel | None = None
    strategy: Strategy | None = None
    settings: Settings = Settings()
    rounds: Callable[[], Iterator[Round]] | None = None
    note: str | None = None


@dataclass(slots=True)
class _Runner:
    """A running lane. `clock` adds up its rounds, `wall_seconds` its turns without telemetry."""

    lane: Lane
    rounds: Iterator[Round]
    decoding: Decoding | None
    clock: float = 0.0
    wall_seconds: float = 0.0
    outcome: Outcome | None = None

    def turn(self) -> Round | None:
        """The lane's next round, or None at its end; `outcome` then says how it ended."""
        start = time.perf_counter()
        try:
            done = next(self.rounds)
        except StopIteration as stop:
            self.outcome = stop.value or Outcome(Reason.LENGTH, None, None)
            return None
        except Exception as error:  # an error of a strategy or a server must not end the other lanes
            self.fail(error)
            return None
        self.wall_seconds += time.perf_counter() - start - (done.telemetry_seconds or 0.0)
        self.clock += done.seconds
        return done

    def fail(self, error: BaseException) -> None:
        """End the lane with the error and with what it wrote so far."""
        so_far = self.decoding.outcome() if self.decoding else Outcome(Reason.ERROR, None, None)
        self.outcome = replace(so_far, reason=Reason.ERROR, message=_message(error))

    def finished(self) -> LaneFinished:
        end = self.outcome or (self.decoding.outcome() if self.decoding else Outcome(Reason.CANCELLED, None, None))
        return LaneFinished(self.lane.name, end.reason, end.text, end.tail, end.message, self.wall_seconds)


def race(
    lanes: Sequence[Lane],
    prompt_ids: Sequence[int],
    *,
    prompt: str | None = None,
    chat: bool = False,
    mode: str = "interleaved",
    calibrate: bool = True,
    cancelled: Callable[[], bool] = lambda: False,
) -> Iterator[Event]:
    """Run `lanes` on `prompt_ids` and yield the events; closing the iterator stops the work.

    The first lane is standard decoding and is named `standard`. `mode` "sequential" runs one lane after the other.
    `cancelled` is asked before every round; the lanes end as cancelled once it returns True. `calibrate` measures the
    verify curve after the race where it is unknown. Raises SpecvizError before the first event.
    """
    lanes = tuple(lanes)
    ids = _check(lanes, prompt_ids, mode)
    target = lanes[0].target
    capacity = max(capacity_for(target, ids, lane.settings) for lane in lanes if lane.rounds is None)
    k_max = max(lane.settings.k for lane in lanes)
    runners: list[_Runner] = []
    try:
        prefill_seconds = _open_or_refuse(lanes, ids, capacity, runners)
        header = _header(lanes, ids, prompt, chat, mode)
        yield RaceStarted(replace(header, prefill_seconds=prefill_seconds, curve=known_curve(target, k_max)))
        for runner in runners:
            yield _start(runner)
        stopped = yield from _run(runners, mode, cancelled)
    finally:
        for runner in runners:
            _close(runner)
    if calibrate and not stopped and known_curve(target, k_max) is None:
        with contextlib.suppress(RuntimeError, SpecvizError):  # the race is whole, it only lacks its prediction
            yield Calibrated(measure_curve(target, k_max, capacity))
    yield RaceFinished(stopped)


def _check(lanes: Sequence[Lane], prompt_ids: Sequence[int], mode: str) -> tuple[int, ...]:
    if mode not in ("interleaved", "sequential"):
        raise InputError(f"A race runs 'interleaved' or 'sequential', not {mode!r}.")
    if not all(isinstance(lane, Lane) for lane in lanes):
        raise InputError("A race takes lanes: Lane(name, target, strategy, settings), the strategy from make_draft.")
    first = lanes[0] if lanes else Lane("")
    if first.name != STANDARD or first.rounds is not None or first.strategy is None or first.strategy.drafts:
        raise InputError("The first lane of a race is standard decoding (the draft 'none') and is named 'standard'.")
    names = [lane.name for lane in lanes]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"Two lanes are called '{twice}'; give each its own name.")
    if len(lanes) > MAX_LANES:
        raise InputError(f"A race holds at most {MAX_LANES} lanes; {len(lanes)} were asked for.")
    local = [lane for lane in lanes if lane.rounds is None]
    bare = next((lane for lane in local if lane.target is None or lane.strategy is None), None)
    if bare is not None:
        raise InputError(f"The lane '{bare.name}' needs a target and a strategy, or rounds of its own.")
    if any(lane.target is not lanes[0].target for lane in local):
        raise InputError("All lanes of a race have the same target; start another race for another target.")
    return check_prompt(lanes[0].target, prompt_ids)


def _open_or_refuse(lanes: Sequence[Lane], ids: tuple[int, ...], capacity: int, runners: list[_Runner]) -> float:
    try:
        return _open(lanes, ids, capacity, runners)
    except (RuntimeError, MemoryError) as error:  # torch reports a full memory as a RuntimeError
        raise ContextError(_message(error)) from error


def _open(lanes: Sequence[Lane], ids: tuple[int, ...], capacity: int, runners: list[_Runner]) -> float:
    """Open every lane and prefill the prompt once for all of them; returns the seconds of that prefill."""
    target = lanes[0].target
    with target.open(capacity) as shared:
        start = time.perf_counter()
        shared.prefill(ids[:-1])
        synchronize(target.device)
        seconds = time.perf_counter() - start
        for lane in lanes:
            if lane.rounds is not None:
                runners.append(_Runner(lane, iter(lane.rounds()), None))
                continue
            decoding = Decoding(target, lane.strategy, ids, lane.settings, capacity)
            runners.append(_Runner(lane, _steps(decoding), decoding))
            decoding.prefill(shared)
    return seconds


def _steps(decoding: Decoding) -> Generator[Round, None, Outcome]:
    while decoding.reason is None:
        yield decoding.step()
    return decoding.outcome()


def _start(runner: _Runner) -> LaneStarted:
    if runner.decoding is None:
        return LaneStarted(runner.lane.name)
    model = runner.lane.strategy.model if runner.lane.strategy else None
    try:
        seconds = runner.decoding.prefill_draft()
    except Exception as error:  # a draft that cannot read the prompt ends only its own lane
        runner.fail(error)
        seconds = None
    return LaneStarted(runner.lane.name, seconds, None if model is None else model.warmup_seconds)


def _run(runners: list[_Runner], mode: str, cancelled: Callable[[], bool]) -> Generator[Event, None, bool]:
    """Run turns until every lane has ended; returns whether the race was cancelled."""
    active = list(runners)
    while active:
        if cancelled():
            for runner in active:
                yield runner.finished()
            return True
        runner = active[0] if mode == "sequential" else min(active, key=lambda item: item.clock)
        done = runner.turn() if runner.outcome is None else None
        if done is not None:
            yield RoundDone(runner.lane.name, done)
        if done is None or (runner.decoding is not None and runner.decoding.reason is not None):
            active.remove(runner)
            _close(runner)
            yield runner.finished()
    return False


def _close(runner: _Runner) -> None:
    if runner.decoding is not None:
        runner.decoding.close()
    elif hasattr(runner.rounds, "close"):
        runner.rounds.close()


def _header(lanes: Sequence[Lane], ids: tuple[int, ...], prompt: str | None, chat: bool, mode: str) -> Header:
    target = lanes[0].target
    return Header(
        prompt=prompt,
        prompt_ids=ids,
        target=target.info,
        lanes=tuple(_lane_info(lane) for lane in lanes),
        device=str(target.device),
        device_name=device_name(target.device),
        dtype=str(target.dtype).removeprefix("torch."),
        threads=torch.get_num_threads(),
        versions=_versions(),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        chat=chat,
        mode=mode,
        load_seconds=target.load_seconds,
        warmup_seconds=target.warmup_seconds,
    )


def _lane_info(lane: Lane) -> LaneInfo:
    strategy = lane.strategy
    if strategy is None:
        return LaneInfo(lane.name, SERVED, "Served elsewhere", lane.settings, note=lane.note)
    model = strategy.model
    return LaneInfo(
        name=lane.name,
        draft=strategy.name,
        label=strategy.label,
        settings=lane.settings,
        options=strategy.option_values,
        draft_model=None if model is None else replace(model.info, role="draft"),
        note=" ".join(filter(None, (lane.note, strategy.note))) or None,
        tree=strategy.tree,
        sources=strategy.sources,
    )


def _versions() -> dict[str, str]:
    packages = ("torch", "transformers", "tokenizers")
    return {"python": platform.python_version(), **{name: metadata.version(name) for name in packages}}


def _message(error: BaseException) -> str:
    if isinstance(error, SpecvizError):
        return str(error)
    if isinstance(error, torch.OutOfMemoryError | MemoryError) or "memory" in str(error):
        return "The device ran out of memory; shorten the run, use fewer lanes or choose smaller models."
    return f"The lane failed: {error}"
