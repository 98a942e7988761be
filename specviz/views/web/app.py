"""build_app: options in, a gr.Blocks out. Nothing is loaded and no device is touched until the app is served."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import gradio as gr

from specviz.catalogue.catalog import Catalog, Profile, load_catalog, memory_bytes
from specviz.catalogue.model_loader import CatalogueLoader
from specviz.sources import normalise
from specviz.views.web.api import add_api
from specviz.views.web.model_store import ModelStore
from specviz.views.web.offer import Offer
from specviz.views.web.page_theme import STYLESHEET, make_theme
from specviz.views.web.pages import PAGES, PageContext
from specviz.views.web.run_events import DEVICE
from specviz.views.web.running import Runner, thread_runner
from specviz.views.web.zero_gpu import spaces_module, zero_runner

_LOOK_SECONDS = 0.05  # Gradio looks for work each millisecond: a tenth of a core, taken from the engine
MAX_WAITING = 24
_CPU_HZ, _HZ = 10.0, 15.0
_KEPT_SHARE = 0.6  # of a machine's memory, for weights


@dataclass(frozen=True, slots=True)
class Options:
    """How the app is started. `target` None is the profile's; `memory_gb` bounds the weights kept."""

    target: str | None = None
    device: str = "auto"
    dtype: str | None = None
    profile: str | None = None
    memory_gb: float | None = None


@dataclass(frozen=True, slots=True)
class App:
    """The built page, and the store behind it."""

    blocks: gr.Blocks
    store: ModelStore
    target: str

    def begin_loading(self) -> None:
        """Start loading the first target in the background."""
        self.store.begin(self.target)


def build_app(options: Options | None = None, catalog: Catalog | None = None) -> App:
    """Build the app. Raises SpecvizError, in words, for options that name nothing."""
    options, catalog = options or Options(), catalog or load_catalog()
    profile = catalog.profile(options.profile)
    target = normalise(options.target) if options.target else None
    offer = Offer(catalog, profile, target)
    loader = CatalogueLoader(catalog, options.device, options.dtype or profile.dtype)
    store = ModelStore(loader, _budget(options, profile))
    hz = _CPU_HZ if options.device in ("auto", "cpu") else _HZ
    runner = _runner(store, profile, hz)
    blocks = gr.Blocks(title="specviz: speculative decoding, live", analytics_enabled=False, fill_width=True)
    _build_pages(PageContext(blocks, offer, store, runner, hz))
    with blocks:
        add_api(offer, runner, **DEVICE)
    blocks.queue(max_size=MAX_WAITING, default_concurrency_limit=8)
    blocks._queue.sleep_when_free = _LOOK_SECONDS
    return App(blocks, store, offer.target)


def _build_pages(context: PageContext) -> None:
    front, *others = PAGES
    with context.blocks:
        front.build(context)
    for page in others:
        with context.blocks.route(page.name, page.path):
            page.build(context)


def launch_options() -> dict[str, Any]:
    """What `Blocks.launch` is always called with: nothing that calls out, records visitors or serves files."""
    return {
        "theme": make_theme(),
        "css_paths": [STYLESHEET],
        "ssr_mode": False,
        "share": False,
        "run_history": False,
        "enable_monitoring": False,
        "footer_links": ["api", "settings"],
        "max_file_size": "1mb",
        "strict_cors": True,
        "show_error": False,
        "state_session_capacity": 200,
        "mcp_server": False,
        "pwa": False,
    }


def _runner(store: ModelStore, profile: Profile, hz: float) -> Runner:
    spaces = spaces_module()
    return thread_runner(store, hz) if spaces is None else zero_runner(spaces, store, profile)


def _budget(options: Options, profile: Profile) -> int | None:
    """Bytes of weights to keep: as told, else the profile's, else a share of the machine's memory."""
    if options.memory_gb is not None:
        return memory_bytes(options.memory_gb, "--memory-gb")
    return _machine_share() if profile.memory_gb is None else memory_bytes(profile.memory_gb, "memory_gb")


def _machine_share() -> int | None:
    try:
        return int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * _KEPT_SHARE)
    except (ValueError, OSError, AttributeError):  # not every system tells
        return None
