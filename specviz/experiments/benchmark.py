"""A whole benchmark: its parts in order, and one record of everything that was measured."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from specviz.core.errors import InputError
from specviz.drafting import make_draft
from specviz.experiments.bench_parts import NAMES, USUAL, part
from specviz.experiments.bench_plan import BenchPlan
from specviz.experiments.bench_report import PartResult, Table
from specviz.experiments.harness import Harness, Needs, Skipped
from specviz.experiments.json_form import inlined
from specviz.experiments.machine_facts import MachineFacts, ModelFacts
from specviz.models.device import pick_device, use_available_cores
from specviz.sources import Progress

SCHEMA = 1
_ALONE = "drafts"  # measured on its own, since it takes as long as its drafts need


@dataclass(frozen=True, slots=True)
class BenchSettings:
    k: int
    temperature: float
    dtype: str
    budget_seconds: float
    repeats: int


@dataclass(frozen=True, slots=True)
class ComparisonSettings:
    drafts: tuple[str, ...]
    repeats: int
    tokens: int
    temperature: float
    dtype: str


@dataclass(frozen=True, slots=True)
class TimedPart:
    result: PartResult = inlined()
    took_seconds: float


@dataclass(frozen=True, slots=True)
class BenchResult:
    """Everything that was measured, by part; `skipped` says why a part could not run."""

    schema: int
    machine: MachineFacts
    target: ModelFacts
    draft: ModelFacts | None
    settings: BenchSettings | ComparisonSettings
    parts: Mapping[str, TimedPart]
    skipped: Mapping[str, str]
    seconds: float

    def facts(self) -> Iterator[str]:
        """What was measured on what, in lines."""
        machine = self.machine
        threads = f"{machine.threads} threads, load {machine.load_average or 0:.1f} before"
        yield f"{machine.device_name} ({machine.device}), {machine.cores} cores, {threads}"
        yield ", ".join(f"{name} {version}" for name, version in machine.versions.items())
        for role, model in (("target", self.target), ("draft", self.draft)):
            if model and model.name:
                size = f"{model.parameters / 1e6:,.0f} M parameters, {model.bytes / 1e6:,.0f} MB"
                yield f"{role}: {model.name}, {size}, {model.dtype}, {model.execution} passes"

    def tables(self) -> Iterator[Table]:
        for timed in self.parts.values():
            yield from timed.result.tables()

    def closing(self) -> Iterator[str]:
        """Why parts are missing, what failed, and how long it took."""
        yield from (f"{name} was left out: {reason}" for name, reason in self.skipped.items())
        for timed in self.parts.values():
            yield from timed.result.notes()
        yield f"Medians, with the quartiles in brackets. Took {self.seconds / 60:.1f} minutes."


def chosen_parts(only: Sequence[str], peers: bool) -> tuple[str, ...]:
    """The parts to run, in their order. Raises InputError for an unknown name."""
    unknown = next((name for name in only if name not in NAMES), None)
    if unknown is not None:
        raise InputError(f"There is no part '{unknown}' of the benchmark; choose from: {', '.join(NAMES)}.")
    wanted = {*(only or USUAL), *(["peers"] if peers else [])}
    if _ALONE in wanted and len(wanted) > 1:
        raise InputError(f"The part '{_ALONE}' is measured on its own; leave the others out.")
    return tuple(name for name in NAMES if name in wanted)


def run_bench(
    plan: BenchPlan, names: Sequence[str], tell: Callable[[str], None], progress: Progress | None = None
) -> BenchResult:
    """Run the parts of these names. Raises SpecvizError where the target or the draft cannot be used at all."""
    start = time.perf_counter()
    use_available_cores()
    machine, harness = MachineFacts.of(pick_device(plan.device)), Harness(plan, tell, progress)
    _check(plan, names, harness)
    models = {"target": ModelFacts(plan.target), "draft": ModelFacts(plan.draft) if plan.draft else None}
    parts, skipped = {}, {}
    for name in names:
        harness.keep(part(name).NEEDS)
        try:
            parts[name] = _run(name, harness)
        except Skipped as reason:
            skipped[name] = str(reason)
            tell(f"{name} is left out: {reason}")
        models |= {role: ModelFacts.of(model) for role, model in harness.loaded.items()}
    harness.keep(Needs.NOTHING)
    return BenchResult(
        SCHEMA,
        machine,
        **models,
        settings=_settings(plan),
        parts=parts,
        skipped=skipped,
        seconds=time.perf_counter() - start,
    )


def _run(name: str, harness: Harness) -> TimedPart:
    harness.tell(f"{name}: {part(name).TITLE}")
    start = time.perf_counter()
    return TimedPart(part(name).measure(harness), time.perf_counter() - start)


def _check(plan: BenchPlan, names: Sequence[str], harness: Harness) -> None:
    """Refuse what cannot work before anything is timed, and fetch what is not on this machine yet."""
    for source in filter(None, (plan.target, plan.draft)):
        harness.checkpoint(source)
    if plan.draft is not None and any(part(name).NEEDS is Needs.MODULES for name in names):
        make_draft("draft-model", harness.target, draft_model=harness.draft)


def _settings(plan: BenchPlan) -> BenchSettings | ComparisonSettings:
    if plan.comparison is None:
        return BenchSettings(plan.k, 0.0, plan.dtype, plan.effort.seconds, plan.effort.repeats)
    drafts = tuple(draft.spell() for draft in plan.comparison.drafts)
    settings = plan.comparison.settings
    return ComparisonSettings(
        drafts, plan.comparison.repeats, settings.max_new_tokens, settings.temperature, plan.dtype
    )
