"""Compare greedy texts of one model, where two logits may nearly tie."""

import warnings

import torch

NEAR_TIE = 1e-4


@torch.inference_mode()
def gap(model, ids):
    """Distance of the two largest logits after `ids`, read at once and without a cache."""
    best = model(torch.tensor([ids]), use_cache=False).logits[0, -1].topk(2).values
    return float(best[0] - best[1])


def assert_same(model, prompt, expected, found, what):
    """Equal, but for what follows a near tie, which is listed."""
    if expected == found:
        return
    index = next(i for i, pair in enumerate(zip(expected, found, strict=False)) if pair[0] != pair[1])
    distance = gap(model, [*prompt, *expected[:index]])
    assert distance <= NEAR_TIE, f"{what}: token {index} is {found[index]}, not {expected[index]}; gap {distance:.2e}"
    warnings.warn(f"near tie: {what}, token {index}, gap {distance:.2e}", stacklevel=2)
