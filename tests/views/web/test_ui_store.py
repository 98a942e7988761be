"""The model store: each model once, failures harmless, memory bounded, waiting in words."""

import gc
import threading
import weakref

import pytest
from support import tiny_checkpoints

from specviz.catalogue.catalog import load_catalog
from specviz.catalogue.model_loader import CatalogueLoader
from specviz.core.errors import LoadError
from specviz.views.web.model_store import ModelStore

CATALOG = load_catalog()


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """Six tiny checkpoints of one size."""
    folder = tmp_path_factory.mktemp("models")
    return [tiny_checkpoints.save_llama(folder / str(seed), seed=seed) for seed in range(6)]


def store(budget=None, **options):
    return ModelStore(CatalogueLoader(CATALOG, "cpu", "float32", **options), budget)


def test_a_model_is_loaded_once_however_many_ask(sources):
    loads, gate = [], threading.Event()

    def slow(source, device, dtype, *, progress, fallback):
        loads.append(source)
        gate.wait(10)
        return object.__new__(_Weightless)

    mine = store(load_model=slow)
    asked = [mine.begin(sources[0]) for _ in range(5)]
    assert len({id(loading) for loading in asked}) == 1
    gate.set()
    models = [loading.result() for loading in asked]
    assert len(loads) == 1 and len({id(model) for model in models}) == 1
    assert mine.begin(sources[0].replace("path:", " PATH: ")).result() is models[0]


class _Weightless:
    class info:
        bytes = 0


def test_who_waits_is_told_how_far_it_is():
    started, gate = threading.Event(), threading.Event()

    def slow(source, device, dtype, *, progress, fallback):
        progress(0.4, "Fetching 98 MB.")
        started.set()
        gate.wait(10)
        return object.__new__(_Weightless)

    loading = store(load_model=slow).begin("embedded")
    assert started.wait(10)
    assert loading.words.startswith("Loading SmolLM2 135M Instruct (embedded): Fetching 98 MB, 40%")
    assert not loading.wait(0)
    gate.set()
    loading.result()
    assert loading.words == "SmolLM2 135M Instruct (embedded) is loaded."


def test_a_load_that_fails_leaves_the_others_and_may_be_tried_again(sources):
    mine = store()
    model = mine.begin(sources[0]).result()
    first = mine.begin("path:/no/such/folder")
    with pytest.raises(LoadError, match="There is no folder"):
        first.result()
    assert first.failed and "There is no folder" in first.words
    assert mine.loaded(sources[0]) is model
    assert mine.begin("path:/no/such/folder") is not first


def test_an_error_of_a_library_reaches_who_waits_as_a_sentence():
    def broken(*_, **__):
        raise ZeroDivisionError("odd")

    with pytest.raises(LoadError, match="could not be loaded: odd"):
        store(load_model=broken).begin("embedded").result()


def test_what_is_no_source_is_refused_at_once():
    with pytest.raises(LoadError, match="is not a source of weights"):
        store().begin("SmolLM2")


def test_five_drafts_after_another_take_the_memory_of_one(sources):
    target, *drafts = sources
    mine = store()
    held = mine.begin(target).result()
    mine.budget_bytes = 2 * held.info.bytes
    mine.begin(drafts[0], [held]).result()
    level = mine.bytes
    gone = []
    for draft in drafts[1:]:
        gone.append(weakref.ref(mine.begin(draft, [held]).result()))
        assert mine.bytes == level
    gc.collect()
    assert [reference() is None for reference in gone] == [True, True, True, False]
    assert mine.loaded(target) is held


def test_the_longest_unused_goes_first(sources):
    mine = store()
    size = mine.begin(sources[0]).result().info.bytes
    mine.begin(sources[1]).result()
    mine.begin(sources[0]).result()
    mine.budget_bytes = 2 * size
    mine.begin(sources[2]).result()
    assert [mine.loaded(source) is not None for source in sources[:3]] == [True, False, True]


def test_what_a_race_needs_is_kept_beyond_the_budget(sources):
    mine = store(budget=1)
    target = mine.begin(sources[0]).result()
    draft = mine.begin(sources[1], [target]).result()
    assert mine.loaded(sources[0]) is target and mine.loaded(sources[1]) is draft
