"""The strategy that CONTRIBUTING.md shows works as it stands, and is as short as it claims."""

import importlib.util
import re
from pathlib import Path

import pytest
from support.tiny import ids_of, rounds_of, scripted_module, standard_ids, target

from specviz import LanguageModel, make_draft
from specviz.drafting import Strategy, read_draft, strategies

pytestmark = pytest.mark.usefixtures("one_thread")

PAGE = Path(__file__).resolve().parents[2] / "CONTRIBUTING.md"


def shown():
    (code,) = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return code


@pytest.fixture
def echo(tmp_path):
    """The strategy, from a file of its own as the page says; nothing of it stays registered."""
    path = tmp_path / "echo.py"
    path.write_text(shown(), encoding="utf-8")
    before = set(strategies())
    spec = importlib.util.spec_from_file_location("shown_strategy", path)
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
    (name,) = set(strategies()) - before
    yield name
    del Strategy.registry[name]


def test_the_example_fits_twenty_lines():
    assert len(shown().splitlines()) <= 20


def test_the_example_is_found_and_exact(echo):
    lm, prompt = target(), [3, 9, 4, 3]
    strategy = make_draft(echo, lm)
    assert read_draft(f"{echo}:k=3").strategy == echo and strategy.label and strategy.help
    with pytest.raises(AttributeError):
        strategy.name = "another"
    expected = standard_ids(lm, prompt, max_new_tokens=24)
    for k in (0, 1, 2, 3, 5, 8, 16):
        assert ids_of(rounds_of(lm, strategy, prompt, k=k, max_new_tokens=24)) == expected


def test_the_example_drafts_what_it_says(echo):
    """After 1 comes 2, and then 2 for ever: the first draft of 1 fails, all the later ones hold."""
    lm = LanguageModel(scripted_module({1: 2, 2: 2}, 4), None)
    rounds = rounds_of(lm, make_draft(echo, lm), [1], k=3, max_new_tokens=9)
    assert [[draft.token.id for draft in each.drafts] for each in rounds] == [[1, 1, 1], [2, 2, 2], [2, 2, 2]]
    assert [len(each.kept) for each in rounds] == [1, 4, 4]
