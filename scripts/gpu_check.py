"""What a GPU must show, in under four minutes: exactness, then every ratio. `make gpu-check` prints the report.

Tiny random models prove the tokens; models of the usual sizes with random weights time the passes, since a pass costs
what its shapes cost. `--device cpu` runs the same checks small, so that the script itself can be tested anywhere.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch import nn
from transformers import AutoModelForCausalLM, LlamaConfig, Qwen2Config

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from specviz.core.errors import SpecvizError
from specviz.core.settings import Settings
from specviz.decoding.engine import decode
from specviz.drafting import make_draft, strategies
from specviz.metrics import summarize
from specviz.models import LanguageModel
from specviz.models.calibration import measure_curve
from specviz.models.device import device_name
from specviz.models.stopwatch import synchronize
from specviz.models.strict import strict_width
from specviz.races.racing import Lane, race
from specviz.sources.loader import warm_up

PROMPT = [5, 9, 7, 5, 9, 3, 5, 9]
KS = (1, 2, 3, 5, 8, 16)
REPEATS = 7
# The Qwen2.5 shapes of the pair that the app offers: (width, layers, heads, key/value heads, inner width).
TARGET_SHAPE, DRAFT_SHAPE = (1536, 28, 12, 2, 8960), (896, 24, 14, 2, 4864)
SMALL_TARGET, SMALL_DRAFT = (128, 4, 4, 2, 256), (64, 2, 4, 2, 128)
VOCABULARY, SMALL_VOCABULARY = 151_936, 512


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    device = torch.device(parser.parse_args().device)
    if device.type == "cuda" and not torch.cuda.is_available():
        print("No CUDA device here; run this on a machine with an NVIDIA GPU.", file=sys.stderr)
        return 2
    print(f"# GPU check\n\n{device_name(device)}, torch {torch.__version__}\n")
    failures = 0
    for check in (exactness, sampling, ratios, strict):
        start = time.perf_counter()
        print(f"## {check.__name__}\n")
        for line, good in check(device):
            failures += not good
            print(f"- {'' if good else 'FAILED: '}{line}")
        print(f"\n({time.perf_counter() - start:.1f} s)\n", flush=True)
    print("All checks hold." if not failures else f"{failures} checks failed.")
    return min(failures, 1)


def exactness(device: torch.device) -> Iterator[tuple[str, bool]]:
    """fp32 greedy: every strategy and k equals standard decoding, which equals transformers' own."""
    for config in (_tiny(LlamaConfig), _tiny(Qwen2Config)):
        module, other = (_module(config, device, torch.float32, seed) for seed in (0, 1))
        target, draft = LanguageModel(module, None), LanguageModel(other, None)
        expected = _generate(module, 40)
        for name, strategy in strategies().items():
            own = draft if strategy.takes_model else None
            outputs = [_decode(target, name, own, Settings(k=k, max_new_tokens=40)) for k in KS]
            yield f"{config.model_type}, {name}, k in {KS}: the same 40 tokens", all(o == expected for o in outputs)
        full = list(decode(target, make_draft("draft-model", target, draft_model=target), PROMPT, Settings(k=5)))
        good = all(len(r.accepted) == r.drafted or r.target is None for r in full)
        yield f"{config.model_type}, draft = target: every draft accepted ({target.executor.path})", good


def sampling(device: torch.device) -> Iterator[tuple[str, bool]]:
    """The same seed gives the same tokens, with every filter on."""
    target, draft = (LanguageModel(_module(_tiny(LlamaConfig), device, torch.float32, seed), None) for seed in (0, 1))
    settings = Settings(k=4, temperature=1.0, top_k=30, top_p=0.9, repetition_penalty=1.2, frequency_penalty=0.1)
    first, second = (_decode(target, "draft-model", draft, settings) for _ in range(2))
    yield "draft-model at temperature 1 with top-k, top-p and penalties repeats itself", first == second


def ratios(device: torch.device) -> Iterator[tuple[str, bool]]:
    """Seconds per pass with and without graphs, c, the verify curve, and a race, at the usual sizes."""
    big = device.type == "cuda"
    shapes = (TARGET_SHAPE, DRAFT_SHAPE) if big else (SMALL_TARGET, SMALL_DRAFT)
    vocabulary = VOCABULARY if big else SMALL_VOCABULARY
    modules = [_module(_qwen(shape, vocabulary), device, torch.bfloat16, 0) for shape in shapes]
    eager = [LanguageModel(module, None, graphs=False) for module in modules]
    fast = [LanguageModel(module, None) for module in modules]
    for model in (*eager, *fast):
        warm_up(model)
    slow_seconds, seconds = (tuple(map(_step_seconds, models)) for models in (eager, fast))
    for role, before, after in zip(("target", "draft"), slow_seconds, seconds, strict=True):
        yield (
            f"{role}: {before * 1e3:.2f} ms a step as it is, {after * 1e3:.2f} ms prepared: {before / after:.2f}x",
            True,
        )
    yield f"c: {slow_seconds[1] / slow_seconds[0]:.2f} as it is, {seconds[1] / seconds[0]:.2f} prepared", True
    generate = _median_seconds(lambda: _generate(modules[0], 32)) / 32
    yield f"standard step against transformers.generate: {generate / seconds[0]:.2f}x", True
    curve = measure_curve(fast[0], 16, 256)
    relative = ", ".join(f"{w}: {s / curve.seconds[0]:.2f}" for w, s in zip(curve.widths, curve.seconds, strict=True))
    yield f"verify curve, a pass over w tokens against one: {relative}", True
    captured = sum(getattr(model.executor, "capture_seconds", 0.0) for model in fast)
    yield f"capturing took {captured:.1f} s in all", captured <= 10
    yield from _race(fast)


def _race(models: list[LanguageModel]) -> Iterator[tuple[str, bool]]:
    target, draft = models
    lanes = [
        Lane("standard", target, make_draft("none", target), Settings(max_new_tokens=64)),
        Lane("draft", target, make_draft("draft-model", target, draft_model=draft), Settings(k=5, max_new_tokens=64)),
        Lane("itself", target, make_draft("draft-model", target, draft_model=target), Settings(k=5, max_new_tokens=64)),
    ]
    for name, lane in summarize(race(lanes, PROMPT)).items():
        apart = abs(lane.seconds - lane.wall_seconds) / lane.wall_seconds
        sums = f"its clock and its turns' wall time differ by {apart:.1%}"
        speeds = f"{lane.tokens_per_second:.0f} tokens per second, tau {lane.tau:.2f}, c {lane.c or 0:.2f}"
        yield f"lane {name}: {speeds}, {lane.speedup:.2f}x; {sums}", apart <= 0.02 or target.device.type == "cpu"


def strict(device: torch.device) -> Iterator[tuple[str, bool]]:
    """Whether strict numerics can be offered here, by dtype."""
    for dtype in (torch.float32, torch.bfloat16):
        model = LanguageModel(_module(_tiny(LlamaConfig), device, dtype, 0), None)
        try:
            yield f"{dtype}: a row has the same bits anywhere in a pass of {strict_width(model)}", True
        except SpecvizError as error:
            yield f"{dtype}: {error}", True


def _tiny(kind: type) -> LlamaConfig | Qwen2Config:
    return _shaped(kind, (64, 4, 4, 2, 96), 128, 0.3)


def _qwen(shape: tuple[int, ...], vocabulary: int) -> Qwen2Config:
    return _shaped(Qwen2Config, shape, vocabulary, 0.02)


def _shaped(kind: type, shape: tuple[int, ...], vocabulary: int, spread: float) -> LlamaConfig | Qwen2Config:
    width, layers, heads, groups, inner = shape
    return kind(
        vocab_size=vocabulary, hidden_size=width, num_hidden_layers=layers, num_attention_heads=heads,
        num_key_value_heads=groups, intermediate_size=inner, max_position_embeddings=1024, initializer_range=spread,
        bos_token_id=None, eos_token_id=None, pad_token_id=None,
    )  # fmt: skip


def _module(config: LlamaConfig | Qwen2Config, device: torch.device, dtype: torch.dtype, seed: int) -> nn.Module:
    torch.manual_seed(seed)
    with device:
        return AutoModelForCausalLM.from_config(config, dtype=dtype).eval()


def _generate(module: nn.Module, count: int) -> list[int]:
    ids = torch.tensor([PROMPT], device=module.device)
    output = module.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=count, do_sample=False)
    return output[0, len(PROMPT) :].tolist()


def _decode(target: LanguageModel, name: str, draft: LanguageModel | None, settings: Settings) -> list[int]:
    rounds = decode(target, make_draft(name, target, draft_model=draft), PROMPT, settings)
    return [token.id for done in rounds for token in done.kept]


def _step_seconds(model: LanguageModel) -> float:
    with model.open(256) as context:
        context.prepare(1)
        context.prefill(PROMPT)

        def step() -> None:
            context.forward(PROMPT[:1])
            context.rewind(1)
            synchronize(model.device)

        return _median_seconds(step)


def _median_seconds(run: Callable[[], object]) -> float:
    times = []
    for _ in range(REPEATS + 2):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times[2:])


if __name__ == "__main__":
    raise SystemExit(main())
