"""Weights of any source, with the catalogue's fallback where a hub does not answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from specviz.catalogue.catalog import Catalog, load_catalog
from specviz.models import LanguageModel
from specviz.sources import Checkpoint, Progress, normalise, resolve
from specviz.sources.loader import load


@dataclass(frozen=True, slots=True)
class CatalogueLoader:
    """Loads models onto one device in one dtype.

    `load_model` takes (source, device, dtype, progress=, fallback=), as `specviz.sources.loader.load` does.
    """

    catalog: Catalog
    device: str = "auto"
    dtype: str = "auto"
    load_model: Callable[..., LanguageModel] = load

    def load(self, source: str, progress: Progress | None = None) -> LanguageModel:
        """The model of `source`. Raises LoadError."""
        source = normalise(source)
        fallback = self.catalog.fallback_of(source)
        return self.load_model(source, self.device, self.dtype, progress=progress, fallback=fallback)

    def resolve(self, source: str, progress: Progress | None = None) -> Checkpoint:
        """The checkpoint of `source` on this machine, fetched where it is missing. Raises LoadError."""
        return resolve(source, progress, fallback=self.catalog.fallback_of(source))


def catalogue_loader(device: str = "auto", dtype: str = "auto") -> CatalogueLoader:
    """A loader that knows the repository's own catalogue."""
    return CatalogueLoader(load_catalog(), device, dtype)
