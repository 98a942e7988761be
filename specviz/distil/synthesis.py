"""Write text with a target alone: it writes prompts, then answers them. No data set is needed.

An instruct model that is given only the chat header of a user's turn writes a user's turn (Magpie, Xu et al. 2024). The
prompts are drawn at temperature 1 for variety and answered greedily, since greedy text is what a draft will meet. A
base model starts from its first token and continues what it has drawn. A batch's draws depend on the seed and the
number of the batch alone, so a resumed run writes the text of an uninterrupted one.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor
from transformers import (
    GenerationConfig,
    LogitsProcessor,
    LogitsProcessorList,
    StoppingCriteria,
    StoppingCriteriaList,
)

from specviz.core.errors import InputError
from specviz.distil.corpus import Conversation, Corpus
from specviz.distil.plan import SynthesisRecipe
from specviz.distil.prompt_format import prompt_format
from specviz.distil.teacher import Teacher
from specviz.sources import Progress

LEAST_BATCHES = 2  # one to hold out, one to learn from
_MOST_EMPTY_BATCHES = 5  # in a row
_SEED_STRIDE = 1_000_003  # keeps the batches of neighbouring seeds apart


def corpus_facts(teacher: Teacher, recipe: SynthesisRecipe, seed: int) -> dict[str, Any]:
    """What a corpus says of its text. Text of other facts is never added to it."""
    return {
        "target": teacher.source,
        "name": teacher.name,
        "revision": teacher.checkpoint.revision,
        "licence": teacher.checkpoint.licence,
        "dtype": str(teacher.module.dtype).removeprefix("torch."),
        "settings": asdict(recipe),
        "seed": seed,
    }


def synthesise(
    teacher: Teacher, corpus: Corpus, recipe: SynthesisRecipe, seconds: float, tokens: int | None, progress: Progress
) -> None:
    """Add batches until the corpus holds `tokens` reply tokens or, if that is None, until it has taken `seconds`.

    Earlier runs count. The corpus holds at least `LEAST_BATCHES` batches afterwards; each is on the disk before the
    next begins. Raises InputError where the target writes no new prompts.
    """
    writer = _Writer(teacher, recipe, corpus.facts["seed"])
    seen, empty = {conversation.prompt for conversation in corpus}, 0
    while not is_enough(corpus, seconds, tokens):
        progress(_fraction(corpus, seconds, tokens), _sentence(corpus))
        start = time.monotonic()
        batch = [each for each in writer.batch(corpus.batches) if each.prompt not in seen]
        corpus.add(batch, time.monotonic() - start)
        seen.update(each.prompt for each in batch)
        empty = 0 if batch else empty + 1
        if empty == _MOST_EMPTY_BATCHES:
            raise InputError(
                f"{teacher.name} writes no new prompts; choose another target, or ask for less text with --tokens."
            )
    progress(1.0, _sentence(corpus))


def is_enough(corpus: Corpus, seconds: float, tokens: int | None) -> bool:
    """Whether `synthesise` would add nothing."""
    return corpus.batches >= LEAST_BATCHES and _fraction(corpus, seconds, tokens) == 1.0


def _fraction(corpus: Corpus, seconds: float, tokens: int | None) -> float:
    """How much of the text is written, in [0, 1]."""
    done, wanted = (corpus.seconds, seconds) if tokens is None else (corpus.tokens, tokens)
    return 1.0 if done >= wanted else done / wanted


def _sentence(corpus: Corpus) -> str:
    speed = f", {corpus.tokens / corpus.seconds:,.0f} per second" if corpus.seconds else ""
    return f"Writing text: {corpus.tokens:,} reply tokens for {len(corpus):,} prompts{speed}"


class _Writer:
    """Writes batches of conversations with transformers' own generation."""

    def __init__(self, teacher: Teacher, recipe: SynthesisRecipe, seed: int) -> None:
        self._teacher, self._recipe, self._seed = teacher, recipe, seed
        self._format = prompt_format(teacher)
        room = teacher.context_length - len(self._format.header)
        self._prompt_tokens = max(1, min(recipe.prompt_tokens, room // 3))

    def batch(self, number: int) -> list[Conversation]:
        """The conversations of batch `number` in the order they were drawn, without empty or repeated prompts."""
        prompts = list(dict.fromkeys(self._prompts(number)))
        return [
            Conversation((*prompt, *reply), len(prompt))
            for prompt, reply in zip(prompts, self._replies(prompts), strict=True)
            if reply
        ]

    def _prompts(self, number: int) -> Iterator[tuple[int, ...]]:
        generator = torch.Generator(self._teacher.module.device).manual_seed(_SEED_STRIDE * self._seed + number)
        headers = [self._format.header] * self._recipe.batch
        written = self._generate(headers, self._prompt_tokens, self._format.ends, [_Draw(self._recipe, generator)])
        if self._format.chat and any(end is not None for _, end in written):
            # an unfinished prompt is no question; a target that never ends a turn has no others
            written = [(ids, end) for ids, end in written if end is not None]
        for ids, _ in written:
            prompt = self._format.render(self._teacher, ids)
            if prompt and len(prompt) < self._teacher.context_length:
                yield prompt

    def _replies(self, prompts: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
        """Greedy replies, with the end token of those that reached it."""
        if not prompts:
            return []
        length = min(self._recipe.reply_tokens, self._teacher.context_length - max(map(len, prompts)))
        replies = self._generate(prompts, length, self._teacher.eos_ids, [])
        return [(*reply, end) if end is not None else reply for reply, end in replies]

    @torch.inference_mode()
    def _generate(
        self, texts: Sequence[tuple[int, ...]], length: int, ends: Sequence[int], processors: Sequence[LogitsProcessor]
    ) -> list[tuple[tuple[int, ...], int | None]]:
        """For each text (its continuation without the end token, that token or None)."""
        ids, mask = _left_padded(texts, self._teacher.module.device)
        output = self._teacher.module.generate(
            ids,
            attention_mask=mask,
            generation_config=GenerationConfig(
                do_sample=False, max_new_tokens=length, eos_token_id=list(ends) or None, pad_token_id=0
            ),
            logits_processor=LogitsProcessorList(processors),
            stopping_criteria=StoppingCriteriaList([_FewUnfinished(ends, self._recipe.stragglers)]),
        )
        return [_until_end(row, ends) for row in output[:, ids.shape[1] :].tolist()]


class _Draw(LogitsProcessor):
    """Draws each row's token and leaves it as the only choice, without sorting the whole vocabulary.

    transformers' own sampling sorts every row, which takes longer than the model's pass.
    """

    def __init__(self, recipe: SynthesisRecipe, generator: torch.Generator) -> None:
        self._recipe, self._generator = recipe, generator

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        logits, ids = scores.float().topk(min(self._recipe.top_k, scores.shape[-1]))
        probs = (logits / self._recipe.temperature).softmax(-1)
        mass_before = probs.cumsum(-1) - probs
        kept = probs.masked_fill(mass_before >= self._recipe.top_p, 0.0)
        drawn = torch.multinomial(kept, 1, generator=self._generator)
        return torch.full_like(scores, -torch.inf).scatter_(1, ids.gather(1, drawn), 0.0)


class _FewUnfinished(StoppingCriteria):
    """Ends a batch once at most a share of its rows is unfinished: a step for those few costs as much as for all."""

    def __init__(self, ends: Sequence[int], share: float) -> None:
        self._ends, self._share = torch.tensor(list(ends), dtype=torch.long), share
        self._ended: Tensor | None = None

    def __call__(self, input_ids: Tensor, scores: Any, **_: Any) -> Tensor:
        last = torch.isin(input_ids[:, -1], self._ends.to(input_ids.device))
        self._ended = last if self._ended is None else self._ended | last
        return torch.full_like(last, bool((~self._ended).float().mean() <= self._share))


def _left_padded(texts: Sequence[tuple[int, ...]], device: torch.device) -> tuple[Tensor, Tensor]:
    """(ids, mask), both (texts, longest), where every row ends with the last token of its text."""
    longest = max(map(len, texts))
    ids = torch.tensor([[0] * (longest - len(text)) + list(text) for text in texts], device=device)
    mask = torch.tensor([[0] * (longest - len(text)) + [1] * len(text) for text in texts], device=device)
    return ids, mask


def _until_end(row: list[int], ends: Sequence[int]) -> tuple[tuple[int, ...], int | None]:
    """A row up to its first end token, and that token."""
    place = next((place for place, token in enumerate(row) if token in ends), None)
    return (tuple(row), None) if place is None else (tuple(row[:place]), row[place])
