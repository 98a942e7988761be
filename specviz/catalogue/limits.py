"""What a machine lets its visitors ask for, by the catalogue and its hardware profile."""

from __future__ import annotations

import math
import os

from specviz.catalogue.catalog import Catalog, Profile, on_space
from specviz.races.race_limits import Limits
from specviz.sources import normalise


def limits_of(catalog: Catalog, profile: Profile) -> Limits:
    """A Space's visitors get the catalogue's models that fit and no file; on one's own machine any may be typed."""
    if profile.name == "local":
        return Limits(files=not on_space(os.environ))
    memory = math.inf if profile.memory_gb is None else profile.memory_gb * 1e9
    sizes = {normalise(model.source): profile.weight_bytes(model) for model in catalog.models.values()}
    fitting = {source: size for source, size in sizes.items() if size <= memory}
    return Limits(profile.max_new_tokens, fitting, files=False, memory=memory)
