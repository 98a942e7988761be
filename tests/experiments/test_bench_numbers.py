"""What the benchmark's numbers mean, on values worked by hand."""

import os
import subprocess
import sys

import pytest
import torch
from support.scripted import race, script, standard
from support.tiny_checkpoints import llama

from specviz.drafting import make_draft
from specviz.experiments.aggregate import described, spread
from specviz.experiments.bandwidth import Reader, _size
from specviz.experiments.effort import Effort, effort_of
from specviz.experiments.engine_speed import EngineSpeed
from specviz.experiments.lane_writer import lane_writer
from specviz.experiments.paired import Task, duel, judged
from specviz.experiments.pass_cost import pass_samples, weight_bytes_read
from specviz.experiments.processes import PeakMemory
from specviz.experiments.reply import Reply
from specviz.experiments.serving import outside_engine
from specviz.experiments.transformers_generate import generate_writer, make_bare
from specviz.models import LanguageModel
from specviz.traces import Reason


def test_samples_keep_their_order_and_have_inclusive_quartiles():
    assert described([4.0, 1.0, 3.0, 2.0]) == {"samples": [4.0, 1.0, 3.0, 2.0], "median": 2.5, "q1": 1.75, "q3": 3.25}
    assert described([7.0])["q1"] == described([7.0])["q3"] == 7.0
    assert described([]) == {"samples": [], "median": None, "q1": None, "q3": None}


def test_decoding_is_what_comes_after_the_first_tokens():
    reply = Reply(tuple(range(10)), seconds=5.0, first_seconds=1.0, first_tokens=2, passes=4)
    assert (reply.tokens_per_second, reply.whole_tokens_per_second, reply.tau) == (2.0, 2.0, 2.5)
    assert Reply((1, 2), 1.0, 1.0, 2, 1).tokens_per_second is None  # all came at once
    assert (Reply((1, 2), 1.0).tokens_per_second, Reply((1, 2), 1.0).tau) == (None, None)


def test_the_sides_of_a_duel_take_turns_in_going_first():
    calls = []

    def side(name, seconds, ids):
        def write(prompt_ids, tokens):
            calls.append((name, prompt_ids, tokens))
            return Reply(ids, seconds, 1.0, 1, 3)

        return write

    tasks = (Task("a", (1,), 3), Task("b", (2,), 3))
    pairs = duel(side("ours", 2.0, (1, 2, 3)), side("theirs", 5.0, (1, 2, 4)), tasks, 2, 60.0, lambda words: None)
    assert [name for name, *_ in calls] == ["ours", "theirs"] * 2 + ["theirs", "ours"] * 2
    assert [(ids, tokens) for _, ids, tokens in calls[::2]] == [((1,), 3), ((2,), 3)] * 2
    result = judged(pairs)
    # ours: 2 tokens in 1 s; theirs: 2 in 4 s
    assert result["ratio"] == {"samples": [4.0] * 4, "median": 4.0, "q1": 4.0, "q3": 4.0}
    assert result["whole_ratio"]["median"] == 2.5 and result["ours"]["tau"]["median"] == 1.0
    assert result["prompts"]["b"]["ratio"]["samples"] == [4.0, 4.0] and result["prompts"]["b"]["first_difference"] == 2


def test_a_duel_whose_time_is_up_ends_after_a_whole_repeat():
    def write(prompt_ids, tokens):
        return Reply((1, 2), 1.0)

    def other(prompt_ids, tokens):
        return Reply((1, 2), 2.0)

    said = []
    tasks = (Task("a", (1,), 2), Task("b", (2,), 2))
    pairs = duel(write, other, tasks, 3, -1.0, said.append)
    assert [pair.task.name for pair in pairs] == ["a", "b"] and said[-1] == "the time is up after 1 of 3 repeats"
    assert [pair.whole_ratio for pair in pairs] == [2.0, 2.0] and [pair.ratio for pair in pairs] == [None, None]


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
    theirs = generate_writer(make_bare(module))((5, 6, 7), 20)
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
    samples = pass_samples(model[0], [1, 4], 3)
    assert {width: len(seconds) for width, seconds in samples.items()} == {1: 3, 4: 3}
    assert min(samples[1] + samples[4]) > 0


def test_a_read_covers_at_least_the_bytes_asked_for(one_thread):
    reader = Reader(torch.device("cpu"), torch.float32, 1, 1_000_000)
    # 61 rows of 4,096 floats fall short of a million bytes, so it takes a second weight
    assert reader.bytes == 2 * 61 * 4096 * 4 and reader.read() > 0
    assert [_size(text) for text in ("480M\n", "32K", "64", "")] == [480 * 2**20, 32 * 2**10, 64, 0]


def test_the_engines_speed_is_tokens_over_lane_clocks():
    speed = EngineSpeed()
    # 4 tokens in 0.4 s, and 3 + 1 tokens in 2 rounds of 0.1 + 0.1 s
    lanes = {"standard": standard(4), "draft": script("AAb", "Rc", times=(0.1, 0.1, 0.0))}
    for event in race(lanes):
        speed.add(event)
    assert (speed.rounds, speed.numbers()["tokens"], speed.numbers()["failure"]) == (6, 8, None)
    assert speed.numbers()["tokens_per_second"] == pytest.approx(10.0)
    failed = EngineSpeed()
    for event in race({"standard": standard(1)}, reasons={"standard": Reason.ERROR}):
        failed.add(event)
    assert failed.numbers()["failure"] == "out of memory"


def test_work_outside_the_engine_is_what_the_engines_thread_did_not_do():
    def look(clock, process, engine, thread=7):
        return {"clock": clock, "process": process, "engine": engine, "thread": thread}

    before, after = look(0.0, 9.0, 0.0, None), look(9.0, 30.0, 1.0, None)
    during = [look(1.0, 10.0, 5.0), look(2.0, 11.9, 6.8), look(3.0, 14.0, 8.6)]
    assert outside_engine([before, *during, after]) == pytest.approx((4.0 - 3.6) / 2.0)
    assert outside_engine(during[:1]) is None and outside_engine([{"thread": None}] * 3) is None


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
    assert spread(described([1.0, 2.0, 3.0]), ".2f", "x") == "2.00x [1.50, 2.50]"
    assert spread(described([0.0123]), ".1f", scale=1000) == "12.3"
    assert spread(described([]), ".1f") == "-"
