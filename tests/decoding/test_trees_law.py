"""Sampled text has the target's own law where trees draft it, drawn or not; and rules that are wrong are found out.

As in `test_law`: the joint law of the first tokens of seeded runs of `decode` against its enumeration. For the rule
alone the enumeration is exact, over all siblings that a draft may propose, and so are its controls.
"""

from dataclasses import dataclass
from functools import cache, partial
from itertools import product

import pytest
import torch
from support.law import (
    EOS,
    FILTERED,
    LEAST,
    PENALISED,
    PLAIN,
    PROMPT,
    VOCABULARY,
    exact_law,
    p_value,
    table_models,
    tables_of_draft,
)
from support.tree_drafts import way

from specviz import Settings, make_draft
from specviz.core.trees import Tree
from specviz.drafting import Drafter, Proposal, Strategy
from specviz.sampling import sampler as sampling
from specviz.sampling.sampler import decide_sampled_tree, distribution, draw
from specviz.traces import Kind, Verdict

pytestmark = pytest.mark.usefixtures("one_thread")

LENGTH = 3  # as deep as the trees, and the bonus after them
TWO = ((-1, -1),)
SHAPES = ((-1, -1, 0, 0), (-1, 0, -1, 2), (-1, -1, -1, 1), (-1, 0, 0, -1))


@dataclass(frozen=True)
class Grown(Strategy):
    """Trees of the draft's tables, their shapes in turn; `drafter` is how a sibling is chosen."""

    drafter: type[Drafter]
    shapes: tuple

    def start(self, run):
        return self.drafter(
            drafted_law(run.settings.temperature, run.settings.top_k, run.settings.top_p), run, self.shapes
        )


@cache
def drafted_law(temperature, top_k, top_p):
    """(v + 1, v, v): the draft's distributions, filtered once for all runs."""
    tables = torch.tensor(tables_of_draft(), dtype=torch.float32)
    asked = Settings(temperature=temperature, top_k=top_k, top_p=top_p)
    return distribution(tables.flatten(0, 1), asked).view_as(tables)


class Favourites(Drafter):
    """Nothing is drawn: the siblings are the draft's favourites, the second of them first."""

    drawn = False

    def __init__(self, law, run, shapes):
        self._law, self._run, self._text, self._shapes = law, run, [], shapes

    def observe(self, kept_ids, seen):
        self._text.extend(kept_ids)

    def propose(self, k):
        parents = self._shapes[len(self._text) % len(self._shapes)][:k]
        ids, probs = [], []
        for node, parent in enumerate(parents):
            text = [*self._text, *(ids[one] for one in way(parents, parent))]
            earlier = [ids[one] for one in range(node) if parents[one] == parent]
            token, q = self.choose(self._law[text[-2] + 1, text[-1]], earlier)
            ids.append(token)
            probs.append(q)
        return Proposal(tuple(ids), torch.stack(probs) if self.drawn and probs else None, parents=parents)

    def choose(self, q, earlier):
        return q.argsort(descending=True).tolist()[(1, 0, 2, 3)[len(earlier)]], q

    def draw(self, q):
        return int(draw(q[None], self._run.draws(1)))


class Independent(Favourites):
    """Siblings are drawn from one distribution, twins and all."""

    drawn = True

    def choose(self, q, earlier):
        return self.draw(q), q


class Different(Independent):
    """Siblings are drawn without replacement, as long as there is anything left."""

    def choose(self, q, earlier):
        left = q.clone()
        left[earlier] = 0.0
        left = left / left.sum() if left.sum() > 0 else q
        return self.draw(left), left


def grown(drafter, shapes, model, draft):
    return Grown(drafter, shapes)


def recycling(model, draft):
    return make_draft("token-recycling", model, shape="tree")


def law_of(settings, length, eos=None):
    return exact_law(table_models(eos)[2], PROMPT, length, settings, eos)


CASES = [
    pytest.param(Favourites, PLAIN, None, id="favourites", marks=pytest.mark.slow),
    pytest.param(Favourites, FILTERED, None, id="favourites, filtered", marks=pytest.mark.slow),
    pytest.param(Favourites, PENALISED, None, id="favourites, penalised"),
    pytest.param(Favourites, PLAIN, EOS, id="favourites, EOS", marks=pytest.mark.slow),
    pytest.param(Independent, PLAIN, None, id="independent", marks=pytest.mark.slow),
    pytest.param(Independent, FILTERED, EOS, id="independent, filtered, EOS", marks=pytest.mark.slow),
    pytest.param(Different, PLAIN, None, id="different", marks=pytest.mark.slow),
    pytest.param(Different, FILTERED, None, id="different, filtered", marks=pytest.mark.slow),
    pytest.param(Different, PENALISED, None, id="different, penalised", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("drafter", "settings", "eos"), CASES)
def test_text_drafted_by_trees_has_the_law_of_the_target(workers, drafter, settings, eos):
    texts, verdicts = workers.sample(partial(grown, drafter, SHAPES), 4, settings, eos, length=LENGTH)
    assert p_value(texts, law_of(settings, LENGTH, eos)) >= LEAST
    assert min(verdicts[one] for one in (*Verdict, Kind.BONUS, Kind.CORRECTION)) > 50


@pytest.mark.slow
@pytest.mark.parametrize("drafter", [Favourites, Different])
def test_two_children_have_the_law_of_the_target(workers, drafter):
    texts, _ = workers.sample(partial(grown, drafter, TWO), 2, PLAIN, length=3)
    assert p_value(texts, law_of(PLAIN, 3)) >= LEAST


@pytest.mark.slow
def test_recycled_trees_have_the_law_of_the_target(workers):
    texts, verdicts = workers.sample(recycling, 5, FILTERED, length=LENGTH)
    assert p_value(texts, law_of(FILTERED, LENGTH)) >= LEAST and verdicts[Verdict.ACCEPTED] > 1000


def never_renormalised(p, drafts, tree):
    """A second child meets the p that it would have met as the first."""
    _, overlaps, left = sampling_meet_one_hot(p, drafts, tree)
    return overlaps, overlaps, left


def always_the_first_p(p, q, drafts, tree):
    """A rejection takes nothing away."""
    rows = torch.tensor(tree.parents) + 1
    return p[rows, drafts], p[rows, drafts], lambda stop: p[stop]


sampling_meet_one_hot = sampling._meet_one_hot
ONE_HOT, DRAWN = "specviz.sampling.sampler._meet_one_hot", "specviz.sampling.sampler._meet_drawn"


# the rule alone, without a draw: the chance of every outcome, summed over all that a draft may propose


def law_of_the_rule(p, q, different, count, told=None, report=lambda ids, rows, q: (ids, rows)):
    """The law of the next token after `count` siblings drawn from q one by one, or told ones that were not drawn.

    `report` is what the strategy makes of the siblings and their distributions before the rule sees them.
    """
    law = torch.zeros(VOCABULARY, dtype=torch.float64)
    for ids in product(range(VOCABULARY), repeat=count) if told is None else (told,):
        chance, rows = 1.0, []
        for index, token in enumerate(ids):
            left = q.clone()
            left[list(ids[:index])] *= 0.0 if different else 1.0
            rows.append(left / left.sum() if left.sum() > 0 else q)
            chance *= float(rows[-1][token]) if told is None else 1.0
        if chance > 0:
            shown, rows = report(ids, torch.stack(rows), q)
            law += chance * outcomes(p, None if told else rows, shown)
    return law


def outcomes(p, q, ids):
    """The chance of each next token, given the siblings `ids`: from what the rule says that each of them meets."""
    draws = torch.full((len(ids),), 1 - 2**-53, dtype=torch.float64)  # no draw is more of a rejection
    rows = torch.cat([p[None], torch.full((len(ids), VOCABULARY), 1 / VOCABULARY)])
    found = decide_sampled_tree(rows, q, torch.tensor(ids), Tree((-1,) * len(ids)), draws, draws[0])
    law, left = torch.zeros(VOCABULARY, dtype=torch.float64), 1.0
    for token, met, drawn in zip(ids, found.target_probs.tolist(), found.draft_probs.tolist(), strict=True):
        accepted = min(1.0, met / drawn)
        law[token] += left * accepted
        left *= 1 - accepted
    return law + left * found.residual.double() if left > 1e-9 else law


def laws(seed):
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(VOCABULARY, generator=generator).softmax(-1) for _ in range(2))


@pytest.mark.parametrize("count", [1, 2, 3])
def test_whatever_siblings_are_proposed_the_next_token_has_the_law_of_the_target(count):
    for seed in range(2):
        p, q = laws(seed)
        for different in (True, False):
            assert torch.allclose(law_of_the_rule(p, q, different, count), p.double(), atol=1e-5)
        for told in ((4, 0, 2)[:count], (1, 1, 3)[:count]):
            assert torch.allclose(law_of_the_rule(p, q, False, count, told), p.double(), atol=1e-5)


@pytest.mark.parametrize(
    ("where", "wrong", "told"), [(ONE_HOT, never_renormalised, (4, 0)), (DRAWN, always_the_first_p, None)]
)
def test_a_rule_that_forgets_a_rejection_has_another_law(monkeypatch, where, wrong, told):
    monkeypatch.setattr(where, wrong)
    p, q = laws(0)
    assert (law_of_the_rule(p, q, True, 2, told) - p.double()).abs().max() > 0.01


def not_renormalised(ids, rows, q):
    """Drawn without replacement, and reported as if with it."""
    return ids, q.expand_as(rows)


def sorted_after_the_draw(ids, rows, q):
    """The likelier of the siblings first: the order then depends on what was drawn."""
    order = sorted(range(len(ids)), key=lambda one: -float(q[ids[one]]))
    return tuple(ids[one] for one in order), rows[order]


@pytest.mark.parametrize(("report", "different"), [(not_renormalised, True), (sorted_after_the_draw, False)])
def test_a_strategy_that_misreports_its_siblings_has_another_law(report, different):
    p, q = laws(0)
    assert (law_of_the_rule(p, q, different, 2, report=report) - p.double()).abs().max() > 0.005
