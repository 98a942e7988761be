"""What the benchmark's numbers mean, on values worked by hand."""

import os
import subprocess
import sys
from dataclasses import dataclass

import pytest
import torch
from support.scripted import race, script, standard
from support.tiny_checkpoints import llama

from specviz.drafting import make_draft
from specviz.experiments.aggregate import Distribution, MeanAndWorst, median, medians
from specviz.experiments.bench_parts.roofline import RooflineResult, WeightReader, weight_bytes_read
from specviz.experiments.bench_parts.verify import pass_seconds
from specviz.experiments.bench_plan import Effort, effort_of
from specviz.experiments.bench_report import median_cell
from specviz.experiments.engine_speed import CpuTimes, SpeedCounter, cores_outside_engine
from specviz.experiments.json_form import inlined, to_json
from specviz.experiments.machine_facts import _size
from specviz.experiments.paired import PairedComparison, Task, compare_in_turn
from specviz.experiments.processes import PeakMemory
from specviz.experiments.repeat import Budget, measure_in_turn, repeats, rotated, take_turns
from specviz.experiments.writers import Reply, generate_writer, lane_writer, without_generation_config
from specviz.models import LanguageModel
from specviz.traces import Reason


def test_samples_keep_their_order_and_have_inclusive_quartiles():
    assert to_json(Distribution.of([4.0, 1.0, 3.0, 2.0])) == {
        "samples": [4.0, 1.0, 3.0, 2.0],
        "median": 2.5,
        "q1": 1.75,
        "q3": 3.25,
    }
    assert Distribution.of([7.0]).q1 == Distribution.of([7.0]).q3 == 7.0
    assert to_json(Distribution.of([])) == {"samples": [], "median": None, "q1": None, "q3": None}


def test_decoding_is_what_comes_after_the_first_tokens():
    reply = Reply(tuple(range(10)), seconds=5.0, first_seconds=1.0, first_tokens=2, passes=4)
    assert (reply.tokens_per_second, reply.whole_tokens_per_second, reply.tau) == (2.0, 2.0, 2.5)
    assert Reply((1, 2), 1.0, 1.0, 2, 1).tokens_per_second is None  # all came at once
    assert (Reply((1, 2), 1.0).tokens_per_second, Reply((1, 2), 1.0).tau) == (None, None)


def test_the_sides_of_a_comparison_take_turns_in_going_first():
    calls = []

    def side(name, seconds, ids):
        def write(prompt_ids, tokens):
            calls.append((name, prompt_ids, tokens))
            return Reply(ids, seconds, 1.0, 1, 3)

        return write

    tasks = (Task("a", (1,), 3), Task("b", (2,), 3))
    pairs = compare_in_turn(
        side("ours", 2.0, (1, 2, 3)), side("theirs", 5.0, (1, 2, 4)), tasks, 2, 60.0, lambda words: None
    )
    assert [name for name, *_ in calls] == ["ours", "theirs"] * 2 + ["theirs", "ours"] * 2
    assert [(ids, tokens) for _, ids, tokens in calls[::2]] == [((1,), 3), ((2,), 3)] * 2
    result = to_json(PairedComparison.of(pairs))
    # ours: 2 tokens in 1 s; theirs: 2 in 4 s
    assert result["ratio"] == {"samples": [4.0] * 4, "median": 4.0, "q1": 4.0, "q3": 4.0}
    assert result["whole_ratio"]["median"] == 2.5 and result["ours"]["tau"]["median"] == 1.0
    assert result["prompts"]["b"]["ratio"]["samples"] == [4.0, 4.0] and result["prompts"]["b"]["first_difference"] == 2


def test_a_comparison_whose_time_is_up_ends_after_a_whole_repeat():
    def write(prompt_ids, tokens):
        return Reply((1, 2), 1.0)

    def other(prompt_ids, tokens):
        return Reply((1, 2), 2.0)

    said = []
    tasks = (Task("a", (1,), 2), Task("b", (2,), 2))
    pairs = compare_in_turn(write, other, tasks, 3, -1.0, said.append)
    assert [pair.task.name for pair in pairs] == ["a", "b"] and said[-1] == "the time is up after 1 of 3 repeats"
    speeds = PairedComparison.of(pairs).speeds
    assert speeds.whole_ratio.samples == (2.0, 2.0) and speeds.ratio.samples == ()


def test_replies_are_as_long_as_the_time_allows():
    effort = Effort(seconds=600.0, repeats=3, tokens=128, least_tokens=24)
    # 60 s over 3 repeats of 4 prompts: 5 s a pair of replies, at 0.125 s a token
    assert effort.tokens_in(0.1, 0.125, 4) == 40
    assert (effort.tokens_in(0.1, 0.001, 4), effort.tokens_in(0.1, 1.0, 4)) == (128, 24)
    assert (effort_of(None, False).seconds, effort_of(5, True).seconds, effort_of(5, True).repeats) == (720, 300, 1)


@pytest.fixture
def model(one_thread):
    module, tokenizer = llama()
    return LanguageModel(module, tokenizer), module


def test_generate_writes_what_standard_decoding_writes_whatever_the_checkpoint_says(model):
    target, module = model
    ours = lane_writer(target, make_draft("none", target), 0)((5, 6, 7), 20)
    module.generation_config.eos_token_id = ours.ids[3]
    module.generation_config.do_sample, module.generation_config.temperature = True, 5.0
    theirs = generate_writer(without_generation_config(module))((5, 6, 7), 20)
    assert ours.ids == theirs.ids and len(ours.ids) == 20
    assert (ours.passes, theirs.passes, ours.first_tokens, theirs.first_tokens) == (20, 20, 1, 1)
    assert 0 < theirs.first_seconds < theirs.seconds and 0 < ours.first_seconds < ours.seconds


def test_a_reply_goes_on_past_the_end_of_sequence(model):
    target, _ = model
    first = lane_writer(target, make_draft("none", target), 0)((5, 6, 7), 1).ids
    target.eos_ids = first
    assert len(lane_writer(target, make_draft("prompt-lookup", target), 3)((5, 6, 7), 20).ids) == 20


def test_a_pass_reads_all_weights_but_the_looked_up_embedding(model):
    target, module = model
    rows = module.config.vocab_size
    # attention 32 x (32 + 16 + 16 + 32), gated MLP 3 x 32 x 48, two norms; the last norm and the head
    layer = 32 * 96 + 3 * 32 * 48 + 2 * 32
    assert weight_bytes_read(target) == 4 * (2 * layer + 32 + rows * 32)
    assert weight_bytes_read(LanguageModel(module, None, weights="plain")) == weight_bytes_read(target)


def test_a_head_tied_to_the_embedding_is_read(one_thread):
    module, _ = llama()
    rows = module.config.vocab_size
    module.lm_head.weight = module.model.embed_tokens.weight
    tied = LanguageModel(module, None, weights="plain")
    assert weight_bytes_read(tied) == 4 * (2 * (32 * 96 + 3 * 32 * 48 + 2 * 32) + 32 + rows * 32)


def test_passes_are_measured_at_every_width_and_leave_the_context_as_it_was(model):
    samples = pass_seconds(model[0], [1, 4], 3)
    assert {width: len(seconds) for width, seconds in samples.items()} == {1: 3, 4: 3}
    assert min(samples[1] + samples[4]) > 0


def test_a_read_covers_at_least_the_bytes_asked_for(one_thread):
    reader = WeightReader(torch.device("cpu"), torch.float32, 1, 1_000_000)
    # 61 rows of 4,096 floats fall short of a million bytes, so it takes a second weight
    assert reader.bytes == 2 * 61 * 4096 * 4 and reader.read() > 0
    assert [_size(text) for text in ("480M\n", "32K", "64", "")] == [480 * 2**20, 32 * 2**10, 64, 0]


def test_the_engines_speed_is_tokens_over_lane_clocks():
    counter = SpeedCounter()
    # 4 tokens in 0.4 s, and 3 + 1 tokens in 2 rounds of 0.1 + 0.1 s
    lanes = {"standard": standard(4), "draft": script("AAb", "Rc", times=(0.1, 0.1, 0.0))}
    for event in race(lanes):
        counter.add(event)
    assert (counter.rounds, counter.speed().tokens, counter.speed().failure) == (6, 8, None)
    assert counter.speed().tokens_per_second == pytest.approx(10.0)
    failed = SpeedCounter()
    for event in race({"standard": standard(1)}, reasons={"standard": Reason.ERROR}):
        failed.add(event)
    assert failed.speed().failure == "out of memory"


def test_work_outside_the_engine_is_what_the_engines_thread_did_not_do():
    def look(clock, process, engine, thread=7):
        return CpuTimes(thread, engine, process, clock)

    before, after = look(0.0, 9.0, 0.0, None), look(9.0, 30.0, 1.0, None)
    during = [look(1.0, 10.0, 5.0), look(2.0, 11.9, 6.8), look(3.0, 14.0, 8.6)]
    assert cores_outside_engine([before, *during, after]) == pytest.approx((4.0 - 3.6) / 2.0)
    assert cores_outside_engine(during[:1]) is None and cores_outside_engine([CpuTimes(None)] * 3) is None


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="needs /proc")
def test_peak_memory_counts_the_children_and_remembers_what_was_given_back():
    hold = "import sys; block = bytearray(80_000_000); print('held', flush=True); sys.stdin.readline()"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {hold!r}]); print('gone', flush=True)"
    parent += "; sys.stdin.readline()"
    process = subprocess.Popen(
        [sys.executable, "-c", parent], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )
    with PeakMemory(process.pid) as peak:
        assert process.stdout.readline() == "held\n"
        while peak.bytes is None or peak.bytes < 80_000_000:
            assert process.poll() is None
        process.stdin.write("\n")
        assert process.stdout.readline() == "gone\n"
    process.communicate("\n", timeout=10)
    assert 80_000_000 < peak.bytes < 300_000_000


def test_a_spread_is_a_median_with_its_quartiles():
    assert median_cell(Distribution.of([1.0, 2.0, 3.0]), ".2f", "x") == "2.00x [1.50, 2.50]"
    assert median_cell(Distribution.of([0.0123]), ".1f", scale=1000) == "12.3"
    assert median_cell(Distribution.of([]), ".1f") == "-"


# repeating and aggregating


def test_every_side_goes_first_in_turn_and_results_keep_the_order_of_the_sides():
    calls = []
    sides = {name: lambda name=name: calls.append(name) or len(calls) for name in "abc"}
    assert [take_turns(sides, repeat) for repeat in (0, 1)] == [{"a": 1, "b": 2, "c": 3}, {"a": 6, "b": 4, "c": 5}]
    assert "".join(calls) == "abcbca" and list(take_turns(sides, 1)) == ["a", "b", "c"]
    assert [rotated((1, 2), repeat) for repeat in range(3)] == [(1, 2), (2, 1), (1, 2)]


def test_warm_ups_are_measured_and_dropped():
    calls = []
    sides = {name: lambda name=name: calls.append(name) or len(calls) for name in "ab"}
    # a1 b2 is the warm-up, then a3 b4, b5 a6
    assert measure_in_turn(sides, 2, warm_ups=1) == {"a": (3, 6), "b": (4, 5)}


def test_a_spent_budget_ends_the_repeats_after_the_first():
    assert list(repeats(3, Budget(-1.0))) == [0]
    assert list(repeats(3)) == list(repeats(3, Budget(1e9))) == [0, 1, 2] and list(repeats(0, Budget(-1.0))) == []


def test_what_was_not_measured_is_left_out_of_every_aggregate():
    assert Distribution.of([1.0, None, 3.0]).samples == (1.0, 3.0)
    assert Distribution.of_ratios([2.0, None, 9.0, 6.0], [4.0, 1.0, None, 2.0]).samples == (0.5, 3.0)
    assert (median([5.0, None, 1.0]), median([None])) == (3.0, None)
    assert MeanAndWorst.of({"a": 2.0, "b": None, "c": 1.0}) == MeanAndWorst(1.5, 1.0, "c")
    assert MeanAndWorst.of({}) == MeanAndWorst(None, None, None)
    replies = [Reply((1, 2), seconds) for seconds in (3.0, 1.0, 2.0)]
    assert medians(replies, ["seconds", "first_seconds"]) == {"seconds": 2.0, "first_seconds": None}


def test_a_records_json_has_its_fields_its_properties_and_the_entries_of_what_is_inlined():
    @dataclass(frozen=True, slots=True)
    class Inner:
        one: int

        @property
        def two(self):
            return 2 * self.one

        @property
        def _private(self):
            raise AssertionError

    @dataclass(frozen=True, slots=True)
    class Outer:
        inner: Inner = inlined()
        others: dict
        row: tuple

    outer = Outer(Inner(1), {3: Inner(3)}, (Inner(4), None, "text"))
    others = {"3": {"one": 3, "two": 6}}
    assert to_json(outer) == {"one": 1, "two": 2, "others": others, "row": [{"one": 4, "two": 8}, None, "text"]}


def test_a_roofline_is_the_weights_at_the_best_bandwidth():
    result = RooflineResult("float32", 1, 600, 10, None, Distribution((100.0, 200.0, 150.0)), Distribution((6.0, 9.0)))
    assert (result.best_bandwidth, result.floor_seconds, result.ratio) == (200.0, 3.0, 2.5)
