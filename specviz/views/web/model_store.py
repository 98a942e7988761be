"""Loaded models, shared by all visitors: each is loaded once, in its own thread, and evicted when memory runs short.

The store is the only state that visitors share. Weights are never changed, so a race may go on using a model that the
store has evicted; its memory is free when the last race is done with it.
"""

from __future__ import annotations

import gc
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Collection

import torch

from specviz.catalogue.model_loader import CatalogueLoader
from specviz.core.errors import LoadError, SpecvizError
from specviz.models import LanguageModel
from specviz.sources import normalise, split_form

_log = logging.getLogger(__name__)


class Loading:
    """A load in progress or finished. `fraction` and `sentence` say how far it is."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.fraction = 0.0
        self.sentence = ""
        self._since = time.monotonic()
        self._over = threading.Event()
        self._model: LanguageModel | None = None
        self._error: SpecvizError | None = None

    @property
    def over(self) -> bool:
        return self._over.is_set()

    @property
    def failed(self) -> bool:
        return self.over and self._model is None

    @property
    def words(self) -> str:
        """What a waiting visitor is told."""
        if self.failed:
            return str(self._error)
        if self.over:
            return f"{self.title} is loaded."
        step = f": {self.sentence}" if self.sentence else ""
        share = f", {self.fraction:.0%}" if 0 < self.fraction < 1 else ""
        return f"Loading {self.title}{step}{share} ({time.monotonic() - self._since:.0f} s)"

    def wait(self, seconds: float) -> bool:
        """Wait at most `seconds`; returns whether the load is over."""
        return self._over.wait(seconds)

    def result(self) -> LanguageModel:
        """Wait for the model and return it. Raises the LoadError of a load that failed."""
        self._over.wait()
        if self._model is None:
            raise self._error or LoadError(f"{self.title} could not be loaded.")
        return self._model

    def report(self, fraction: float, sentence: str) -> None:
        self.fraction, self.sentence = fraction, sentence.strip().rstrip(".")

    def succeed(self, model: LanguageModel) -> None:
        self._model = model
        self._over.set()

    def fail(self, error: SpecvizError) -> None:
        self._error = error
        self._over.set()


class ModelStore:
    """Models by source, the least recently used first.

    `budget_bytes` bounds the weights kept; None sets no bound. A load that fails leaves the others as they were.
    """

    def __init__(self, loader: CatalogueLoader, budget_bytes: int | None = None) -> None:
        self.loader, self.budget_bytes = loader, budget_bytes
        self._models: OrderedDict[str, LanguageModel] = OrderedDict()
        self._loading: dict[str, Loading] = {}
        self._lock = threading.Lock()
        self._turn = threading.Lock()  # one load at a time: peaks of memory would add up

    def title(self, source: str) -> str:
        """The name of the weights of `source` for people."""
        model = self.loader.catalog.model_of(source)
        if model is None:
            return normalise(source)
        form = split_form(source)[1]
        return f"{model.title}, {form}" if form else model.title

    def begin(self, source: str, beside: Collection[LanguageModel] = ()) -> Loading:
        """Start loading `source`, or join its load in progress; a loaded model gives a load that is over.

        Models in `beside` are not evicted to make room. Raises LoadError for an unknown kind of source.
        """
        key = normalise(source)
        with self._lock:
            ready = self._models.get(key)
            if ready is not None:
                self._models.move_to_end(key)
                loading = Loading(self.title(key))
                loading.succeed(ready)
                return loading
            if key not in self._loading:
                self._loading[key] = Loading(self.title(key))
                arguments = (key, self._loading[key], tuple(beside))
                threading.Thread(target=self._load, args=arguments, name=f"load {key}", daemon=True).start()
            return self._loading[key]

    def loaded(self, source: str) -> LanguageModel | None:
        """The model of `source` if it is loaded."""
        with self._lock:
            return self._models.get(normalise(source))

    @property
    def bytes(self) -> int:
        """Memory of the weights that the store keeps."""
        with self._lock:
            return self._bytes()

    def _load(self, key: str, loading: Loading, beside: Collection[LanguageModel]) -> None:
        try:
            with self._turn:
                model = self.loader.load(key, loading.report)
                self._keep(key, model, beside)
        except SpecvizError as error:
            self._forget(key)
            loading.fail(error)
        except Exception as error:  # any error must reach the visitors who wait, or they wait for ever
            _log.exception("Loading %s failed", key)
            self._forget(key)
            loading.fail(LoadError(f"{loading.title} could not be loaded: {error}"))
        else:
            loading.succeed(model)

    def _keep(self, key: str, model: LanguageModel, beside: Collection[LanguageModel]) -> None:
        with self._lock:
            self._models[key] = model
            self._loading.pop(key, None)
            evicted = self._evict((model, *beside))
        if evicted:
            gc.collect()
            if torch.cuda.is_available():
                torch.cuda.empty_cache()

    def _evict(self, wanted: Collection[LanguageModel]) -> bool:
        """Evict the least recently used models until the rest fits the budget; returns whether any was evicted."""
        before = len(self._models)
        for key in list(self._models):
            if self.budget_bytes is None or self._bytes() <= self.budget_bytes:
                break
            if not any(self._models[key] is model for model in wanted):
                del self._models[key]
        return len(self._models) < before

    def _forget(self, key: str) -> None:
        with self._lock:
            self._loading.pop(key, None)

    def _bytes(self) -> int:
        return sum(model.info.bytes for model in self._models.values())
