"""The documents: what they link to and name is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
# folders whose files a document may name in code, as `specviz/core/settings.py`
OURS = ("specviz", "docs", "scripts", "tests", "assets")


def links(text):
    """Targets of Markdown links within the project, without their anchors."""
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" not in target and not target.startswith("#"):
            yield target.partition("#")[0]


def named_files(text):
    """Code spans that read as a path of the project."""
    for span in re.findall(r"`([\w./-]+)`", text):
        if span.split("/")[0] in OURS and "/" in span:
            yield span


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page):
    text = page.read_text(encoding="utf-8")
    assert [target for target in links(text) if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_file_named_is_there(page):
    text = page.read_text(encoding="utf-8")
    assert [name for name in named_files(text) if not (ROOT / name).exists()] == []


def test_the_readme_shows_every_folder_of_the_package():
    tree = re.search(r"^specviz/\n(.*?)^assets/", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE | re.DOTALL)[1]
    shown = set(re.findall(r"^ +(\w+)/(?: |$)", tree, re.MULTILINE))
    packages = {path.parent.name for path in (ROOT / "specviz").glob("*/__init__.py")}
    assert packages <= shown
