"""A whole distillation: text from the target, a draft from the text, its worth on held-out prompts, its card."""

from __future__ import annotations

import gc
import tempfile
from pathlib import Path
from typing import Any

from specviz.catalogue.catalog import load_catalog
from specviz.core.errors import InputError
from specviz.distil.card import check_folder, write_card
from specviz.distil.corpus import Corpus, is_begun
from specviz.distil.evaluation import evaluate, rows
from specviz.distil.job import Job
from specviz.distil.kinds import kind_named
from specviz.distil.plan import Plan, card_facts, race_facts, training_minutes
from specviz.distil.synthesise import facts_of, is_enough, synthesise
from specviz.distil.teacher import Teacher, load_teacher
from specviz.sources import Progress
from specviz.sources.loader import load
from specviz.sources.progress import part

TEXT = "text"
_TRAINED_AT = 0.9  # of the progress shown; the rest is the evaluation


def run_distil(plan: Plan, progress: Progress) -> dict[str, Any]:
    """Make the draft; returns the card's facts. Run again after a kill, it goes on. Raises SpecvizError in words."""
    kind = kind_named(plan.kind)
    check_folder(plan.out, plan.kind)
    _make_folder(plan.out)
    teacher = load_teacher(plan.source, plan.device, plan.dtype, part(progress, 0.0, 0.02))
    share = kind.text_share
    with _corpus(plan, teacher, 60 * share * plan.minutes, part(progress, 0.02, share * _TRAINED_AT)) as corpus:
        bar, minutes = part(progress, share * _TRAINED_AT, _TRAINED_AT), training_minutes(plan, share)
        job = Job(teacher, corpus, plan.out, 60 * minutes, plan.seed, bar, plan.vocabulary, plan.megabytes, plan.steps)
        trained = kind.train(job)
        facts = card_facts(plan, teacher, corpus, minutes, trained.facts.get("steps"))
        facts |= {"draft": trained.facts, "curve": list(trained.curve), "curve_note": trained.curve_note}
        held_out = corpus.held_out()[: plan.held_out]
    del job, teacher  # the module's weights make room for the target's
    gc.collect()
    target = load(plan.source, plan.device, fallback=_fallback(plan.source))
    worth = evaluate(target, trained.trials, held_out, part(progress, _TRAINED_AT, 1.0))
    facts |= {"held_out": race_facts(target, len(held_out)), "worth": rows(worth)}
    write_card(plan.out, facts)
    return facts


def _make_folder(out: Path) -> None:
    """The draft's folder, before anything long begins."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    except (OSError, ValueError) as error:  # a name that no folder can have
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"The draft cannot be written to {out} ({reason}); choose another folder.") from error


def _corpus(plan: Plan, teacher: Teacher, seconds: float, progress: Progress) -> Corpus:
    """The text, as much as is wanted; what is there already, and what it took, counts."""
    folder = plan.text or plan.out / TEXT
    facts = facts_of(teacher, plan.recipe, plan.seed)
    if is_begun(folder):
        there = _sayable(Corpus(folder), folder, teacher)
        if is_enough(there, seconds, plan.tokens):
            return _same_writer(there, folder, facts)
    corpus = Corpus(folder, facts)
    try:
        _sayable(corpus, folder, teacher)
        synthesise(teacher, corpus, plan.recipe, seconds, plan.tokens, progress)
    except BaseException:  # a Ctrl-C too: another process may then write
        corpus.close()
        raise
    return corpus


def _sayable(corpus: Corpus, folder: Path, teacher: Teacher) -> Corpus:
    if corpus.largest_id >= teacher.vocabulary:
        raise InputError(f"The text in {folder} holds tokens that {teacher.name} does not have; choose another folder.")
    return corpus


def _same_writer(corpus: Corpus, folder: Path, facts: dict[str, Any]) -> Corpus:
    for name in ("target", "name", "revision", "seed"):
        if corpus.facts.get(name) != facts[name]:
            raise InputError(
                f"The text in {folder} was written with {name} {corpus.facts.get(name)!r}, not {facts[name]!r}; "
                "choose another folder."
            )
    return corpus


def _fallback(source: str) -> str | None:
    known = load_catalog().model_of(source)
    return known.fallback if known else None
