"""Text from a target alone: it writes prompts, then answers them. No data set is needed.

An instruct model that is given only its chat header for the user's turn writes a user's turn (as Magpie, Xu et al.
2024); the prompts are drawn at temperature 1, so the text has variety, and answered greedily, so it is the very text
that a draft will meet. A base model starts from its first token and goes on from what it has drawn. A batch's draws
depend on the seed and the batch's number alone, so that a resumed run writes what an uninterrupted one would.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
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
from specviz.distil.chat import ChatForm, chat_form, rendered
from specviz.distil.corpus import Conversation, Corpus
from specviz.distil.teacher import Teacher
from specviz.sources import Progress

LEAST_BATCHES = 2  # one to hold out, one to learn from
_MOST_IN_VAIN = 5  # batches in a row that bring nothing new
_SEEDS = 1_000_003  # apart, for batches of neighbouring seeds


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a batch is written: `batch` prompts of at most `prompt_tokens`, replies of at most `reply_tokens`.

    Prompts are drawn at `temperature` from the `top_k` likeliest tokens, of these from the likeliest of mass `top_p`. A
    batch ends early once no more than the share `stragglers` of its rows is still being written: such prompts are
    dropped, such replies cut.
    """

    batch: int = 96
    prompt_tokens: int = 80
    reply_tokens: int = 160
    temperature: float = 1.0
    top_k: int = 64
    top_p: float = 0.95
    stragglers: float = 0.2


def facts_of(teacher: Teacher, recipe: Recipe, seed: int) -> dict[str, Any]:
    """What a corpus says of its text; text of other facts is never mixed with it."""
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
    teacher: Teacher, corpus: Corpus, recipe: Recipe, seconds: float, tokens: int | None, progress: Progress
) -> None:
    """Add batches until the corpus has `tokens` reply tokens or, where that is None, until it took `seconds` in all.

    What earlier runs took counts. At least `LEAST_BATCHES` batches are there afterwards; each is on the disk before the
    next begins. Raises InputError where the target writes nothing new any more.
    """
    writer = _Writer(teacher, recipe, corpus.facts["seed"])
    seen, vain = {conversation.prompt for conversation in corpus}, 0
    while not is_enough(corpus, seconds, tokens):
        progress(_share(corpus, seconds, tokens), _sentence(corpus))
        start = time.monotonic()
        batch = [each for each in writer.batch(corpus.batches) if each.prompt not in seen]
        corpus.add(batch, time.monotonic() - start)
        seen.update(each.prompt for each in batch)
        vain = 0 if batch else vain + 1
        if vain == _MOST_IN_VAIN:
            raise InputError(f"{teacher.name} writes no new prompts; choose a target that does, or fewer --tokens.")
    progress(1.0, _sentence(corpus))


def is_enough(corpus: Corpus, seconds: float, tokens: int | None) -> bool:
    """Whether `synthesise` would add nothing."""
    return corpus.batches >= LEAST_BATCHES and _share(corpus, seconds, tokens) == 1.0


def _share(corpus: Corpus, seconds: float, tokens: int | None) -> float:
    """How much of the text is there, in [0, 1]."""
    done, wanted = (corpus.seconds, seconds) if tokens is None else (corpus.tokens, tokens)
    return 1.0 if done >= wanted else done / wanted


def _sentence(corpus: Corpus) -> str:
    speed = f", {corpus.tokens / corpus.seconds:,.0f} a second" if corpus.seconds else ""
    return f"Writing text: {corpus.tokens:,} tokens of replies to {len(corpus):,} prompts{speed}"


class _Writer:
    """Writes batches of conversations with transformers' own generation."""

    def __init__(self, teacher: Teacher, recipe: Recipe, seed: int) -> None:
        self._teacher, self._recipe, self._seed = teacher, recipe, seed
        self._form: ChatForm = chat_form(teacher)
        room = teacher.context_length - len(self._form.header)
        self._prompt_tokens = max(1, min(recipe.prompt_tokens, room // 3))

    def batch(self, number: int) -> list[Conversation]:
        """The conversations of batch `number`: prompts as they were drawn, none empty, none twice."""
        prompts = list(dict.fromkeys(self._prompts(number)))
        return [
            Conversation((*prompt, *reply), len(prompt))
            for prompt, reply in zip(prompts, self._replies(prompts), strict=True)
            if reply
        ]

    def _prompts(self, number: int) -> Iterator[tuple[int, ...]]:
        generator = torch.Generator(self._teacher.module.device).manual_seed(_SEEDS * self._seed + number)
        headers = [self._form.header] * self._recipe.batch
        written = self._generate(headers, self._prompt_tokens, self._form.ends, [_Draw(self._recipe, generator)])
        if self._form.chat and any(end is not None for _, end in written):
            # one that found no end would be answered in its midst; a target that never ends a turn has no others
            written = [(ids, end) for ids, end in written if end is not None]
        for ids, _ in written:
            prompt = rendered(self._teacher, self._form, ids)
            if prompt and len(prompt) < self._teacher.context_length:
                yield prompt

    def _replies(self, prompts: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
        """Greedy replies, their end token included where they came to it."""
        if not prompts:
            return []
        length = min(self._recipe.reply_tokens, self._teacher.context_length - max(map(len, prompts)))
        replies = self._generate(prompts, length, self._teacher.eos_ids, [])
        return [(*reply, ended) if ended is not None else reply for reply, ended in replies]

    @torch.inference_mode()
    def _generate(
        self, texts: Sequence[tuple[int, ...]], length: int, ends: Sequence[int], processors: Sequence[LogitsProcessor]
    ) -> list[tuple[tuple[int, ...], int | None]]:
        """For each text what follows it, without the end token, and that token or None."""
        ids, mask = _left_padded(texts, self._teacher.module.device)
        output = self._teacher.module.generate(
            ids,
            attention_mask=mask,
            generation_config=GenerationConfig(
                do_sample=False, max_new_tokens=length, eos_token_id=list(ends) or None, pad_token_id=0
            ),
            logits_processor=LogitsProcessorList(processors),
            stopping_criteria=StoppingCriteriaList([_FewLeft(ends, self._recipe.stragglers)]),
        )
        return [_until_end(row, ends) for row in output[:, ids.shape[1] :].tolist()]


class _Draw(LogitsProcessor):
    """Draws each row's token and leaves it as the only choice: drawing from the few likeliest sorts no vocabulary.

    transformers' own sampling sorts every row, which takes longer than the model's pass.
    """

    def __init__(self, recipe: Recipe, generator: torch.Generator) -> None:
        self._recipe, self._generator = recipe, generator

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        logits, ids = scores.float().topk(min(self._recipe.top_k, scores.shape[-1]))
        probs = (logits / self._recipe.temperature).softmax(-1)
        likelier = probs.cumsum(-1) - probs  # the mass before each
        likeliest = probs.masked_fill(likelier >= self._recipe.top_p, 0.0)
        place = torch.multinomial(likeliest, 1, generator=self._generator)
        return torch.full_like(scores, -torch.inf).scatter_(1, ids.gather(1, place), 0.0)


class _FewLeft(StoppingCriteria):
    """Ends a batch when no more than a share of its rows is still being written: those few would cost as the whole."""

    def __init__(self, ends: Sequence[int], share: float) -> None:
        self._ends, self._share = torch.tensor(list(ends), dtype=torch.long), share
        self._ended: Tensor | None = None

    def __call__(self, input_ids: Tensor, scores: Any, **_: Any) -> Tensor:
        last = torch.isin(input_ids[:, -1], self._ends.to(input_ids.device))
        self._ended = last if self._ended is None else self._ended | last
        return torch.full_like(last, bool((~self._ended).float().mean() <= self._share))


def _left_padded(texts: Sequence[tuple[int, ...]], device: torch.device) -> tuple[Tensor, Tensor]:
    """(ids, mask), both (texts, longest): a text's last token is last in its row."""
    longest = max(map(len, texts))
    ids = torch.tensor([[0] * (longest - len(text)) + list(text) for text in texts], device=device)
    mask = torch.tensor([[0] * (longest - len(text)) + [1] * len(text) for text in texts], device=device)
    return ids, mask


def _until_end(row: list[int], ends: Sequence[int]) -> tuple[tuple[int, ...], int | None]:
    """A row up to its first end token, and that token."""
    place = next((place for place, token in enumerate(row) if token in ends), None)
    return (tuple(row), None) if place is None else (tuple(row[:place]), row[place])
