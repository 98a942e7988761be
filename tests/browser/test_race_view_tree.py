"""Rounds that drafted a tree: the text is the path taken, the card draws the rest, the row in flight both."""

import json
from dataclasses import replace

import pytest
from playwright.sync_api import expect
from support.race_page import has, open_saved, plain_rounds, race_of, seek

from specviz.core.errors import TraceError
from specviz.drafts.cascade import Cascade
from specviz.traces import DraftToken, Kind, Round, RoundDone, TargetToken, Token, Verdict, event_to_json, parse_trace
from specviz.views.report import SourceRow, race_report

pytestmark = pytest.mark.browser

A, R, U = Verdict.ACCEPTED, Verdict.REJECTED, Verdict.UNTESTED


def token(text):
    return Token(sum(map(ord, text)), text, text)


def draft(text, parent, verdict, source=None, p=None, u=None):
    return DraftToken(token(text), verdict, parent, source, 1.0, p, u)


def tree_rounds():
    """Two rounds of a second. The first: six nodes, three deep; the path taken is a, d, e, then the bonus g.

        a  -  c
           -  d  -  e
        b  -  f

    The second: three nodes, of which j is taken and k is not; the target corrects k to m.
    """
    first = (
        draft(" a", -1, A, "match", 0.8, 0.25),
        draft(" b", -1, R, "table", 0.1),
        draft(" c", 0, R, "table", 0.2, 0.75),
        draft(" d", 0, A, "match", 0.7, 0.5),
        draft(" e", 3, A, "recycled", 0.6, 0.1),
        draft(" f", 1, U, "table"),
    )
    second = (draft(" i", -1, R), draft(" j", -1, A), draft(" k", 1, R))
    yield Round(0, 6, 6, first, TargetToken(token(" g"), Kind.BONUS, 0.5), None, 0.0, 0.1, 0.9, 0.0, None, 0)
    yield Round(1, 3, 3, second, TargetToken(token(" m"), Kind.CORRECTION, 0.2, 0.4), None, 1.0, 0.1, 0.9, 0.0, None, 0)


def events(temperature=1.0):
    lanes = {"standard": plain_rounds(6, 0.5), "tree": tree_rounds()}
    return list(race_of(lanes, k=6, temperature=temperature, sources=Cascade.sources))


@pytest.fixture
def shown(page, tmp_path):
    open_saved(page, tmp_path, events())
    return page


def test_the_text_is_the_path_taken_and_the_rest_a_count(shown):
    tokens = '[data-lane="1"] .log .tok'
    assert shown.locator(tokens).all_text_contents() == [" a", " d", " e", " g", " j", " m"]
    statuses = ["accepted", "accepted", "accepted", "bonus", "accepted", "correction"]
    assert [
        name.split()[1] for name in shown.eval_on_selector_all(tokens, "all => all.map(n => n.className)")
    ] == statuses
    seams = shown.eval_on_selector_all(tokens, "all => all.map(n => n.dataset.seam ?? '')")
    assert seams == ["", "", "", "+3 ✕3", "", "1 ✕2"]
    # untested drafts of a tree are no text that could follow, so that option adds none
    shown.click(".menu summary")
    shown.check('[data-option="untested"]')
    has(shown, tokens, 6)
    assert shown.locator('[data-lane="1"] .counters b').all_inner_texts()[0] == "6"


def test_the_card_draws_the_tree_with_the_path_and_the_sources(shown):
    shown.locator('[data-lane="1"] .log .tok').nth(1).click()
    assert "round 1, depth 2 · ✓ accepted" in shown.inner_text(".card .where")
    assert shown.inner_text(".card .source").startswith("Guessed by a match: what followed the same tokens")
    assert shown.inner_text(".card .tree summary") == "Draft tree: 3 of 6 nodes on the path taken, depth 3"
    rows = shown.eval_on_selector_all(
        ".card .tree li",
        """all => all.map(row => [row.querySelector('.chip').textContent, row.querySelector('.chip').className,
             Number(row.style.getPropertyValue('--depth')), row.querySelector('small').textContent])""",
    )
    assert rows == [
        [" a", "chip accepted", 0, "✓ · match · p 80%"],
        [" c", "chip rejected", 1, "✕ · table · p 20%"],
        [" d", "chip accepted", 1, "✓ · match · p 70%"],
        [" e", "chip accepted", 2, "✓ · recycled · p 60%"],
        [" g", "chip bonus", 3, "+ · bonus"],
        [" b", "chip rejected", 0, "✕ · table · p 10%"],
        [" f", "chip untested", 1, "table"],
    ]
    assert shown.locator(".card .tree li.here .chip").text_content() == " d"
    # q, p, min(1, p/q), u
    assert shown.locator(".card dl dd").all_inner_texts() == ["1.00", "0.700", "0.700", "0.500"]
    shown.click(".card .tree summary")
    assert not shown.locator(".card .tree ul").is_visible()


def test_the_row_in_flight_groups_the_tree_by_depth(shown):
    groups = """() => [...document.querySelectorAll('[data-lane="1"] .flight .level')].map(level =>
                  [...level.children].map(chip => [chip.textContent, chip.className]))"""
    seek(shown, 0.5)
    waiting = shown.evaluate(groups)
    assert [[text for text, _ in level] for level in waiting] == [[" a", " b"], [" c", " d", " f"], [" e"]]
    assert {name for level in waiting for _, name in level} == {"chip waiting"}
    assert shown.text_content('[data-lane="1"] .flight em') == "target is checking 6 nodes, depth 3"
    letters = shown.eval_on_selector_all(
        '[data-lane="1"] .flight .level .chip', "all => all.map(n => [n.dataset.source, n.title])"
    )
    assert letters[:2] == [["m", "guessed by a match"], ["t", "guessed by the table"]]
    assert letters[-1] == ["r", "guessed by recycled"]
    seek(shown, 1.05)
    judged = shown.evaluate(groups)
    assert [[name for _, name in level] for level in judged] == [
        ["chip accepted", "chip rejected"],
        ["chip rejected", "chip accepted", "chip untested"],
        ["chip accepted"],
    ]
    assert shown.locator('[data-lane="1"] .flight > .chip').all_text_contents() == [" g"]


def test_a_lane_of_trees_counts_nodes_and_depth(shown):
    # six nodes three deep, three nodes two deep
    counters = '[data-lane="1"] .counters p'
    assert shown.locator(counters).nth(2).inner_text().split("\n") == ["nodes, depth", "4.5, 2.5"]
    assert shown.locator('[data-lane="0"] .counters p').nth(2).inner_text().split("\n")[0] == "draft passes"
    assert shown.inner_text('[data-lane="1"] h3 small') == "Small 0.5B, 500 M, 6 nodes"
    assert shown.is_visible(".of-trees") and shown.is_visible(".of-sources")
    keys = shown.locator(".acceptance .legend .key")
    expect(keys.nth(1)).to_have_text("nodes, mean 4.5 of k = 6")  # curves are drawn now and then
    assert keys.nth(0).inner_text() == "accepted / nodes"


def test_who_guessed_is_a_table_where_a_draft_has_several_sources(page, tmp_path):
    sources = (SourceRow("", "a match", ("2", "2", "100%", "50%")), SourceRow("", "<b>", ("3", "0", "0%", "0%")))
    report = replace(race_report(events()), sources=sources)
    open_saved(page, tmp_path, events(), report)
    table = page.locator(".final .scroll").nth(1)
    assert [row.split("\t") for row in table.locator("tbody tr").all_inner_texts()] == [
        ["a match", "2", "2", "100%", "50%"],
        ["<b>", "3", "0", "0%", "0%"],
    ]
    open_saved(page, tmp_path, events(), replace(report, sources=()))
    assert page.locator(".final .scroll").count() == 1


def test_a_tree_has_a_row_for_its_depth_and_its_sources_are_counted(page, tmp_path):
    report = race_report(events())
    open_saved(page, tmp_path, events(), report)
    rows = [row.split("\t") for row in page.locator(".final .scroll").nth(0).locator("tbody tr").all_inner_texts()]
    assert [row.title for row in report.rows] == [title for title, *_ in rows]
    assert ["mean drafted", "–", "4.50"] in rows and ["mean depth", "–", "2.50"] in rows
    # match: a and d; table: b and c, f untested; recycled: e
    assert [(one.source, one.cells[:2]) for one in report.sources] == [
        ("a match", ("2", "2")),
        ("recycled", ("1", "1")),
        ("the table", ("3", "0")),
    ]
    tooltip = page.locator(".final th span[title]").first.get_attribute("title")
    assert tooltip == report.rows[0].meaning


def said(page, done, slot, greedy):
    explain = """([round, slot, greedy]) => M.explain({ slot }, { round, greedy, lane: { speculative: true } })
                   .map(part => typeof part === 'string' ? part : '[' + part.token[1] + ']').join('')"""
    return page.evaluate(explain, [event_to_json(RoundDone("tree", done))["round"], slot, greedy])


def test_the_card_says_of_each_node_why_it_was_or_was_not_taken(modules):
    first, second = tree_rounds()
    assert said(modules, first, 0, True) == (
        "It is the target’s own first choice here, so the path goes on through it."
    )
    assert said(modules, first, 2, True) == "The target’s first choice here is [ d], so this branch was not taken."
    assert said(modules, second, 2, True) == "The target’s first choice here is [ m], so this branch was not taken."
    assert said(modules, second, -1, True) == "The target’s own first choice at a place where no branch had it."
    for greedy in (True, False):
        assert said(modules, first, 5, greedy).startswith("It stands on a branch that was not taken")
        assert said(modules, first, -1, greedy).startswith("The path reached the end of its branch.")


def test_a_drawn_test_of_a_branch_is_told_with_its_chance_and_its_draw(modules):
    # siblings in turn: c is thrown away, of what it leaves d is taken; a and b: a is taken, so b is not tried
    first, second = tree_rounds()
    assert said(modules, first, 0, False) == (
        "The target gave it 80%: kept with chance 80%, the draw was 0.25, so the path goes on through it."
    )
    assert said(modules, first, 1, False) == "Another branch had already been taken here: [ a]."
    assert said(modules, first, 2, False) == (
        "The target gave it 20%: kept with chance 20%, the draw was 0.75, so this branch was not taken."
    )
    assert said(modules, first, 3, False) == (
        "The target gave it 70% of what the branches tried before it left: kept with chance 70%, the draw was 0.50, "
        "so the path goes on through it."
    )
    assert said(modules, second, -1, False) == (
        "Drawn from what the target wants beyond the branches tried here; there it had 40%."
    )


def test_a_tree_of_one_branch_is_a_chain_and_depths_are_counted_from_one(modules):
    first, _ = tree_rounds()
    chain = Round(0, 2, 2, (draft("x", -1, A), draft("y", 0, A)), None)
    for done, tree, depths in ((first, True, [1, 1, 2, 2, 3, 2]), (chain, False, [1, 2])):
        found = modules.evaluate(
            "round => [M.isTree(round), M.depthsOf(round)]", event_to_json(RoundDone("a", done))["round"]
        )
        assert found == [tree, depths]


@pytest.mark.parametrize(
    ("parent", "says"),
    [
        (6, "drafted token 1"),
        (0, "drafted token 1"),
        (-2, "drafted token 1"),
        (0.5, "parent"),
        ("a", "parent"),
        ([0], "parent"),
    ],
)
def test_a_file_whose_tree_hangs_on_nothing_is_refused(parent, says):
    lines = [event_to_json(event) for event in events()]
    done = next(line for line in lines if line["event"] == "RoundDone" and line["lane"] == "tree")
    assert len(list(parse_trace("\n".join(map(json.dumps, lines))))) == len(lines)
    done["round"]["drafts"][0]["parent"] = parent
    with pytest.raises(TraceError, match=says):
        list(parse_trace("\n".join(map(json.dumps, lines))))
