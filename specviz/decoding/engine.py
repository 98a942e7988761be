"""The speculative loop, which every lane runs: draft, verify in one pass, keep what the rule accepts.

Standard decoding is the same loop with a draft that proposes nothing. The loop knows tokens and distributions; it knows
nothing of lanes, races, files or pages.
"""

from __future__ import annotations

import operator
from collections.abc import Generator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from specviz.core.errors import ContextError, InputError
from specviz.core.settings import Settings
from specviz.core.text import decode_ids
from specviz.core.trees import Tree
from specviz.decoding.admission import admit, check_ids, harmless
from specviz.decoding.ending import EndRule
from specviz.decoding.telemetry import Block, Recorder
from specviz.drafting import Drafter, Proposal, Run, Seen, Strategy
from specviz.models import Context, LanguageModel
from specviz.models.stopwatch import Stopwatch, synchronize
from specviz.sampling.k_policies import block_policy
from specviz.sampling.sampler import (
    Counts,
    Decision,
    Draws,
    decide_greedy,
    decide_greedy_tree,
    decide_sampled,
    decide_sampled_tree,
    distribution,
    penalise,
)
from specviz.traces import Reason, Round

_CHUNK = 256
CHOICES = 8  # the target's own successors per position, for a strategy that asks for them


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a lane ended; `decode` returns it after its last round. Texts are None without a tokenizer."""

    reason: Reason
    text: str | None
    tail: str | None
    message: str | None = None


def decode(
    target: LanguageModel, strategy: Strategy, prompt_ids: Sequence[int], settings: Settings
) -> Generator[Round, None, Outcome]:
    """Decode `prompt_ids` round by round; closing the iterator stops the work and frees the caches.

    Greedy output equals the target's own token for token; sampled output follows the target's distribution (Leviathan
    et al. 2023; Chen et al. 2023). Raises InputError or ContextError before the first round.
    """
    with Decoding(target, strategy, prompt_ids, settings) as decoding:
        decoding.prefill()
        decoding.prefill_draft()
        while decoding.reason is None:
            yield decoding.step()
        return decoding.outcome()


def capacity_for(target: LanguageModel, prompt_ids: Sequence[int], settings: Settings) -> int:
    """The most cache entries that a run can need: prompt, output and one block of drafts, within the context."""
    return min(target.context_length, len(prompt_ids) + settings.max_new_tokens + settings.k)


def check_prompt(target: LanguageModel, prompt_ids: Sequence[int]) -> tuple[int, ...]:
    """The prompt as plain integers. Raises InputError or ContextError for one that cannot be decoded."""
    if isinstance(prompt_ids, str | bytes | dict):
        raise InputError("The prompt must be token ids; turn a text into ids with the model's tokenizer.")
    try:
        ids = tuple(operator.index(token) for token in prompt_ids)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError("The prompt must be one flat sequence of whole token ids.") from error
    if not ids:
        raise InputError("The prompt is empty; type at least one word.")
    if not all(0 <= token < target.vocabulary for token in ids):
        raise InputError(f"The prompt holds token ids that {target.name} does not have (0 to {target.vocabulary - 1}).")
    if len(ids) >= target.context_length:
        raise ContextError(
            f"The prompt has {len(ids)} tokens and {target.name} reads at most {target.context_length}; shorten it."
        )
    return ids


class Decoding:
    """One run, a round at a time: its cache, its drafter and its output so far.

    It reserves `capacity` cache entries, by default `capacity_for`; a race gives all its lanes the same.
    """

    def __init__(
        self,
        target: LanguageModel,
        strategy: Strategy,
        prompt_ids: Sequence[int],
        settings: Settings,
        capacity: int | None = None,
    ) -> None:
        self._target, self._strategy, self._settings = target, strategy, settings
        self._prompt = check_prompt(target, prompt_ids)
        self._output: list[int] = []
        self._rounds = 0
        self._clock = 0.0
        self._rule = EndRule(settings, target.eos_ids, target.tokenizer, target.context_length - len(self._prompt))
        self._recorder = Recorder(target.tokenizer, self._rule.silent_ids, settings.telemetry)
        self._counts = Counts(self._prompt, target.vocabulary, target.device) if settings.penalised else None
        self._policy = block_policy(settings)
        self._draws = Draws(settings.seed, 0, target.device)
        capacity = capacity or capacity_for(target, self._prompt, settings)
        draft_draws = Draws(settings.seed, 1, target.device)
        run = Run(target, settings, self._prompt, capacity, draft_draws, self._counts)
        self._drafter: Drafter = strategy.start(run)
        try:
            self._context: Context = target.open(capacity)
            self._context.prepare(settings.k + 1 if strategy.drafts else 1)
        except BaseException:
            self._drafter.close()
            raise

    @property
    def reason(self) -> Reason | None:
        """Why the run ended; None while it runs."""
        return self._rule.reason

    def prefill(self, shared: Context | None = None) -> float:
        """Read all of the prompt but its last token, or copy a context that has done so; returns seconds."""
        watch = self._watch()
        if shared is None:
            self._context.prefill(self._prompt[:-1])
        else:
            self._context.copy_from(shared)
        synchronize(self._target.device)
        return watch.wall()

    @torch.inference_mode()
    def prefill_draft(self) -> float:
        """Show the drafter the prompt, and what the target predicts in it if the strategy asks; returns seconds."""
        watch = self._watch()
        self._drafter.observe(self._prompt, self._prompt_seen())
        synchronize(self._target.device)
        return watch.wall()

    @torch.inference_mode()
    def step(self) -> Round:
        """Run one round; `reason` is set if it was the last."""
        watch = self._watch()
        k, note = self._block_size()
        proposal = self._drafter.propose(k)
        drafts, tree = admit(proposal, k, self._strategy, self._target)
        watch.mark()
        logits, states = self._verify(drafts, tree)
        watch.mark()
        block = self._decide(logits, drafts, tree, proposal)
        self._policy.learn(block.accepted, block.tested)
        self._context.keep((0, *(1 + node for node in block.path)))
        last = self._last
        self._extend(block.kept)
        decided = watch.wall()
        self._drafter.observe(block.kept, self._seen(last, block, states))
        total = watch.wall()
        draft_seconds = watch.between(0, 1) + total - decided
        verify_seconds = watch.between(1, 2)
        recorded, target_token = self._recorder.record(block)
        done = Round(
            index=self._rounds,
            k=k,
            drafted=len(recorded),
            drafts=recorded,
            target=target_token,
            note=proposal.note or note,
            start_seconds=self._clock,
            draft_seconds=draft_seconds,
            verify_seconds=verify_seconds,
            other_seconds=max(0.0, total - draft_seconds - verify_seconds),
            telemetry_seconds=watch.wall() - total,
            draft_passes=proposal.passes,
            target_passes=1,
            previous_draft_choice=self._previous_choice(proposal),
        )
        self._clock = done.end_seconds
        self._rounds += 1
        return done

    def outcome(self) -> Outcome:
        """Why the run ended, its text up to a stop string, and the part of it that was held back to the end."""
        tokenizer = self._target.tokenizer
        reason = self.reason or Reason.CANCELLED
        if tokenizer is None:
            return Outcome(reason, None, None)
        text = decode_ids(tokenizer, [token for token in self._output if token not in self._rule.silent_ids])
        return Outcome(reason, text[: self._rule.stop_at], self._recorder.tail)

    def close(self) -> None:
        self._drafter.close()
        self._context.close()

    def __enter__(self) -> Decoding:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def _last(self) -> int:
        return self._output[-1] if self._output else self._prompt[-1]

    def _watch(self) -> Stopwatch:
        watch = Stopwatch(self._target.device)
        watch.mark()
        return watch

    def _block_size(self) -> tuple[int, str | None]:
        """(how many tokens to draft, a note on why): what the policy wants, limited by the room in the context."""
        if not self._strategy.drafts:
            return 0, None
        room = self._target.context_length - len(self._prompt) - len(self._output)
        wanted, note = self._policy.ask()
        if wanted <= room:
            return wanted, note
        return room, f"k cut to {room}: the room left in the context"

    def _verify(self, drafts: Tensor, tree: Tree | None) -> tuple[Tensor, Tensor | None]:
        """The target's logits (n + 1, vocabulary) after the last kept token and after each draft, from one pass."""
        last = torch.full((1,), self._last, device=self._target.device)
        ids = torch.cat([last, harmless(drafts, self._target)])
        parents = None if tree is None else _rows(tree.parents)
        if "hidden" in self._strategy.needs:
            return self._context.forward(ids, parents, hidden=True)
        return self._context.forward(ids, parents), None

    def _decide(self, logits: Tensor, drafts: Tensor, tree: Tree | None, proposal: Proposal) -> Block:
        """Apply the acceptance rule on the device, read its result once, and cut at the token that ends the run."""
        raw = logits.float()
        used = raw
        known = harmless(drafts, self._target)
        if self._counts is not None:
            used = penalise(raw, self._settings, self._counts.seen, self._counts.written, known, tree)
        decision, p = self._rule_of(used, known, tree, proposal.probs)
        path, target, ids = self._read(raw, decision, drafts)
        kept = self._rule.cut((*(ids[node] for node in path), target))
        ended_early = kept <= len(path)
        return Block(tuple(ids), path[:kept], None if ended_early else target, proposal, decision, raw, p)

    def _read(self, logits: Tensor, decision: Decision, drafts: Tensor) -> tuple[tuple[int, ...], int, list[int]]:
        """The round's one transfer: (indices of the accepted drafts, the target's token, ids of the drafts)."""
        facts = torch.stack([logits.isnan().any().long(), decision.accepted, decision.target])
        flags = drafts[:0] if decision.path is None else decision.path.long()
        broken, accepted, target, *rest = torch.cat([facts, drafts, flags]).tolist()
        if broken:
            raise ContextError(
                f"{self._target.name} computed logits that are not numbers; use float32 or bfloat16, or other weights."
            )
        ids, flags = rest[: len(drafts)], rest[len(drafts) :]
        check_ids(ids, self._strategy, self._target)
        path = range(accepted) if decision.path is None else (node for node, taken in enumerate(flags) if taken)
        return tuple(path), target, ids

    def _rule_of(
        self, logits: Tensor, drafts: Tensor, tree: Tree | None, q: Tensor | None
    ) -> tuple[Decision, Tensor | None]:
        """(decision, distributions used). Draws are taken for each draft in order, then for the target's token."""
        if self._settings.greedy:
            choices = logits.argmax(-1)
            return decide_greedy(choices, drafts) if tree is None else decide_greedy_tree(choices, drafts, tree), None
        p = distribution(logits, self._settings)
        draws = self._draws(len(drafts) + 1)
        if tree is None:
            return decide_sampled(p, q, drafts, draws[:-1], draws[-1]), p
        return decide_sampled_tree(p, q, drafts, tree, draws[:-1], draws[-1]), p

    def _extend(self, kept: Sequence[int]) -> None:
        self._output.extend(kept)
        if self._counts is not None:
            self._counts.add(kept)

    def _seen(self, last: int, block: Block, states: Tensor | None) -> Seen:
        """What the target predicted in this round, as far as the strategy asks for it."""
        choices = _best(block.logits) if "choices" in self._strategy.needs else None
        parents = block.proposal.parents
        return Seen((last, *block.ids), None if parents is None else _rows(parents), choices, states)

    def _prompt_seen(self) -> Seen:
        """What the target predicts in the prompt, as far as the strategy asks for it.

        The shared prefill computes no logits, so a strategy that needs them pays for a second read of the prompt.
        """
        ids = self._prompt[:-1]
        if not self._strategy.needs or not ids:
            return Seen(ids)
        choices, states = [], []
        with self._target.open(len(ids)) as context:
            for chunk in torch.tensor(ids, device=self._target.device).split(_CHUNK):
                logits, hidden = context.forward(chunk, hidden=True)
                choices.append(_best(logits))
                states.append(hidden)
        needs = self._strategy.needs
        return Seen(
            ids,
            choices=torch.cat(choices) if "choices" in needs else None,
            hidden=torch.cat(states) if "hidden" in needs else None,
        )

    def _previous_choice(self, proposal: Proposal) -> int | None:
        choice = proposal.previous_choice
        return None if choice is None or not self._settings.telemetry else int(choice)


def _rows(parents: Sequence[int]) -> tuple[int, ...]:
    """The parent row of each row of a pass, whose row 0 is the last kept token: (n,) -> (n + 1,)."""
    return (-1, *(parent + 1 for parent in parents))


def _best(logits: Tensor) -> Tensor:
    """The ids of the most probable successors, best first: (rows, vocabulary) -> (rows, 8)."""
    return logits.topk(min(CHOICES, logits.shape[-1]), dim=-1).indices
