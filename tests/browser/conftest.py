"""A headless Chromium, a page whose errors and outside requests fail the test, and a server for tiny apps."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")


from support.browser_kit import CHROMIUM_ARGS, Watched, chromium_path


@pytest.fixture(scope="session")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        yield (found := playwright.chromium.launch(executable_path=chromium_path(), args=list(CHROMIUM_ARGS)))
        found.close()


@pytest.fixture
def watched(browser) -> Iterator[Watched]:
    context = browser.new_context(viewport={"width": 1440, "height": 1000})
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    found = Watched(context.new_page())
    yield found
    context.close()


@pytest.fixture
def page(watched: Watched):
    yield watched.page
    assert watched.errors == []
    assert watched.outside == []


@pytest.fixture(scope="module")
def serve():
    """serve(demo) -> url of the running app; all are closed at the module's end."""
    running = []

    def start(demo) -> str:
        _, url, _ = demo.launch(
            prevent_thread_lock=True,
            quiet=True,
            server_name="127.0.0.1",
            ssr_mode=False,
            share=False,
            run_history=False,
        )
        running.append(demo)
        return url

    yield start
    for demo in running:
        demo.close()
