"""A whole distillation: text from the target, a draft from the text, its results on held-out prompts, its card."""

from __future__ import annotations

import gc
import tempfile
from pathlib import Path
from typing import Any

from specviz.catalogue.model_loader import catalogue_loader
from specviz.core.errors import InputError
from specviz.distil.card import card_facts, check_folder, write_card
from specviz.distil.corpus import Corpus, is_begun
from specviz.distil.evaluation import evaluate, race_facts, rows
from specviz.distil.job import Job
from specviz.distil.kinds import kind_named
from specviz.distil.plan import Plan
from specviz.distil.synthesis import corpus_facts, is_enough, synthesise
from specviz.distil.teacher import Teacher, load_teacher
from specviz.sources import Progress
from specviz.sources.progress import part

_RACES_AT = 0.9  # of the progress shown


def run_distil(plan: Plan, progress: Progress) -> dict[str, Any]:
    """Make the draft; returns the facts of its card. After a kill, running it again resumes. Raises SpecvizError."""
    kind = kind_named(plan.kind)
    check_folder(plan.out, plan.kind)
    _make_folder(plan.out)
    teacher = load_teacher(plan.source, plan.device, plan.dtype, part(progress, 0.0, 0.02))
    share, split = kind.text_share, kind.text_share * _RACES_AT
    with written_text(plan, teacher, 60 * share * plan.minutes, part(progress, 0.02, split)) as corpus:
        minutes = plan.minutes if plan.tokens is not None else (1 - share) * plan.minutes
        job = _job(plan, teacher, corpus, 60 * minutes, part(progress, split, _RACES_AT))
        trained = kind.train(job)
        facts = card_facts(plan, teacher, corpus, minutes, trained)
        held_out = corpus.held_out()[: plan.held_out]
    del job, teacher  # the module's weights make room for the target's
    gc.collect()
    target = catalogue_loader(plan.device).load(plan.source)
    results = evaluate(target, trained, held_out, part(progress, _RACES_AT, 1.0))
    facts |= {"held_out": race_facts(target, len(held_out)), "worth": rows(results)}
    write_card(plan.out, facts)
    return facts


def _job(plan: Plan, teacher: Teacher, corpus: Corpus, seconds: float, progress: Progress) -> Job:
    return Job(
        teacher,
        corpus,
        plan.out,
        seconds,
        plan.seed,
        progress,
        vocabulary=plan.vocabulary,
        megabytes=plan.megabytes,
        steps=plan.steps,
    )


def _make_folder(out: Path) -> None:
    """Make the draft's folder before anything long begins."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    except (OSError, ValueError) as error:  # ValueError: a name that no folder can have
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"The draft cannot be written to {out} ({reason}); choose another folder.") from error


def written_text(plan: Plan, teacher: Teacher, seconds: float, progress: Progress) -> Corpus:
    """The plan's text, written as far as it is missing. Text that is there, and the time it took, counts."""
    folder = plan.text_folder
    facts = corpus_facts(teacher, plan.recipe, plan.seed)
    if is_begun(folder):
        there = Corpus(folder)
        _check_ids(there, folder, teacher)
        if is_enough(there, seconds, plan.tokens):
            _check_writer(there, folder, facts)
            return there
    corpus = Corpus(folder, facts)
    try:
        _check_ids(corpus, folder, teacher)
        synthesise(teacher, corpus, plan.recipe, seconds, plan.tokens, progress)
    except BaseException:  # a Ctrl-C too: another process may then write
        corpus.close()
        raise
    return corpus


def _check_ids(corpus: Corpus, folder: Path, teacher: Teacher) -> None:
    if corpus.largest_id >= teacher.vocabulary:
        raise InputError(f"The text in {folder} holds tokens that {teacher.name} does not have; choose another folder.")


def _check_writer(corpus: Corpus, folder: Path, facts: dict[str, Any]) -> None:
    """Complete text may have been written with another recipe or dtype, but not by another target or seed."""
    for name in ("target", "name", "revision", "seed"):
        if corpus.facts.get(name) != facts[name]:
            raise InputError(
                f"The text in {folder} was written with {name} {corpus.facts.get(name)!r}, not {facts[name]!r}; "
                "choose another folder."
            )
