"""The law of sampled text: enumerated by hand in plain Python, sampled through `decode`, and compared.

Models have five tokens and look two tokens back, so the joint law of the first few tokens shows a wrong bonus or a
wrong correction, which a test of the first token alone cannot. Runs are spread over two processes.
"""

import math
import os
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from functools import cache, partial
from multiprocessing import get_context
from unittest import mock

import torch
from support.tiny import table_logits, table_module

PROMPT = (
    2,
    0,
    3,
    3,
    4,
    4,
    4,
    4,
    0,
    0,
    3,
    3,
)  # repeats for a lookup; without token 1, so that a penalty tells ids apart
VOCABULARY = 5
LEAST = 1e-4
EOS = 3
RUNS = 5000
_LEAST_EXPECTED = 5.0
_PARTS = 4  # of a test's runs: a worker that has to wait leaves the rest to the other

PLAIN = {"temperature": 1.0}
FILTERED = {"temperature": 0.8, "top_k": 4, "top_p": 0.9}
PENALISED = {
    "temperature": 1.2, "top_p": 0.95, "repetition_penalty": 1.5, "presence_penalty": 0.3, "frequency_penalty": 0.4,
}  # fmt: skip


# the law by hand


def exact_law(tables, prompt, length, settings, eos=None):
    """{tokens: probability} of the first `length` tokens after `prompt`; a text that ends with `eos` is shorter."""
    law, open_texts = {}, {(): 1.0}
    for _ in range(length):
        grown = {}
        for text, mass in open_texts.items():
            for token, chance in enumerate(next_law(tables, prompt, text, settings)):
                if chance > 0:
                    grown[(*text, token)] = mass * chance
        law |= {text: mass for text, mass in grown.items() if text[-1] == eos}
        open_texts = {text: mass for text, mass in grown.items() if text[-1] != eos}
    return law | open_texts


def next_law(tables, prompt, text, settings):
    """The distribution of the next token: penalties, temperature, top-k, top-p."""
    whole = (*prompt, *text)
    older = whole[-2] + 1 if len(whole) > 1 else 0
    logits = _penalised(list(tables[older][whole[-1]]), whole, text, settings)
    weights = [math.exp(logit / settings["temperature"]) for logit in logits]
    order = sorted(range(len(weights)), key=lambda token: -weights[token])
    order = order[: settings.get("top_k") or len(order)]
    total, before, kept = sum(weights[token] for token in order), 0.0, []
    for token in order:
        if before < settings.get("top_p", 1.0):
            kept.append(token)
        before += weights[token] / total
    mass = sum(weights[token] for token in kept)
    return [weights[token] / mass if token in kept else 0.0 for token in range(len(weights))]


def _penalised(logits, whole, text, settings):
    repetition = settings.get("repetition_penalty", 1.0)
    for token in range(len(logits)):
        if token in whole:
            logits[token] = logits[token] / repetition if logits[token] > 0 else logits[token] * repetition
        if token in text:
            logits[token] -= settings.get("presence_penalty", 0.0)
            logits[token] -= settings.get("frequency_penalty", 0.0) * text.count(token)
    return logits


def p_value(counts, law):
    """Pearson's chi-square of observed texts against their law, cells pooled to an expectation of at least 5."""
    runs = sum(counts.values())
    if any(law.get(text, 0.0) == 0.0 for text in counts):
        return 0.0  # a text that cannot be
    cells, rest = [], [0.0, 0]
    for text, mass in law.items():
        if mass * runs >= _LEAST_EXPECTED:
            cells.append((mass * runs, counts[text]))
        else:
            rest = [rest[0] + mass * runs, rest[1] + counts[text]]
    if rest[0] >= _LEAST_EXPECTED:
        cells.append(tuple(rest))
    elif rest[0] > 0:
        expected, found = cells.pop(cells.index(min(cells)))
        cells.append((expected + rest[0], found + rest[1]))
    statistic = sum((found - expected) ** 2 / expected for expected, found in cells)
    half = torch.tensor([(len(cells) - 1) / 2, statistic / 2], dtype=torch.float64)
    return float(torch.special.gammaincc(half[0], half[1]))


# runs


@cache
def table_models(eos=None):
    """The target, a draft that is half of it, and the target's tables."""
    from support import tiny
    from support.quick_tables import QuickTables

    from specviz import LanguageModel

    ids = () if eos is None else (eos,)
    module = tiny.table_module(VOCABULARY, 3)
    draft = tiny.table_module(VOCABULARY, 4, like=module)
    models = (LanguageModel(module, None, eos_ids=ids), LanguageModel(draft, None))
    return *map(QuickTables.speed_up, models), tiny.table_logits(module)


def sample_runs(make, patches, k, length, settings, eos, seeds):
    """Counts of texts and of verdicts over `seeds`. `make(target, draft)` gives the strategy."""
    from specviz import Settings, decode

    model, draft, _ = table_models(eos)
    strategy, texts, verdicts = make(model, draft), Counter(), Counter()
    with ExitStack() as stack:
        for where, replacement in patches:
            stack.enter_context(mock.patch(where, replacement))
        for seed in seeds:
            asked = Settings(k=k, max_new_tokens=length, seed=seed, telemetry=False, **settings)
            rounds = list(decode(model, strategy, PROMPT, asked))
            texts[tuple(token.id for each in rounds for token in each.kept)] += 1
            verdicts.update(draft.verdict for each in rounds for draft in each.drafts)
            verdicts.update(each.target.kind for each in rounds if each.target)
    return texts, verdicts


class Workers:
    """Two processes, a thread each; starting them costs as much as a test, so all tests share them."""

    def __init__(self):
        self._pool = ProcessPoolExecutor(2, mp_context=get_context("spawn"), initializer=_one_thread)

    def sample(self, make, k, settings, eos=None, patches=(), runs=RUNS, length=None):
        """`runs` seeded runs of the first `length` (or k + 2) tokens."""
        return self.spread(partial(sample_runs, make, patches, k, length or k + 2, settings, eos), runs)

    def spread(self, work, runs):
        """The sums of what `work(seeds)` counts, texts and verdicts, over `runs` seeds."""
        parts = list(self._pool.map(work, (range(start, runs, _PARTS) for start in range(_PARTS))))
        return sum((texts for texts, _ in parts), Counter()), sum((verdicts for _, verdicts in parts), Counter())

    def close(self):
        self._pool.shutdown(cancel_futures=True)


def _one_thread():
    os.environ["CPU_CORES"] = "1"
    torch.set_num_threads(1)


def tables_of_draft():
    return table_logits(table_module(VOCABULARY, 4, like=table_module(VOCABULARY, 3)))
