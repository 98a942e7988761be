"""A whole benchmark: its parts in order, each given what it needs, and one object with everything that was measured."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from specviz.core.errors import InputError
from specviz.drafting import make_draft
from specviz.experiments.bench_context import Bed, Plan, Skipped, name_of
from specviz.experiments.bench_parts import NAMES, NEED_MODULES, NEED_TARGET, USUAL, part
from specviz.experiments.machine_facts import machine
from specviz.models import LanguageModel
from specviz.models.device import pick_device, use_available_cores
from specviz.sources import Progress

SCHEMA = 1


def chosen_parts(only: Sequence[str], peers: bool) -> tuple[str, ...]:
    """The parts to run, in their order. Raises InputError for a name that is none."""
    unknown = next((name for name in only if name not in NAMES), None)
    if unknown is not None:
        raise InputError(f"There is no part '{unknown}' of the benchmark; choose from: {', '.join(NAMES)}.")
    wanted = {*(only or USUAL), *(["peers"] if peers else [])}
    if "drafts" in wanted and len(wanted) > 1:
        raise InputError("The part 'drafts' is measured on its own; leave the others out.")
    return tuple(name for name in NAMES if name in wanted)


def run_bench(
    plan: Plan, parts: Sequence[str], tell: Callable[[str], None], progress: Progress | None = None
) -> dict[str, Any]:
    """Run `parts` and give one JSON object: machine, models, settings, parts by name, and why any was skipped.

    Raises SpecvizError, in words, where the target or the draft cannot be used at all.
    """
    start = time.perf_counter()
    use_available_cores()
    result = _begin(plan)
    bed = Bed(plan, tell, progress)
    _check(plan, parts, bed)
    for name in parts:
        _release(bed, name)
        tell(f"{name}: {part(name).TITLE}")
        begun = time.perf_counter()
        try:
            measured = part(name).measure(bed)
        except Skipped as reason:
            result["skipped"][name] = str(reason)
            tell(f"{name} is left out: {reason}")
            continue
        result["parts"][name] = {**measured, "took_seconds": time.perf_counter() - begun}
        for role, model in bed.loaded.items():
            result[role] = _described(model)
    bed.release_models()
    return {**result, "seconds": time.perf_counter() - start}


def _begin(plan: Plan) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "machine": machine(pick_device(plan.device)),
        "target": {"source": plan.target},
        "draft": {"source": plan.draft} if plan.draft else None,
        "settings": _settings(plan),
        "parts": {},
        "skipped": {},
    }


def _check(plan: Plan, parts: Sequence[str], bed: Bed) -> None:
    """Refuse what cannot work before anything is timed, and fetch what is not on this machine yet."""
    for source in filter(None, (plan.target, plan.draft)):
        bed.checkpoint(source)
    if plan.draft is not None and set(parts) & set(NEED_MODULES):
        make_draft("draft-model", bed.target, draft_model=bed.draft)


def _release(bed: Bed, name: str) -> None:
    if name not in NEED_TARGET:
        bed.release_models()
    elif name not in NEED_MODULES:
        bed.release_modules()


def _described(model: LanguageModel) -> dict[str, Any]:
    info = model.info
    return {
        "source": info.source,
        "name": info.name,
        "revision": info.revision,
        "parameters": info.parameters,
        "bytes": info.bytes,
        "execution": info.execution,
        "dtype": name_of(model.dtype),
        "load_seconds": model.load_seconds,
        "warmup_seconds": model.warmup_seconds,
    }


def _settings(plan: Plan) -> dict[str, Any]:
    if plan.contest is not None:
        return {**plan.contest.facts, "dtype": plan.dtype}
    effort = plan.effort
    return {
        "k": plan.k,
        "temperature": 0.0,
        "dtype": plan.dtype,
        "budget_seconds": effort.seconds,
        "repeats": effort.repeats,
    }
