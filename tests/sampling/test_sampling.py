"""The sampler and the rule on vectors small enough to work by hand."""

import math

import pytest
import torch

from specviz import Settings
from specviz.sampling.sampler import (
    Counts,
    Draws,
    decide_greedy,
    decide_sampled,
    distribution,
    draw,
    keep_nucleus,
    penalise,
    residual,
)

CPU = torch.device("cpu")
NO_DRAFTS = torch.empty(0, dtype=torch.long)


def logs(*probs):
    return torch.tensor([probs]).log()


def test_temperature_divides_the_logits():
    # exp(0 / .5), exp(ln 2 / .5), exp(ln 4 / .5) = 1, 4, 16
    probs = distribution(torch.tensor([[1.0, 2.0, 4.0]]).log(), Settings(temperature=0.5))
    assert torch.allclose(probs, torch.tensor([[1.0, 4.0, 16.0]]) / 21)


def test_temperature_zero_is_a_point_mass():
    assert distribution(torch.tensor([[1.0, 3.0, 2.0]]), Settings(temperature=0)).tolist() == [[0.0, 1.0, 0.0]]


@pytest.mark.parametrize("temperature", [1e-6, 0.01])
def test_a_tiny_temperature_is_finite_and_all_but_greedy(temperature):
    probs = distribution(torch.tensor([[1e4, -1e4, 9e3], [0.1, 0.0, 0.3]]), Settings(temperature=temperature))
    assert torch.isfinite(probs).all()
    assert probs.argmax(-1).tolist() == [0, 2]
    assert probs.amax(-1).tolist() == pytest.approx([1.0, 1.0], abs=1e-6)


def test_a_tie_at_a_tiny_temperature_stays_a_tie():
    assert distribution(torch.tensor([[5.0, 5.0, 1.0]]), Settings(temperature=1e-6)).tolist() == [[0.5, 0.5, 0.0]]


def test_top_k_keeps_the_largest_and_renormalises():
    probs = distribution(logs(0.1, 0.5, 0.15, 0.25), Settings(temperature=1, top_k=2))
    assert torch.allclose(probs, torch.tensor([[0.0, 2 / 3, 0.0, 1 / 3]]))


def test_top_p_keeps_the_smallest_set_that_reaches_the_mass():
    kept = torch.tensor([[0.0, 0.5, 0.0, 0.25]]) / 0.75
    assert torch.allclose(distribution(logs(0.1, 0.5, 0.15, 0.25), Settings(temperature=1, top_p=0.75)), kept)
    assert torch.allclose(distribution(logs(0.1, 0.5, 0.15, 0.25), Settings(temperature=1, top_p=0.6)), kept)
    alone = distribution(logs(0.1, 0.5, 0.15, 0.25), Settings(temperature=1, top_p=0.001))
    assert alone.tolist() == [[0.0, 1.0, 0.0, 0.0]]


def test_top_k_comes_before_top_p():
    # of .4, .3, .2, .1 the first two are 4/7 and 3/7: their first alone reaches .5, but not of the whole
    probs = distribution(logs(0.4, 0.3, 0.2, 0.1), Settings(temperature=1, top_k=2, top_p=0.5))
    assert torch.allclose(probs, torch.tensor([[1.0, 0.0, 0.0, 0.0]]))


@pytest.mark.parametrize("top_p", [0.3, 0.9, 0.999])
def test_a_nucleus_wider_than_the_shortcut_equals_a_full_sort(top_p):
    torch.manual_seed(0)
    probs = torch.stack([torch.randn(3000).mul(0.1).softmax(-1), torch.randn(3000).mul(6).softmax(-1)])
    for row, kept in zip(probs, keep_nucleus(probs, top_p), strict=True):
        order, total, count = row.argsort(descending=True), 0.0, 0
        while total < top_p:
            total, count = total + float(row[order[count]]), count + 1
        expected = torch.zeros_like(row)
        expected[order[:count]] = row[order[:count]] / row[order[:count]].sum()
        assert abs(int((kept > 0).sum()) - count) <= 1  # the sums round differently
        assert torch.allclose(kept, expected, atol=1e-3)
        assert float(kept.sum()) == pytest.approx(1.0, abs=1e-5)


def test_an_id_that_is_masked_keeps_no_probability():
    masked = torch.tensor([[-torch.inf, 1.0, 1.0]])
    for settings in (Settings(temperature=0.7), Settings(temperature=0.7, top_k=2), Settings(temperature=1, top_p=0.9)):
        assert distribution(masked, settings)[0, 0] == 0.0


def test_repetition_divides_what_is_above_zero_and_multiplies_what_is_below():
    seen, written = torch.tensor([1.0, 0.0, 3.0, 0.0]), torch.zeros(4)
    logits = torch.tensor([[2.0, 2.0, -2.0, -2.0]])
    found = penalise(logits, Settings(repetition_penalty=2.0), seen, written, NO_DRAFTS)
    assert found.tolist() == [[1.0, 2.0, -4.0, -2.0]]


def test_presence_and_frequency_see_the_output_only():
    seen, written = torch.tensor([5.0, 1.0, 0.0]), torch.tensor([0.0, 1.0, 0.0])
    settings = Settings(presence_penalty=0.5, frequency_penalty=0.25)
    found = penalise(torch.tensor([[1.0, 1.0, 1.0]]), settings, seen, written, NO_DRAFTS)
    assert found.tolist() == [[1.0, 0.25, 1.0]]  # 1 - .5 - .25


def test_each_drafted_position_is_penalised_for_the_drafts_before_it_only():
    settings = Settings(presence_penalty=1.0, frequency_penalty=0.5)
    nothing = torch.zeros(3)
    found = penalise(torch.zeros(4, 3), settings, nothing, nothing, torch.tensor([2, 0, 2]))
    assert found.tolist() == [[0, 0, 0], [0, 0, -1.5], [-1.5, 0, -1.5], [-1.5, 0, -2.0]]


def test_a_penalty_counts_a_drafted_token_on_top_of_what_was_written():
    settings = Settings(frequency_penalty=1.0)
    found = penalise(torch.zeros(2, 2), settings, torch.ones(2), torch.tensor([2.0, 0.0]), torch.tensor([0]))
    assert found.tolist() == [[-2, 0], [-3, 0]]


def test_counts_tell_the_prompt_from_the_output():
    counts = Counts([1, 1, 2], 4, CPU)
    counts.add([2, 3, 3])
    assert counts.seen.tolist() == [0, 2, 2, 2]
    assert counts.written.tolist() == [0, 0, 1, 2]


def test_a_draw_is_the_first_token_whose_cumulative_mass_exceeds_it():
    probs = torch.tensor([0.25, 0.0, 0.5, 0.25]).repeat(6, 1)
    u = torch.tensor([0.0, 0.2499, 0.25, 0.7499, 0.75, 1 - 2**-53], dtype=torch.float64)
    assert draw(probs, u).tolist() == [0, 0, 2, 2, 3, 3]


def test_a_token_without_probability_is_never_drawn():
    probs = torch.tensor([[0.0, 0.3, 0.0, 0.7, 0.0]])
    u = torch.cat([torch.tensor([0.0, 1 - 2**-53, 0.3]), torch.rand(2000)]).double()
    assert set(draw(probs.expand(len(u), -1), u).tolist()) == {1, 3}


def test_a_draw_of_almost_one_stays_inside_where_rounding_leaves_the_sum_short():
    probs = torch.tensor([[0.1] * 10 + [0.0]])
    assert draw(probs * 0.9999, torch.tensor([1 - 2**-53], dtype=torch.float64)).tolist() == [9]


def test_the_residual_is_what_the_target_has_more_of():
    p, q = torch.tensor([0.5, 0.3, 0.2]), torch.tensor([0.2, 0.5, 0.3])
    assert residual(p, q).tolist() == [1.0, 0.0, 0.0]
    assert torch.allclose(
        residual(torch.tensor([0.6, 0.4, 0.0]), torch.tensor([0.2, 0.2, 0.6])), torch.tensor([2 / 3, 1 / 3, 0])
    )


def test_a_residual_without_mass_is_the_target_itself():
    p = torch.tensor([0.7, 0.3])
    assert residual(p, p).tolist() == p.tolist()


def sampled(p, q, drafts, draws, last=0.0):
    tensors = (torch.tensor(p), None if q is None else torch.tensor(q), torch.tensor(drafts, dtype=torch.long))
    return decide_sampled(*tensors, torch.tensor(draws, dtype=torch.float64), torch.tensor(last, dtype=torch.float64))


P, Q = [[0.25, 0.75], [0.5, 0.5], [0.25, 0.75]], [[0.5, 0.5], [0.5, 0.5]]


@pytest.mark.parametrize(("u", "accepted"), [(0.0, 2), (0.4999, 2), (0.5, 0), (0.9, 0)])
def test_a_draft_is_kept_iff_the_draw_is_strictly_below_p_over_q(u, accepted):
    decision = sampled(P, Q, [0, 0], [u, 0.0])
    assert int(decision.accepted) == accepted
    assert decision.draft_probs.tolist() == [0.5, 0.5] and decision.target_probs.tolist() == [0.25, 0.5]


def test_a_draft_that_the_target_excludes_is_rejected_even_by_a_draw_of_zero():
    assert int(sampled([[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0]], [0], [0.0]).accepted) == 0


def test_a_correction_comes_from_the_residual_and_a_bonus_from_the_target():
    rejected = sampled(P, Q, [0, 0], [0.5, 0.0], last=0.0)
    assert (int(rejected.target), float(rejected.draw_prob)) == (1, 1.0)  # (.25, .75) - (.5, .5) leaves token 1 alone
    kept = sampled(P, Q, [0, 0], [0.0, 0.0], last=0.2)
    assert (int(kept.target), float(kept.draw_prob)) == (0, 0.25)
    second = sampled(P, [[0.5, 0.5], [0.75, 0.25]], [0, 0], [0.0, 0.7], last=0.0)
    assert (int(second.accepted), int(second.target)) == (1, 1)


def test_nothing_after_the_first_rejection_is_kept():
    assert int(sampled(P, Q, [0, 0], [0.6, 0.0]).accepted) == 0


def test_a_draft_that_was_not_drawn_is_kept_with_its_target_probability():
    assert int(sampled(P, None, [1, 0], [0.74, 0.49]).accepted) == 2
    rejected = sampled(P, None, [1, 0], [0.76, 0.0], last=0.99)
    assert (int(rejected.accepted), int(rejected.target)) == (0, 0)  # token 1 leaves the residual
    assert rejected.draft_probs.tolist() == [1.0, 1.0]


def test_no_drafts_draw_one_token_from_the_target():
    decision = sampled([[0.25, 0.75]], None, [], [], last=0.3)
    assert (int(decision.accepted), int(decision.target)) == (0, 1)


@pytest.mark.parametrize(("drafts", "accepted", "target"), [([3, 1], 2, 4), ([3, 0], 1, 1), ([0, 1], 0, 3), ([], 0, 3)])
def test_greedy_compares_argmax_with_argmax(drafts, accepted, target):
    decision = decide_greedy(torch.tensor([3, 1, 4][: len(drafts) + 1]), torch.tensor(drafts, dtype=torch.long))
    assert (int(decision.accepted), int(decision.target)) == (accepted, target)
    assert decision.draws is None and decision.residual is None


def test_draws_repeat_with_their_seed_and_differ_between_streams_and_seeds():
    def first(seed, stream, sizes=(3, 5000, 2)):
        draws = Draws(seed, stream, CPU)
        return torch.cat([draws(size) for size in sizes])

    base = first(7, 0)
    assert torch.equal(base, first(7, 0)) and torch.equal(base, first(7, 0, (5005,)))
    for other in (first(7, 1), first(8, 0), first(7 + 2**31, 0), first(7 + 2**62, 0)):
        assert not torch.equal(base, other)
    assert float(base.min()) >= 0.0 and float(base.max()) < 1.0
    assert float(base.mean()) == pytest.approx(0.5, abs=5 / math.sqrt(12 * len(base)))  # five standard deviations


@pytest.mark.parametrize("settings", [{"temperature": 1e-300}, {"temperature": 1.0, "top_p": 1e-300}])
def test_the_smallest_values_allowed_mean_the_most_probable_token(settings):
    logits = torch.tensor([[0.5, 2.0, 1.0], [3.0, -1.0, 2.5]])
    assert distribution(logits, Settings(**settings)).tolist() == [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
