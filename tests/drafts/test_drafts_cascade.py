"""The cascade: what each source gives and what is made of them, worked by hand; that its text is the target's own."""

import random
from functools import cache, partial
from types import SimpleNamespace

import pytest
import torch
from support.law import FILTERED, PENALISED, PROMPT, VOCABULARY, Workers, exact_law, p_value, table_models
from support.tiny import ARCHITECTURES, ids_of, rounds_of, standard_ids, target
from support.tree_drafts import way

from specviz.drafting import Seen, make_draft
from specviz.drafting.guess_sources import CONTEXT, Alone, Match, Recycling, Table
from specviz.drafting.guesser import CHAIN, SHAPES, TREE, Guesser, Sourced
from specviz.drafting.ngrams import count_ngrams
from specviz.drafts.cascade import Cascade
from specviz.traces import SourceInfo, Verdict

pytestmark = pytest.mark.usefixtures("one_thread")

NEW_TOKENS = 24


def told(name, guesses):
    """A source that gives the guesses (token, rank) told for the last token."""
    info = SourceInfo(name, f"the {name} one")
    return SimpleNamespace(
        info=info, ranks=3, after=lambda text: guesses.get(text[-1], ()), learn=lambda *_: None, read=lambda *_: None
    )


def guesser(sources, shape, context=(0,)):
    drafter = Guesser(sources, shape)
    drafter.observe(context, Seen(tuple(context[:-1])))
    return drafter


# sources


def test_a_match_is_what_followed_the_longest_run_of_tokens_at_its_latest_place():
    match, text = Match(), (7, 1, 2, 3, 9, 1, 2, 4, 7, 1, 2)
    for end in range(1, len(text)):
        match.learn(text[max(0, end - CONTEXT) : end], text[end])
    # after 7 1 2 came 3; after 1 2, and after 2, came 4 at last
    assert list(match.after(text[-CONTEXT:])) == [(3, CONTEXT - 3), (4, CONTEXT - 2), (4, CONTEXT - 1)]
    assert list(match.after((7,))) == [(1, CONTEXT - 1)] and list(match.after((5,))) == []


def test_a_tables_guess_has_a_rank_of_its_own_for_each_size_and_doubt():
    table = Table(count_ngrams([[4, 1, 2, 1, 3, 4, 1, 2]]))
    # (2, 1) -> 3 and 1 -> 2, 3: a share of 1 / 2 is four quarters of a bit, 2 / 4 as well, 1 / 4 eight
    assert list(table.after((8, 2, 1))) == [(3, 16 + 4), (2, 32 + 4), (3, 32 + 8)]
    assert list(table.after((9,))) == []


def test_recycled_are_the_targets_favourites_at_the_last_occurrence_kept_or_not():
    recycling = Recycling(2)
    recycling.read(Seen((5, 6, 5), None, torch.tensor([[1, 2, 3], [4, 1, 2], [7, 8, 9]])))
    assert list(recycling.after((6, 5))) == [(7, 0), (8, 1)] and list(recycling.after((1,))) == []
    recycling.read(Seen(()))
    assert list(recycling.after((6,))) == [(4, 0), (1, 1)]


def test_alone_is_what_the_table_holds_for_the_single_token():
    alone = Alone(count_ngrams([]).with_alone([[1, 2, 3], [4, 5, 6]]), 2)
    assert [list(alone.after((9, token))) for token in range(3)] == [[(1, 0), (2, 1)], [(4, 0), (5, 1)], []]


# what is made of them

CHANCES = (0.5, 0.2, 0.1)


def test_the_first_source_that_gives_a_token_owns_it():
    first, second = told("first", {0: [(5, 1)]}), told("second", {0: [(5, 0), (6, 0)], 5: [(7, 0)]})
    sources = [Sourced(first, CHANCES, (0.9, 0.8, 0.7)), Sourced(second, CHANCES, CHANCES)]
    # 5 is of the first source's second rank, and seconded: .8
    chain, tree = (guesser(sources, shape).propose(3) for shape in SHAPES)
    assert (chain.ids, chain.sources, chain.parents) == ((5, 7), ("first", "second"), None)
    # 5 .8, 6 .5, 7 after 5 .8 x .5
    assert (tree.ids, tree.parents) == ((5, 6, 7), (-1, -1, 0)) and tree.sources == ("first", "second", "second")


def test_a_node_is_worth_its_whole_way():
    source = told("one", {0: [(1, 0), (2, 1), (3, 2)], 1: [(4, 0), (5, 1)], 4: [(6, 0)], 2: [(7, 0)]})
    # 1 .5; 4 .25; 2 .2; 6 .125; then 3, 5 and 7 with .1: of equals what follows the earlier node
    tree = guesser([Sourced(source, CHANCES, CHANCES)], TREE).propose(7)
    assert (tree.ids, tree.parents) == ((1, 4, 2, 6, 3, 5, 7), (-1, 0, -1, 1, -1, 0, 2))
    assert guesser([Sourced(source, CHANCES, CHANCES)], TREE).propose(2).ids == (1, 4)


def test_what_was_right_in_this_run_is_tried_first():
    """The prior of .5, .2 and .1 is worth thirty guesses of each rank."""
    source = told("one", {0: [(1, 0), (2, 1)], 2: [(0, 0)]})
    drafter = guesser([Sourced(source, CHANCES, CHANCES)], TREE)
    assert drafter.propose(2).ids == (1, 2)
    for _ in range(60):
        drafter.observe((2, 0), Seen(()))
    # the first rank was right 15 + 60 times of 30 + 120, the second 6 + 60 of 30 + 60: 2 .73, 1 .5, 0 after 2 .37
    tree = drafter.propose(3)
    assert (tree.ids, tree.parents) == ((2, 1, 0), (-1, -1, 0))
    assert guesser([Sourced(source, CHANCES, CHANCES)], CHAIN).propose(1).ids == (1,)  # another run's state is its own


def test_nothing_known_is_nothing_drafted():
    for shape in SHAPES:
        drafter = guesser([Sourced(told("one", {}), CHANCES, CHANCES)], shape)
        assert len(drafter.propose(4).ids) == 0
        assert len(guesser([Sourced(told("one", {0: [(1, 0)]}), CHANCES, CHANCES)], shape).propose(0).ids) == 0


def test_a_runs_index_grows_with_its_text_alone():
    drafter = Cascade(counted=known()).start(None)
    for _ in range(300):
        proposal = drafter.propose(8)
        drafter.observe((*proposal.ids[:2], 1), Seen((1, *proposal.ids)))
    (match, *_) = drafter._sources
    assert len(drafter._context) == CONTEXT and len(match._latest) <= CONTEXT * 900


# the strategy


@cache
def known(vocabulary=64):
    """A table of text that is none of the target's, and single tokens' successors."""
    rng = random.Random(vocabulary)
    text = [rng.randrange(vocabulary) for _ in range(3000)]
    return count_ngrams([text]).with_alone([rng.sample(range(vocabulary), 4) for _ in range(vocabulary)])


def with_own_text(lm, prompt, **settings):
    """A table that has seen half of what the target writes, and the wrong ends of it."""
    written = standard_ids(lm, prompt, max_new_tokens=NEW_TOKENS, **settings)
    texts = [[*prompt, *written[:9], 1, 2, 3], [*written[12:], 5, 6]]
    return count_ngrams(texts).with_alone(known().alone)


@pytest.mark.parametrize("shape", SHAPES)
def test_proposals_are_legal_whatever_the_run_brings(shape):
    rng, sources = random.Random(1), set()
    drafter = Cascade(shape=shape, counted=known()).start(None)
    drafter.observe((3, 9, 4), Seen((3, 9), None, torch.tensor([[9, 4, 1], [4, 3, 2]])))
    for _ in range(200):
        k = rng.randrange(0, 40)
        proposal = drafter.propose(k)
        parents = proposal.parents or range(-1, len(proposal.ids) - 1)
        assert len(proposal.ids) == len(parents) == len(proposal.sources or ()) <= k
        assert all(-1 <= parent < node for node, parent in enumerate(parents))
        assert len({*zip(parents, proposal.ids, strict=True)}) == len(proposal.ids)  # no twins among siblings
        assert set(proposal.ids) <= set(range(64))
        sources |= {*(proposal.sources or ())}
        rows = (4, *proposal.ids)
        choices = torch.tensor([rng.sample(range(64), 8) for _ in rows])
        path = way(list(parents), rng.randrange(len(parents))) if parents else []
        drafter.observe((*(proposal.ids[node] for node in path), rng.randrange(64)), Seen(rows, None, choices))
    assert sources == {"match", "table", "recycling", "alone"}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_greedy_text_is_that_of_standard_decoding(architecture, shape):
    lm, prompt = target(architecture), [3, 9, 4, 3, 9, 4, 3]
    expected = standard_ids(lm, prompt, max_new_tokens=NEW_TOKENS)
    strategy = Cascade(shape=shape, counted=with_own_text(lm, prompt))
    for k in (1, 3, 16, 64):
        rounds = rounds_of(lm, strategy, prompt, k=k, max_new_tokens=NEW_TOKENS, telemetry=False)
        assert ids_of(rounds) == expected, k
        drafts = [draft for each in rounds for draft in each.drafts]
        assert {draft.verdict for draft in drafts} >= {Verdict.ACCEPTED, Verdict.REJECTED}
        assert {draft.source for draft in drafts} <= {"match", "table", "recycling", "alone"}
    assert len({draft.source for draft in drafts}) >= 3


def test_greedy_text_under_penalties_is_that_of_standard_decoding():
    lm, prompt, penalties = target(), [3, 9, 4, 3], {"repetition_penalty": 1.7, "frequency_penalty": 0.5}
    expected = standard_ids(lm, prompt, max_new_tokens=NEW_TOKENS, **penalties)
    strategy = Cascade(counted=with_own_text(lm, prompt, **penalties))
    assert ids_of(rounds_of(lm, strategy, prompt, k=12, max_new_tokens=NEW_TOKENS, **penalties)) == expected


@pytest.mark.parametrize("shape", SHAPES)
def test_a_table_of_the_targets_text_keeps_more_tokens_a_pass(shape):
    lm, prompt = target(), [3, 9, 4]
    tables = (with_own_text(lm, prompt), None)
    own, none = (
        len(rounds_of(lm, Cascade(shape=shape, counted=table), prompt, k=16, max_new_tokens=NEW_TOKENS))
        for table in tables
    )
    assert own < none - 5


def test_a_prompt_of_one_token_is_drafted_for():
    lm = target()
    expected = standard_ids(lm, [5], max_new_tokens=8)
    assert ids_of(rounds_of(lm, make_draft("cascade", lm), [5], k=4, max_new_tokens=8)) == expected


@pytest.fixture(scope="module")
def workers():
    pool = Workers()
    yield pool
    pool.close()


def cascade(shape, model, draft):
    return Cascade(shape=shape, counted=known(VOCABULARY))


@pytest.mark.slow
@pytest.mark.parametrize("settings", [FILTERED, PENALISED])
@pytest.mark.parametrize("shape", SHAPES)
def test_sampled_text_has_the_law_of_the_target(workers, shape, settings):
    texts, verdicts = workers.sample(partial(cascade, shape), 5, settings, length=3)
    assert p_value(texts, exact_law(table_models()[2], PROMPT, 3, settings)) >= 1e-4
    assert min(verdicts[one] for one in Verdict) > 1000
