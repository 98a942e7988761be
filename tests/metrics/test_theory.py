"""The arithmetic of speculative decoding, against values worked by hand."""

import pytest

from specviz.core.errors import InputError
from specviz.metrics import (
    Costs,
    Factor,
    accepted_length_law,
    best_k,
    expected_tokens,
    explain,
    percent,
    relative_cost,
    speedup,
    teaching_speedup,
    times,
    tokens_per_round,
)
from specviz.metrics.words import reason
from specviz.traces import VerifyCurve

CURVE = VerifyCurve((1, 2, 5, 9), (0.10, 0.11, 0.14, 0.22), (0.0, 0.0, 0.0, 0.0))


@pytest.mark.parametrize(
    ("alpha", "k", "tokens"),
    [
        (0.8, 1, 1.8),
        (0.8, 2, 2.44),
        (0.8, 4, 3.3616),
        (0.8, 8, 4.3289),
        (0.5, 4, 1.9375),
        (0.3, 4, 1.4251),
        (0.0, 7, 1.0),
        (1.0, 7, 8.0),
        (0.8, 0, 1.0),
    ],
)
def test_expected_tokens_of_a_round(alpha, k, tokens):
    assert expected_tokens(alpha, k) == pytest.approx(tokens, abs=5e-5)


def test_expected_tokens_are_continuous_at_alpha_one():
    assert expected_tokens(1 - 1e-15, 8) == pytest.approx(9.0, abs=1e-9)


@pytest.mark.parametrize("alpha", [-0.1, 1.1])
def test_a_rate_outside_0_to_1_is_refused_in_words(alpha):
    with pytest.raises(InputError, match="between 0 and 1"):
        expected_tokens(alpha, 4)


def test_teaching_speedup_is_tokens_over_cost():
    # 3.3616 / (4 * 0.48 + 1) = 3.3616 / 2.92
    assert teaching_speedup(0.8, 4, 0.48) == pytest.approx(1.15123, abs=1e-5)


@pytest.mark.parametrize(
    ("alpha", "c", "value", "k"),
    [
        (0.8, 0.02, 3.817, 11),
        (0.8, 0.05, 3.092, 8),
        (0.8, 0.1, 2.470, 6),
        (0.8, 0.2, 1.868, 4),
        (0.8, 0.48, 1.245, 2),
        (0.8, 0.9, 1.0, 0),
        (0.6, 0.1, 1.674, 3),
    ],
)
def test_best_k_of_the_teaching_form(alpha, c, value, k):
    best = best_k((alpha,), c)
    assert best.k == k
    assert best.speedup == pytest.approx(value, abs=5e-4)


def test_accepted_length_law_is_geometric_cut_at_k():
    # 1 - .5, .5 * .5, .25 * .5, and the rest
    assert accepted_length_law(0.5, 3) == (0.5, 0.25, 0.125, 0.125)
    assert accepted_length_law(1.0, 2) == (0.0, 0.0, 1.0)


def test_tokens_per_round_multiply_the_rates_of_each_position():
    # 1 + .5 + .5 * .8 + .5 * .8 * .8, the last rate repeated
    assert tokens_per_round((0.5, 0.8), 3) == pytest.approx(2.22)
    # half of the third position
    assert tokens_per_round((0.5, 0.8), 2.5) == pytest.approx(2.06)
    assert tokens_per_round((), 4) == 1.0


def test_tokens_per_round_equal_the_teaching_formula_when_positions_are_alike():
    assert tokens_per_round((0.8,), 8) == pytest.approx(expected_tokens(0.8, 8))


@pytest.mark.parametrize(
    ("width", "cost"),
    [
        (0, 1.0),
        (1, 1.0),
        (1.5, 1.05),
        (2, 1.1),
        (3, 1.2),
        (5, 1.4),
        (7, 1.8),
        (9, 2.2),
        # beyond: 2.2 + 0.2 a token
        (13, 3.0),
    ],
)
def test_verify_curve_is_linear_between_and_beyond_the_measured_widths(width, cost):
    assert relative_cost(CURVE, width) == pytest.approx(cost)


def test_verify_curve_without_two_points_is_flat():
    assert relative_cost(None, 9) == 1.0
    assert relative_cost(VerifyCurve((1,), (0.1,), (0.0,)), 9) == 1.0


def test_verify_curve_never_falls_beyond_its_last_width():
    falling = VerifyCurve((1, 2, 3), (0.10, 0.14, 0.12), (0.0, 0.0, 0.0))
    assert relative_cost(falling, 100) == pytest.approx(1.2)


def test_speedup_counts_draft_verify_and_overhead():
    # tokens 1 + .5 + .5 * .8 + .32 + .256 = 2.476; cost 4 * .1 + v(5) 1.4 + .2 = 2.0
    assert speedup((0.5, 0.8), 4, 0.1, CURVE, 0.2) == pytest.approx(1.238)


def test_speedup_of_k_zero_is_standard_decoding():
    assert speedup((0.9,), 0, 0.5, CURVE, 0.3) == 1.0


def test_rounds_that_draft_nothing_cost_a_pass_and_give_a_token():
    # tokens .25 * 3 + .75 = 1.5; cost .25 * (2 * .5 + 1) + .75 = 1.25
    assert speedup((1.0,), 2, 0.5, coverage=0.25) == pytest.approx(1.2)


def test_a_tree_pays_for_nodes_and_gains_by_depth():
    # tokens 1 + .5 + .25 = 1.75 at depth 2; cost v(9) = 2.2 for 8 nodes
    assert speedup((0.5,), 8, 0.0, CURVE, depth=2) == pytest.approx(1.75 / 2.2)


def costs(**changes):
    base = {"alpha": 0.8, "rates": (0.8,), "drafted": 4, "c": 0.05}
    return Costs(**{**base, **changes})


WIDE = VerifyCurve((1, 5), (0.1, 0.3), (0.0, 0.0))


@pytest.mark.parametrize(
    ("case", "factor", "number", "would_be", "words"),
    [
        # S = 1.1111 / 1.4 = .79; alpha -> 1: 5 / 1.4
        (costs(alpha=0.1, rates=(0.1,), c=0.1), Factor.ALPHA, 0.1, 3.5714, "only 10% of the tested draft tokens"),
        # S = 3.3616 / 4.6 = .73; c -> 0: 3.3616 (alpha -> 1 gives 5 / 4.6 = 1.09)
        (costs(c=0.9), Factor.DRAFT_COST, 0.9, 3.3616, "the draft costs 0.90 target passes per token"),
        # E(.6, 4) = 2.3056, S = 2.3056 / 3.2 = .72; v -> 1: 2.3056 / 1.2 (alpha -> 1: 5 / 3.2 = 1.56)
        (
            costs(alpha=0.6, rates=(0.6,), curve=WIDE),
            Factor.VERIFY_COST,
            3.0,
            1.92133,
            "checking 5 tokens at once costs 3.00 one-token passes",
        ),
        # S = 3.3616 / 4.2 = .80; overhead -> 0: 3.3616 / 1.2
        (
            costs(overhead=3.0),
            Factor.OVERHEAD,
            3.0,
            2.80133,
            "the work around the passes costs 3.00 target passes",
        ),
        # tokens .1 * 3.3616 + .9 = 1.236, cost .1 * 1.2 + .9 + .3 = 1.32; coverage -> 1: 3.3616 / 1.5
        (costs(coverage=0.1, overhead=0.3), Factor.COVERAGE, 0.1, 2.24107, "only 10% of the rounds"),
    ],
)
def test_the_factor_that_gains_most_is_named_with_its_number(case, factor, number, would_be, words):
    because = explain(case)
    assert case.speedup < 1
    assert (because.factor, because.number) == (factor, pytest.approx(number))
    assert because.would_be == pytest.approx(would_be, abs=1e-4)
    assert reason(because, 10).startswith(words)
    assert reason(because, 10).endswith(f"it would be {would_be:.1f}×")


def test_an_ideal_that_still_loses_is_said_so():
    # S = 1.21 / (1.8 + 1 + 1); alpha -> 1 is best: 3 / 3.8 = .79
    because = explain(costs(alpha=0.11, rates=(0.11, 0.9), drafted=2, c=0.9, overhead=1.0))
    assert reason(because, 10).endswith("it would be only 0.8×")


def test_no_factor_is_blamed_where_none_gains():
    assert explain(costs(alpha=1.0, rates=(1.0,), c=0.0)) is None


@pytest.mark.parametrize(
    ("ratio", "shown"),
    [(1.84, "1.8×"), (0.7, "0.7×"), (0.97, "0.97×"), (1.04, "1.04×"), (1.0, "1.00×"), (0.04, "0.04×"), (12.3, "12.3×")],
)
def test_a_ratio_near_one_keeps_two_decimals(ratio, shown):
    assert times(ratio) == shown


@pytest.mark.parametrize(
    ("share", "shown"),
    [(0, "0%"), (0.0004, "<0.1%"), (0.001, "0.1%"), (0.314, "31%"), (0.995, "99.5%"), (0.9996, ">99.9%"), (1, "100%")],
)
def test_none_and_all_are_said_only_of_none_and_all(share, shown):
    assert percent(share) == shown
