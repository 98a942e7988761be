"""Pages: the list builds all of them, and a page more is its own file and its line there."""

import gradio as gr

from specviz.views.web import app
from specviz.views.web.pages import PAGES, Page


def test_the_front_page_comes_first_and_no_two_pages_share_an_address():
    assert PAGES[0].path == ""
    assert len({page.path for page in PAGES}) == len({page.name for page in PAGES}) == len(PAGES)


def test_a_page_more_is_built_by_its_line_in_the_list(monkeypatch):
    given = []

    def build(context):
        given.append(context)
        gr.Textbox(context.offer.target, elem_id="of-another-page")

    monkeypatch.setattr(app, "PAGES", (*PAGES, Page("Another", "another", build)))
    blocks = app.build_app(app.Options(device="cpu")).blocks
    assert [name for _, name, _ in blocks.pages][-1] == "Another"
    pages = blocks.get_config_file()["page"]
    mine = [one for one in blocks.get_config_file()["components"] if one["props"].get("elem_id") == "of-another-page"]
    assert [one["id"] for one in mine] and mine[0]["id"] in pages["another"]["components"]
    assert mine[0]["id"] not in pages[""]["components"] and mine[0]["props"]["value"] == given[0].offer.target
