"""Sampled text has the target's own law, whatever drafts it; and rules that are wrong are found out.

Most tests compare the joint law of the first k + 2 tokens of 5,000 seeded runs of `decode` with its enumeration. A
right rule fails at p < 1e-4 once in 10,000 such tests; the seeds are fixed, so it fails always or never.
"""

from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pytest
import torch
from support.law import (
    EOS,
    FILTERED,
    LEAST,
    PENALISED,
    PLAIN,
    PROMPT,
    RUNS,
    VOCABULARY,
    exact_law,
    p_value,
    table_models,
    tables_of_draft,
)
from support.quick_tables import QuickTables
from support.tiny import TableConfig, TableLM, ids_of, rounds_of, table_module
from support.tiny_drafts import make_strategy

from specviz import LanguageModel, Settings
from specviz.drafting import Drafter, Proposal, Strategy, strategies
from specviz.sampling.sampler import decide_sampled, distribution, draw
from specviz.traces import Kind, Verdict

pytestmark = pytest.mark.usefixtures("one_thread")

FOUND_OUT = 1e-8  # how surely a control must fail
KINDS = {"plain": (PLAIN, None), "with EOS": (PLAIN, EOS), "filtered": (FILTERED, None), "penalised": (PENALISED, None)}
# what every change runs; all else is for the long run. The short case where another strategy takes the same way:
# an early exit and a student draft as a draft model does, and a cross-tokenizer draft of these models is one
QUICK = [(2, "penalised")]
QUICK_FOR = {
    "draft-model": [(1, "filtered"), (1, "with EOS"), (2, "plain"), (2, "penalised")],
    "prompt-lookup": [(1, "filtered"), (2, "penalised")],
    "early-exit": [(1, "filtered")],
    "ngram-table": [(1, "filtered")],
    "student": [(1, "filtered")],
    "feature-head": [(1, "filtered")],
    "cross-tokenizer": [],
}
CASES = [(name, k, kind) for name in strategies() for k in (1, 2) for kind in KINDS]


def law_of(settings, k, eos=None):
    return exact_law(table_models(eos)[2], PROMPT, k + 2, settings, eos)


def registered(name, model, draft):
    return make_strategy(name, model, draft)


def marks(name, k, kind):
    return () if (k, kind) in QUICK_FOR.get(name, QUICK) else pytest.mark.slow


@pytest.mark.parametrize(("name", "k", "kind"), [pytest.param(*case, marks=marks(*case)) for case in CASES])
def test_sampled_text_has_the_law_of_the_target(workers, name, k, kind):
    settings, eos = KINDS[kind]
    texts, verdicts = workers.sample(partial(registered, name), k, settings, eos)
    assert p_value(texts, law_of(settings, k, eos)) >= LEAST
    if strategies()[name].drafts:
        assert all(verdicts[one] > 50 for one in (*Verdict, *Kind) if one not in (Verdict.UNTESTED, Kind.STANDARD))


def test_the_quick_way_through_the_tables_is_the_modules():
    module = table_module(VOCABULARY, 3)
    quick, plain = QuickTables.speed_up(LanguageModel(module, None)), LanguageModel(module, None)
    with quick.open(40) as ours, plain.open(40) as theirs:
        for ids, kept in (([2], 1), ([0, 3, 1, 4], 2), ([4, 4], 0), ([1], 1), ([2, 0, 1], 3), ([4], 1)):
            assert torch.equal(ours.forward(ids), theirs.forward(ids))
            ours.keep(kept)
            theirs.keep(kept)
    assert quick.executor.path == "tables" and plain.executor.path == "plain"


# drafts of our own: the tables of the draft model, read without a cache


@dataclass(frozen=True)
class TableDraft(Strategy):
    """Drafts from tables; `drafter` is how."""

    tables: Any  # (v + 1, v, v) logits
    drafter: type[Drafter]

    def start(self, run):
        return self.drafter(torch.tensor(self.tables, dtype=torch.float32), run)


class Right(Drafter):
    """The rule as it should be; `step` is what the others do otherwise."""

    def __init__(self, tables, run):
        self._tables, self._run, self._text = tables, run, []

    def observe(self, kept_ids, seen):
        self._text.extend(kept_ids)

    def propose(self, k):
        text, probs = list(self._text), []
        for _ in range(k):
            logits = self._tables[text[-2] + 1, text[-1]]
            token, q = self.step(logits, distribution(logits[None], self._run.settings)[0])
            if token is None:
                break
            text.append(token)
            probs.append(q)
        drafted = text[len(self._text) :]
        return Proposal(drafted, torch.stack(probs) if probs else None)

    def draw(self, q):
        return int(draw(q[None], self._run.draws(1)))

    def step(self, logits, q):
        return self.draw(q), q


class CutBeforeTheDraw(Right):
    """Stops where no token is likely: known before the token is drawn."""

    def step(self, logits, q):
        return (None, q) if q.max() < 0.4 else (self.draw(q), q)


class CutAfterTheDraw(Right):
    """Stops where the token that was drawn is unlikely, and so never proposes such a one."""

    def step(self, logits, q):
        token = self.draw(q)
        return (None, q) if q[token] < 0.4 else (token, q)


class RawRatio(Right):
    """Draws from the filtered distribution and reports the unfiltered one."""

    def step(self, logits, q):
        return self.draw(q), logits.softmax(-1)


class UnmaskedIds(Right):
    """Draws over one id more than the target has, and proposes id 0 in its stead."""

    def step(self, logits, q):
        wide = torch.cat([logits, logits.max()[None]])
        token = self.draw(distribution(wide[None], self._run.settings)[0])
        return (0 if token == len(logits) else token), q


def correction_from_p(p, q):
    return p


def bonus_from_q(p, q, drafts, draws, last_draw):
    decision = decide_sampled(p, q, drafts, draws, last_draw)
    if len(drafts) and int(decision.accepted) == len(drafts):
        return replace(decision, target=draw(q[-1:], last_draw[None])[0])
    return decision


CORRECTION_FROM_P = ("specviz.sampling.sampler.residual", correction_from_p)
BONUS_FROM_Q = ("specviz.decoding.engine.decide_sampled", bonus_from_q)


def table_draft(drafter, model, draft):
    return TableDraft(tables_of_draft(), drafter)


@pytest.mark.parametrize(("drafter", "settings"), [(Right, FILTERED), (CutBeforeTheDraw, PLAIN)])
def test_a_draft_cut_by_what_was_known_before_the_draw_keeps_the_law(workers, drafter, settings):
    texts, verdicts = workers.sample(partial(table_draft, drafter), 2, settings)
    assert p_value(texts, law_of(settings, 2)) >= LEAST
    assert drafter is Right or verdicts[Kind.STANDARD] > 500


@pytest.mark.parametrize(
    ("make", "settings", "patches"),
    [
        pytest.param(partial(table_draft, RawRatio), FILTERED, (), id="raw q in the ratio"),
        pytest.param(partial(table_draft, UnmaskedIds), PLAIN, (), id="unmasked ids"),
        pytest.param(partial(table_draft, CutAfterTheDraw), PLAIN, (), id="a stop that drops the drawn token"),
        pytest.param(partial(table_draft, Right), PLAIN, (CORRECTION_FROM_P,), id="correction from p"),
        pytest.param(partial(table_draft, Right), PLAIN, (BONUS_FROM_Q,), id="bonus from q"),
    ],
)
def test_a_wrong_rule_is_found_out(workers, make, settings, patches):
    texts, _ = workers.sample(make, 2, settings, patches=patches, runs=RUNS // 2)
    assert p_value(texts, law_of(settings, 2)) < FOUND_OUT


def test_dropping_an_unlikely_drawn_token_bends_the_law_as_worked_by_hand():
    """p = (.5, .3, .2), q = (.2, .5, .3), cut at .4.

    Token 1 is drawn half the time: accepted with .3 / .5, so .3 of it; else the residual (.2, 0, 0) gives .2 to
    token 0. The other half is dropped and drawn from p: (.25, .15, .10). Together (.45, .45, .10).
    """
    target = TableLM(TableConfig(vocab_size=3, num_hidden_layers=1)).eval()
    with torch.no_grad():
        target.layers[0].weight.copy_(torch.tensor([0.5, 0.3, 0.2]).log().expand(12, 3))
    model = QuickTables.speed_up(LanguageModel(target, None))
    q = torch.tensor([0.2, 0.5, 0.3]).log().expand(4, 3, 3).tolist()
    counts = {drafter: Counter() for drafter in (Right, CutAfterTheDraw)}
    for seed in range(2000):
        for drafter, found in counts.items():
            settings = {"k": 1, "max_new_tokens": 1, "temperature": 1.0, "seed": seed, "telemetry": False}
            found[tuple(ids_of(rounds_of(model, TableDraft(q, drafter), [0, 1], **settings)))] += 1
    bent, true = {(0,): 0.45, (1,): 0.45, (2,): 0.10}, {(0,): 0.5, (1,): 0.3, (2,): 0.2}
    assert p_value(counts[CutAfterTheDraw], bent) >= LEAST > FOUND_OUT > p_value(counts[CutAfterTheDraw], true)
    assert p_value(counts[Right], true) >= LEAST


# the rule alone, a million blocks at once

BLOCKS = 1_000_000


def million(drawn, decide, settings=PLAIN):
    """Counts of the first three tokens of 10^6 blocks with two drafts, and the share whose first draft was kept."""
    generator = torch.Generator().manual_seed(0)
    asked = Settings(**settings)
    p_tables, q_tables = (
        distribution(torch.tensor(tables).float().flatten(0, 1), asked).view(VOCABULARY + 1, VOCABULARY, VOCABULARY)
        for tables in (table_models()[2], tables_of_draft())
    )
    counts, kept = torch.zeros(VOCABULARY**3, dtype=torch.long), 0
    for _ in range(4):
        tokens, accepted = _blocks(p_tables, q_tables, BLOCKS // 4, drawn, decide, generator)
        counts += torch.bincount(tokens @ torch.tensor([VOCABULARY**2, VOCABULARY, 1]), minlength=len(counts))
        kept += int((accepted > 0).sum())
    size = VOCABULARY
    texts = {(i // size**2, i // size % size, i % size): n for i, n in enumerate(counts.tolist()) if n}
    return Counter(texts), kept / BLOCKS, p_tables, q_tables


def _blocks(p_tables, q_tables, count, drawn, decide, generator):
    """`count` blocks from one context: the tokens kept, filled up to three from the target's own law."""
    uniform = partial(torch.rand, dtype=torch.float64, generator=generator)
    first = q_tables[PROMPT[-2] + 1, PROMPT[-1]].expand(count, -1)
    one = draw(first, uniform(count)) if drawn else first.argmax(-1)
    second = q_tables[PROMPT[-1] + 1, one]
    two = draw(second, uniform(count)) if drawn else second.argmax(-1)
    drafts = torch.stack([one, two], -1)
    start = p_tables[PROMPT[-2] + 1, PROMPT[-1]].expand(count, -1)
    p = torch.stack([start, p_tables[PROMPT[-1] + 1, one], p_tables[one + 1, two]], 1)
    q = torch.stack([first, second], 1) if drawn else None
    decision = decide(p, q, drafts, uniform(count, 2), uniform(count))
    tokens = torch.cat([drafts, drafts.new_zeros(count, 1)], 1)
    tokens.scatter_(1, decision.accepted[:, None], decision.target[:, None])
    for place in (1, 2):
        before = tokens[:, place - 2] if place > 1 else torch.full((count,), PROMPT[-1])
        fresh = draw(p_tables[before + 1, tokens[:, place - 1]], uniform(count))
        tokens[:, place] = torch.where(decision.accepted < place, fresh, tokens[:, place])
    return tokens, decision.accepted


@pytest.mark.parametrize("settings", [PLAIN, FILTERED])
@pytest.mark.parametrize("drawn", [True, False])
def test_a_million_blocks_have_the_law_and_the_acceptance_rate(drawn, settings):
    texts, kept, p_tables, q_tables = million(drawn, decide_sampled, settings)
    assert p_value(texts, exact_law(table_models()[2], PROMPT, 3, settings)) >= LEAST
    p, q = (tables[PROMPT[-2] + 1, PROMPT[-1]] for tables in (p_tables, q_tables))
    share = float(torch.minimum(p, q).sum() if drawn else p[q.argmax()])
    assert abs(kept - share) < 5 * (share * (1 - share) / BLOCKS) ** 0.5  # five standard deviations


def test_a_million_blocks_find_out_a_ratio_wrong_by_a_tenth():
    def slightly_generous(p, q, drafts, draws, last_draw):
        return decide_sampled(p, q, drafts, draws * 0.9, last_draw)

    texts, *_ = million(True, slightly_generous)
    assert p_value(texts, exact_law(table_models()[2], PROMPT, 3, PLAIN)) < FOUND_OUT
