"""Page: one address of the app, and what its builder is given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import gradio as gr

from specviz.views.web.model_store import ModelStore
from specviz.views.web.offer import Offer
from specviz.views.web.running import Runner


@dataclass(frozen=True, slots=True)
class PageContext:
    """What pages are built on. `hz`: how often a visitor's page changes while a race runs, at most."""

    blocks: gr.Blocks
    offer: Offer
    store: ModelStore
    runner: Runner
    hz: float


@dataclass(frozen=True, slots=True)
class Page:
    """`name` stands in the navigation, `path` in the address ("" for the front page); `build` fills the page."""

    name: str
    path: str
    build: Callable[[PageContext], None]
