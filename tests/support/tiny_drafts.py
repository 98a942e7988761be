"""Trained drafts with random weights: as exact as good ones, and made in a moment for any tiny target."""

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

import torch

from specviz import make_draft
from specviz.drafting import strategies
from specviz.drafting.draft_weights import IDS, save_weights
from specviz.drafting.feature_pass import HeadShape, width_of
from specviz.drafting.target_facts import target_facts

SPREAD = 0.4


def make_strategy(name, model, draft_model=None, **options):
    """`make_draft`, with a draft model where the strategy takes one, and random weights where it needs a file."""
    if name in _FILES and "weights" not in options:
        options["weights"] = str(_FILES[name](model, _folder() / f"{name}-{id(model)}-{model.vocabulary}.safetensors"))
    return make_draft(name, model, draft_model=draft_model if strategies()[name].takes_model else None, **options)


def random_student(model, path, layers=None, ids=None, seed=0):
    """Write a student of random layers; returns its path."""
    layers = layers or min(2, model.layers)
    return _save(path, model.own_shapes(layers), ids, seed, kind="student", target=target_facts(model), layers=layers)


def random_head(model, path, ids=None, seed=0):
    """Write a feature head of random weights; returns its path."""
    shape = HeadShape.of(model.config, width_of(model), model.context_length)
    facts = {"kind": "feature-head", "target": target_facts(model), "shape": shape.facts}
    return _save(path, shape.shapes(), ids, seed, **facts)


def _save(path, shapes, ids, seed, **facts):
    draws = torch.Generator().manual_seed(seed)
    tensors = {name: _random(shape, draws) for name, shape in shapes.items()}
    if ids is not None:
        tensors[IDS] = torch.tensor(ids)
    save_weights(path, tensors, facts)
    return path


def _random(shape, draws):
    return torch.ones(shape) if len(shape) == 1 else torch.randn(shape, generator=draws) * SPREAD


@cache
def _folder():
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


_FILES = {"student": random_student, "feature-head": random_head}
