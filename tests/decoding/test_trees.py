"""Trees of drafts: what a row sees, what a round keeps, and that the text and the cache are the target's own."""

import random
from collections import Counter

import numpy
import pytest
import torch
from support.near_ties import assert_same
from support.tiny import (
    ARCHITECTURES,
    WIDE,
    fixed,
    ids_of,
    module,
    outcome_of,
    rounds_of,
    scripted_module,
    standard_ids,
    table_module,
    target,
    words_tokenizer,
)
from support.tree_drafts import Forest, Told, random_parents, way

from specviz import Lane, LanguageModel, Settings, make_draft, race, summarize
from specviz.core.errors import InputError, PairError
from specviz.core.trees import Tree
from specviz.decoding.engine import Decoding
from specviz.drafting import Proposal, Seen
from specviz.drafting.guesser import HitRates
from specviz.sampling.sampler import decide_greedy_tree, decide_sampled, decide_sampled_tree, penalise
from specviz.traces import Kind, Reason, Verdict

pytestmark = pytest.mark.usefixtures("one_thread")

NODES = (1, 2, 5, 16, 64)
PROMPT = [3, 9, 4, 3, 9, 4, 3]
NEW_TOKENS = 24
LETTERS = {Verdict.ACCEPTED: "A", Verdict.REJECTED: "R", Verdict.UNTESTED: "U"}


def spelled(each):
    """A round's verdicts in the nodes' order, and its target token's kind."""
    return "".join(LETTERS[draft.verdict] for draft in each.drafts), each.target and each.target.kind


def forest(lm, prompt, seed=0, luck=0.5, **settings):
    return Forest(tuple(standard_ids(lm, prompt, telemetry=False, **settings)), lm.vocabulary, seed, luck)


# shapes


def test_a_tree_knows_its_ancestors_depths_earlier_siblings_and_ranks():
    tree = Tree((-1, -1, 0, 1, 1, 3))
    assert tree.depths.tolist() == [0, 0, 1, 1, 1, 2]
    ways = [numpy.flatnonzero(row).tolist() for row in tree.ancestors]
    assert ways == [[0], [1], [0, 2], [1, 3], [1, 4], [1, 3, 5]]
    assert [numpy.flatnonzero(row).tolist() for row in tree.earlier_siblings] == [[], [0], [], [], [3], []]
    assert tree.ranks == ((0, 2, 3, 5), (1, 4))
    assert not tree.is_chain and Tree((-1, 0, 1)).is_chain and Tree(()).is_chain


@pytest.mark.parametrize("parents", [(0,), (-2,), (-1, 1), (-1, 0, 3), (-1, 0.5), ("a",), (None,)])
def test_parents_that_are_no_tree_are_refused_in_words(parents):
    with pytest.raises(InputError, match="tree must"):
        Tree(parents)


# passes


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_row_of_a_tree_says_what_its_own_way_read_as_a_chain_says(architecture):
    """Prompt and ways are longer than the window of 8 where there is one."""
    lm, rng = target(architecture), random.Random(1)
    prompt, ids = [rng.randrange(64) for _ in range(11)], [rng.randrange(64) for _ in range(40)]
    parents = [max(-1, node - rng.choice((1, 1, 1, 2, 5))) for node in range(40)]
    assert max(len(way(parents, node)) for node in range(40)) > 10
    with lm.open(128) as context, lm.open(128) as chain:
        context.prefill(prompt)
        logits = context.forward(ids, parents)
        chain.prefill(prompt)
        for node in range(40):
            expected = chain.forward([ids[one] for one in way(parents, node)])[-1]
            assert torch.allclose(logits[node], expected, atol=1e-3), node
            chain.keep(0)


@pytest.mark.parametrize("architecture", ["llama", "gemma3, window 8"])
def test_rows_kept_of_a_tree_are_a_chain_afterwards(architecture):
    lm, ids, parents = target(architecture), list(range(5, 25)), random_parents(random.Random(3), 20)
    with lm.open(128) as context, lm.open(128) as fresh:
        context.prefill(PROMPT)
        context.forward(ids, parents)
        kept = way(parents, 19)
        assert len(kept) > 2 and kept != list(range(len(kept)))
        context.keep(kept)
        assert context.length == len(PROMPT) + len(kept)
        fresh.prefill([*PROMPT, *(ids[node] for node in kept)])
        assert torch.allclose(context.forward([7]), fresh.forward([7]), atol=1e-4)


# text


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_greedy_text_is_that_of_standard_decoding(architecture):
    lm, seen = target(architecture), Counter()
    expected = standard_ids(lm, PROMPT, max_new_tokens=NEW_TOKENS)
    for nodes in NODES:
        strategies = [Forest(tuple(expected), 64, seed, luck) for seed, luck in ((1, 0.3), (2, 0.8))]
        for strategy in (*strategies, make_draft("token-recycling", lm, shape="tree")):
            rounds = rounds_of(lm, strategy, PROMPT, k=nodes, max_new_tokens=NEW_TOKENS, telemetry=False)
            assert_same(module(architecture), PROMPT, expected, ids_of(rounds), f"{architecture}, {nodes} nodes")
            seen.update(len(each.accepted) for each in rounds)
            seen.update(each.target.kind for each in rounds if each.target)
            assert all(each.drafted == len(each.drafts) <= nodes == each.k for each in rounds)
    assert min(seen[what] for what in (0, 1, 2, 3, Kind.BONUS, Kind.CORRECTION)) > 0, seen


@pytest.mark.parametrize(
    "penalties", [{"repetition_penalty": 1.7}, {"presence_penalty": 2.0, "frequency_penalty": 1.5}]
)
def test_penalties_count_along_each_nodes_own_way(penalties):
    lm = target()
    expected = standard_ids(lm, PROMPT, max_new_tokens=NEW_TOKENS, **penalties)
    assert expected != standard_ids(lm, PROMPT, max_new_tokens=NEW_TOKENS)
    for nodes in NODES:
        strategy = Forest(tuple(expected), 64, nodes, 0.7)
        asked = {"k": nodes, "max_new_tokens": NEW_TOKENS, "telemetry": False, **penalties}
        assert ids_of(rounds_of(lm, strategy, PROMPT, **asked)) == expected


EXECUTIONS = {
    "native": lambda: LanguageModel(module(), None),
    "plain": lambda: LanguageModel(module(), None, weights="plain"),
    "fixed widths": lambda: fixed(LanguageModel(module(), None)),
    "fixed widths, window": lambda: fixed(LanguageModel(module("mistral, window 8"), None)),
    "strict": lambda: LanguageModel(module(**WIDE), None, strict=True),
}


@pytest.mark.parametrize("name", EXECUTIONS)
def test_every_way_of_running_a_pass_serves_trees(name):
    lm, accepted = EXECUTIONS[name](), Counter()
    for nodes in (2, 5, 16, 40):
        for prompt in (PROMPT, PROMPT[:1]):
            strategy = forest(lm, prompt, nodes, 0.8, max_new_tokens=NEW_TOKENS)
            rounds = rounds_of(lm, strategy, prompt, k=nodes, max_new_tokens=NEW_TOKENS, telemetry=False)
            assert ids_of(rounds) == list(strategy.truth), f"{name}, {nodes} nodes"
            accepted.update(len(each.accepted) for each in rounds)
    assert min(accepted[count] for count in range(4)) > 0


@pytest.mark.parametrize("kind", ["llama", "gemma3, window 8"])
def test_the_cache_after_200_rounds_is_that_of_a_fresh_prefill(kind):
    lm = LanguageModel(module(kind, max_position_embeddings=1024), None)
    strategy = forest(lm, PROMPT, 7, 0.5, max_new_tokens=500)
    settings = Settings(k=5, max_new_tokens=900, telemetry=False)
    with Decoding(lm, strategy, PROMPT, settings) as decoding:
        decoding.prefill()
        decoding.prefill_draft()
        rounds = [decoding.step() for _ in range(200)]
        text = [*PROMPT, *ids_of(rounds)]
        ours = decoding._context
        assert ours.length == len(text) - 1 > 300
        with lm.open(len(text)) as fresh:
            fresh.prefill(text[:-1])
            pairs = zip(ours._live()._buffers(), fresh._live()._buffers(), strict=True)
            for found, expected in pairs:
                assert torch.allclose(found[:, :, : ours.length], expected[:, :, : ours.length], atol=1e-4, rtol=1e-4)


def test_a_chain_told_as_a_tree_runs_as_a_chain_and_keeps_its_parents():
    lm, blocks = target(), [(standard_ids(target(), PROMPT, max_new_tokens=3), range(-1, 2))]
    done = rounds_of(lm, Told(blocks), PROMPT, k=3, max_new_tokens=9)[0]
    assert spelled(done) == ("AAA", Kind.BONUS) and [draft.parent for draft in done.drafts] == [-1, 0, 1]


# rounds worked by hand

WORDS = ["<unk>", "one ", "two ", "three ", "four ", "five ", "<end>", "six "]
COUNTING = {1: 2, 2: 3, 3: 4, 4: 5, 5: 6, 6: 1, 7: 1}


def counting(eos="<end>"):
    """Counts from one to five, writes the end mark, and starts again."""
    return LanguageModel(scripted_module(COUNTING, 8), words_tokenizer(WORDS, eos=eos))


#   five      two ---- three ---- seven
#                 \          \--- four
#                  seven
IDS, PARENTS = (5, 2, 3, 7, 7, 4), (-1, -1, 1, 1, 2, 2)


def test_a_round_is_as_worked_by_hand():
    first, second, third = rounds_of(counting(), Told([(IDS, PARENTS)]), [1], k=6, max_new_tokens=6, ignore_eos=True)
    assert spelled(first) == ("RAARRA", Kind.BONUS)
    assert [token.id for token in first.kept] == [2, 3, 4, 5]
    assert tuple(draft.parent for draft in first.drafts) == PARENTS
    assert [draft.token.text for draft in first.drafts] == ["five ", "two ", "three ", "six ", "six ", "four "]
    assert (spelled(second), spelled(third)) == (("", Kind.STANDARD), ("", Kind.STANDARD))
    assert [token.id for each in (second, third) for token in each.kept] == [6, 1]


def test_a_target_token_at_a_leaf_is_a_bonus_and_beside_children_a_correction():
    lm = counting()
    asked = {"k": 4, "max_new_tokens": 9}
    beside = rounds_of(lm, Told([((2, 5, 7), (-1, -1, 0))]), [1], **asked)[0]
    assert spelled(beside) == ("ARR", Kind.CORRECTION) and [token.id for token in beside.kept] == [2, 3]
    leaf = rounds_of(lm, Told([((5, 2, 7), (-1, -1, 0))]), [1], **asked)[0]
    assert spelled(leaf) == ("RAU", Kind.BONUS) and [token.id for token in leaf.kept] == [2, 3]
    nothing = rounds_of(lm, Told([((5, 7, 2), (-1, -1, 0))]), [1], **asked)[0]
    assert spelled(nothing) == ("RRU", Kind.CORRECTION) and [token.id for token in nothing.kept] == [2]


@pytest.mark.parametrize(
    ("settings", "verdicts", "reason"),
    [
        ({"max_new_tokens": 1}, "RAUUUU", Reason.LENGTH),
        ({"max_new_tokens": 2}, "RAARUU", Reason.LENGTH),
        ({"max_new_tokens": 3}, "RAARRA", Reason.LENGTH),
        ({"max_new_tokens": 9, "stop": ("three",)}, "RAARUU", Reason.STOP),
    ],
)
def test_the_token_that_ends_a_run_cuts_the_path(settings, verdicts, reason):
    """What follows it is untested, its own siblings are not."""
    rounds, outcome = outcome_of(counting(), Told([(IDS, PARENTS)]), [1], k=6, **settings)
    assert [spelled(each) for each in rounds] == [(verdicts, None)] and outcome.reason is reason


def test_an_accepted_end_mark_ends_the_run():
    blocks = [((7, 4, 5, 6, 1), (-1, -1, 1, 2, 3))]
    rounds, outcome = outcome_of(counting(), Told(blocks), [3], k=5, max_new_tokens=9)
    assert spelled(rounds[0]) == ("RAAAU", None) and outcome.reason is Reason.EOS
    assert outcome.text == "four five " and [token.text for token in rounds[0].kept] == ["four ", "five ", ""]


def test_nodes_are_cut_to_the_room_in_the_context():
    model = table_module(5, 3, sharpness=3.0)
    model.config.max_position_embeddings = 40
    lm = LanguageModel(model, None)
    expected, ending = outcome_of(lm, make_draft("none", lm), [1, 2, 3], max_new_tokens=100)
    strategy = Forest(tuple(ids_of(expected)), 5, 1, 0.7)
    rounds, outcome = outcome_of(lm, strategy, [1, 2, 3], k=16, max_new_tokens=100)
    assert ids_of(rounds) == ids_of(expected) and outcome.reason is ending.reason is Reason.CONTEXT
    assert rounds[-1].k < 16 and "the room left in the context" in rounds[-1].note


# the rule


def decided(p, q, ids, parents, draws, last=0.5):
    p, q = torch.tensor(p), None if q is None else torch.tensor(q)
    uniform = torch.tensor(draws, dtype=torch.float64)
    last = torch.tensor(last, dtype=torch.float64)
    return decide_sampled_tree(p, q, torch.tensor(ids), Tree(parents), uniform, last)


@pytest.mark.parametrize(
    ("draws", "path", "target"),
    [((0.4, 0.0), [True, False], 1), ((0.5, 0.59), [False, True], 0), ((0.5, 0.61), [False, False], 2)],
)
def test_siblings_that_were_not_drawn_are_tested_as_worked_by_hand(draws, path, target):
    """p = (.5, .3, .2), children 0 and 1. After the rejection of 0: (0, .6, .4); of 1 too: (0, 0, 1)."""
    p = [[0.5, 0.3, 0.2], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
    found = decided(p, None, (0, 1), (-1, -1), draws)
    assert (found.path.tolist(), int(found.target)) == (path, target)
    assert found.target_probs.tolist() == pytest.approx([0.5, 0.6])
    assert found.overlaps.tolist() == pytest.approx([0.5, 0.3])


def test_drawn_siblings_are_tested_as_worked_by_hand():
    """p = (.5, .3, .2), q = (.2, .5, .3). Child 1: .3 / .5. Rejected, p becomes (.3, 0, 0) / .3 = (1, 0, 0).

    Then child 0, drawn from q without 1 = (.4, 0, .6): 1 / .4, accepted. The rule takes the first with chance
    sum(min) = .2 + .3 + .2 = .7, else the second with .4: .3 x .4 = .12.
    """
    p, q = [[0.5, 0.3, 0.2], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]], [[0.2, 0.5, 0.3], [0.4, 0.0, 0.6]]
    found = decided(p, q, (1, 0), (-1, -1), (0.61, 0.99))
    assert found.path.tolist() == [False, True] and int(found.target) == 0  # after node 1: (1, 0, 0)
    assert found.target_probs.tolist() == pytest.approx([0.3, 1.0])
    assert found.overlaps.tolist() == pytest.approx([0.7, 0.12])
    assert decided(p, q, (1, 0), (-1, -1), (0.59, 0.99)).path.tolist() == [True, False]


def random_case(seed, nodes, vocabulary=6):
    generator = torch.Generator().manual_seed(seed)
    p = torch.rand(nodes + 1, vocabulary, generator=generator).softmax(-1)
    q = torch.rand(nodes, vocabulary, generator=generator).mul(3).softmax(-1)
    ids = torch.randint(vocabulary, (nodes,), generator=generator)
    draws = torch.rand(nodes + 1, generator=generator, dtype=torch.float64)
    return p, q, ids, draws


@pytest.mark.parametrize("drawn", [True, False])
def test_on_a_chain_the_rule_of_trees_is_that_of_chains(drawn):
    lengths = Counter()
    for seed in range(200):
        p, q, ids, draws = random_case(seed, 4)
        chosen = q if drawn else None
        chain = decide_sampled(p, chosen, ids, draws[:-1], draws[-1])
        tree = decide_sampled_tree(p, chosen, ids, Tree((-1, 0, 1, 2)), draws[:-1], draws[-1])
        assert (int(chain.accepted), int(chain.target)) == (int(tree.accepted), int(tree.target))
        assert torch.allclose(chain.residual, tree.residual, atol=1e-6)
        lengths[int(chain.accepted)] += 1
    assert min(lengths[count] for count in range(3)) > 0


def test_tokens_that_were_not_drawn_are_tokens_drawn_for_certain():
    """The short way for one-hot proposals is the rule with one-hot q, twins among siblings included."""
    twins = 0
    for seed in range(200):
        p, _, ids, draws = random_case(seed, 8)
        tree = Tree(random_parents(random.Random(seed), 8))
        one_hot = torch.nn.functional.one_hot(ids, 6).float()
        short, long = (decide_sampled_tree(p, q, ids, tree, draws[:-1], draws[-1]) for q in (None, one_hot))
        assert short.path.tolist() == long.path.tolist() and int(short.target) == int(long.target)
        assert torch.allclose(short.overlaps, long.overlaps, atol=1e-6)
        assert torch.allclose(short.residual, long.residual, atol=1e-6)
        twins += len({*zip(ids.tolist(), tree.parents, strict=True)}) < 8
    assert twins > 20


def test_a_greedy_walk_takes_the_first_of_twins():
    choices, ids = torch.tensor([4, 1, 2, 3]), torch.tensor([4, 4, 2])
    found = decide_greedy_tree(choices, ids, Tree((-1, -1, 1)))
    assert found.path.tolist() == [True, False, False] and int(found.target) == 1


def test_penalties_of_a_tree_are_those_of_each_way_as_a_chain():
    settings = Settings(repetition_penalty=1.4, presence_penalty=0.7, frequency_penalty=0.3)
    generator, rng = torch.Generator().manual_seed(0), random.Random(0)
    for _ in range(20):
        logits = torch.randn(11, 7, generator=generator)
        ids, parents = torch.randint(7, (10,), generator=generator), random_parents(rng, 10)
        seen, written = torch.randint(3, (7,), generator=generator), torch.randint(2, (7,), generator=generator)
        found = penalise(logits, settings, seen, written, ids, Tree(parents))
        for node in range(10):
            nodes = way(parents, node)
            rows = torch.tensor([0, *(one + 1 for one in nodes)])
            assert torch.allclose(found[node + 1], penalise(logits[rows], settings, seen, written, ids[nodes])[-1])


# telemetry and counts


def sampled_rounds():
    lm = target()
    strategy = Forest(tuple(standard_ids(lm, PROMPT, max_new_tokens=200)), 64, 3, 0.7)
    lookup = make_draft("token-recycling", lm, shape="tree")
    asked = {"k": 12, "max_new_tokens": 60, "temperature": 0.6, "seed": 4}
    return [*rounds_of(lm, strategy, PROMPT, **asked), *rounds_of(lm, lookup, PROMPT, **asked)]


def test_numbers_of_a_sampled_tree_fit_its_verdicts():
    seen = Counter()
    for each in sampled_rounds():
        shares = Counter()
        for draft in each.drafts:
            if draft.verdict is Verdict.UNTESTED:
                assert draft.draw is draft.target_prob is draft.overlap is draft.target_top is None
                continue
            shares[draft.parent] += draft.overlap
            assert 0 <= draft.overlap <= draft.target_prob + 1e-6 and draft.draft_prob == 1.0
            if draft.draw is not None:
                assert (draft.draw < draft.target_prob) == (draft.verdict is Verdict.ACCEPTED)
            else:
                assert draft.verdict is Verdict.REJECTED
            seen[draft.verdict, draft.draw is None] += 1
        assert all(share <= 1 + 1e-5 for share in shares.values())
        corrected = each.target is not None and each.target.kind is Kind.CORRECTION
        assert (each.target is not None and each.target.residual_top is not None) == corrected
    assert len(seen) == 3 and min(seen.values()) > 5  # accepted, rejected, passed over


def test_a_node_was_passed_over_only_beside_an_earlier_sibling_that_was_accepted():
    for each in sampled_rounds():
        for index, draft in enumerate(each.drafts):
            earlier = [one for one in each.drafts[:index] if one.parent == draft.parent]
            tested = draft.verdict is not Verdict.UNTESTED
            assert (tested and draft.draw is None) == any(one.verdict is Verdict.ACCEPTED for one in earlier)


def test_a_race_counts_nodes_and_depths():
    lm = target()
    none, settings = make_draft("none", lm), Settings(k=16, max_new_tokens=40)
    strategy = forest(lm, PROMPT, 5, 0.7, max_new_tokens=40)
    events = list(race([Lane("standard", lm, none, settings), Lane("tree", lm, strategy, settings)], PROMPT))
    rounds = [event.round for event in events if getattr(event, "lane", "") == "tree" and hasattr(event, "round")]
    summary = summarize(events)["tree"]
    assert summary.identical_to_standard and summary.kept_tokens == 40
    assert summary.drafted == 16 * len(rounds) and summary.positions_computed == 17 * len(rounds)
    assert summary.wasted_positions == 17 * len(rounds) - 40
    assert summary.accepted == sum(len(each.accepted) for each in rounds)
    corrections = sum(each.target is not None and each.target.kind is Kind.CORRECTION for each in rounds)
    assert summary.alpha == summary.accepted / (summary.accepted + corrections)
    depths = [max(len(way([d.parent for d in each.drafts], node)) for node in range(16)) for each in rounds]
    assert summary.mean_depth == pytest.approx(sum(depths) / len(rounds)) and summary.mean_drafted == 16


def test_telemetry_never_changes_a_tree_round():
    lm, strategy = target(), forest(target(), PROMPT, 2, 0.7, max_new_tokens=40)
    for temperature in (0.0, 0.7):
        asked = {"k": 9, "max_new_tokens": 40, "temperature": temperature}
        runs = [rounds_of(lm, strategy, PROMPT, telemetry=telemetry, **asked) for telemetry in (True, False)]
        assert [spelled(each) for each in runs[0]] == [spelled(each) for each in runs[1]]
        assert ids_of(runs[0]) == ids_of(runs[1])


# refusals


@pytest.mark.parametrize(
    ("proposal", "says"),
    [
        (Proposal((1, 2, 3, 4)), "4 tokens, but at most 3"),
        (Proposal((1, 64)), "the token id 64"),
        (Proposal((1, -1)), "the token id -1"),
        (Proposal(torch.tensor([64])), "the token id 64"),
        (Proposal((64, 1), parents=(-1, -1)), "the token id 64"),
        (Proposal((1, 2), parents=(-1, 1)), "must follow an earlier"),
        (Proposal((1, 2), parents=(-1, -2)), "must follow an earlier"),
        (Proposal((1, 2), parents=(-1,)), "the parents of 1"),
        (Proposal((1, 2), parents=3), "not a block of tokens"),
        (Proposal((1.5, 2)), "not a block of tokens"),
        (Proposal(torch.tensor([1.0])), "not a block of tokens"),
        (Proposal(torch.tensor([[1]])), "not a block of tokens"),
        (Proposal("12"), "not a block of tokens"),
        (Proposal((1,), probs=torch.ones(1, 3)), "probabilities of the shape"),
    ],
)
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_proposal_that_cannot_be_verified_is_refused_by_the_strategys_name(proposal, says, temperature):
    class Anything(Told):
        def start(self, run):
            drafter = super().start(run)
            drafter.propose = lambda k: proposal
            return drafter

    with pytest.raises(PairError, match=f"The draft 'Anything' proposed.*{says}"):
        rounds_of(target(), Anything(()), PROMPT, k=3, max_new_tokens=9, temperature=temperature)


# token recycling


def test_the_recycled_tree_is_best_first_by_what_ranks_have_earned():
    """Ranks are worth .30, .10 and .06: 1 is worth .30, 2 .10, 3 after 1 .09, 8 .06, and 4 after 1 .03."""
    drafter = make_draft("token-recycling", target(), shape="tree").start(None)
    lists = {7: [1, 2, 8], 1: [3, 4, 8], 2: [5, 8, 9], 3: [6, 8, 9]}
    drafter.observe((7,), Seen(tuple(lists), None, torch.tensor(list(lists.values()))))
    proposal = drafter.propose(5)
    assert (proposal.ids, proposal.parents) == ((1, 2, 3, 8, 4), (-1, -1, 0, -1, 0))
    assert drafter.propose(2).ids == (1, 2) and drafter.propose(0).ids == ()


def test_kinds_of_guesses_are_worth_their_prior_and_then_what_the_run_shows():
    rates = HitRates((0.3, 0.1), weight=10)
    assert rates.chances == [0.3, 0.1]
    for _ in range(10):
        rates.add(0, False)
        rates.add(1, True)
    assert rates.chances == pytest.approx([3 / 20, 11 / 20])
    rates.add(1, False)
    assert rates.chances == pytest.approx([3 / 20, 11 / 21])


def test_the_recycled_tree_keeps_more_tokens_a_pass_than_the_chain():
    lm = LanguageModel(table_module(40, 1, sharpness=2.0), None)
    rounds = {
        shape: len(rounds_of(lm, make_draft("token-recycling", lm, shape=shape), [1, 2], k=16, max_new_tokens=100))
        for shape in ("chain", "tree")
    }
    assert rounds["tree"] < rounds["chain"]


def test_rounds_are_repeated_by_a_seed():
    lm, strategy = target(), make_draft("token-recycling", target(), shape="tree")
    asked = {"k": 9, "max_new_tokens": 40, "temperature": 0.8}
    runs = [rounds_of(lm, strategy, PROMPT, seed=seed, **asked) for seed in (5, 5, 6)]
    drafts = [[(each.drafts, each.target) for each in rounds] for rounds in runs]
    assert drafts[0] == drafts[1] != drafts[2]
