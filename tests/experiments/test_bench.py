"""`python -m specviz bench` on tiny checkpoints: every part that needs no process of its own, and what it refuses."""

import json

import pytest
from support.tiny_checkpoints import GERMAN, save_llama

from specviz.experiments.bench_parts import NAMES, peers
from specviz.experiments.bench_plan import QUICK, BenchPlan
from specviz.experiments.harness import Harness
from specviz.views.terminal import main

IN_PROCESS = ("generate", "assisted", "verify", "roofline")
ROOM = 1024  # for the prompts, which take several hundred of a tiny tokenizer's tokens


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    return save_llama(tmp_path_factory.mktemp("target"), context=ROOM)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return save_llama(tmp_path_factory.mktemp("small"), seed=1, layers=1, context=ROOM)


@pytest.fixture
def call(capsys, one_thread):
    def run(*arguments):
        status = main(["bench", "--quick", "--dtype", "float32", "-k", "3", *map(str, arguments)])
        return status, *capsys.readouterr()

    return run


def described(value):
    """Whether a value is samples with their median and quartiles, in order."""
    assert set(value) == {"samples", "median", "q1", "q3"}
    assert all(sample > 0 for sample in value["samples"])
    return bool(value["samples"]) and value["q1"] <= value["median"] <= value["q3"]


def compared(value):
    assert {"ratio", "whole_ratio", "ours", "theirs", "prompts"} <= set(value)
    assert set(value["prompts"]) == {"copying", "code", "chat", "story"}
    everything = (value, *value["prompts"].values())
    speeds = (one[side][kind] for one in everything for side in ("ours", "theirs") for kind in SPEEDS)
    return all(map(described, speeds)) and all(described(one[kind]) for one in everything for kind in RATIOS)


SPEEDS, RATIOS = ("tokens_per_second", "whole_tokens_per_second", "tau"), ("ratio", "whole_ratio")


def test_every_part_in_this_process_gives_its_numbers_as_one_json_object(call, target, small):
    only = [word for name in IN_PROCESS for word in ("--only", name)]
    status, out, err = call("--json", "--target", target, "--draft", small, *only)
    result = json.loads(out)
    assert status == 0 and out.count("\n") == 1
    assert tuple(result["parts"]) == IN_PROCESS and result["skipped"] == {}
    assert result["machine"]["processor"] and result["machine"]["cores"] >= 1 and result["machine"]["threads"] == 1
    assert set(result["machine"]["versions"]) == {"specviz", "python", "torch", "transformers", "tokenizers", "gradio"}
    assert result["target"]["dtype"] == "float32" and result["draft"]["name"] == "small0"
    parts = result["parts"]
    assert compared(parts["generate"]) and set(parts["generate"]["their_dtype_trials"]) == {"float32", "bfloat16"}
    assert set(parts["assisted"]["compared"]) == {"prompt-lookup", "draft-model"}
    assert all(map(compared, parts["assisted"]["compared"].values()))
    assert [int(width) for width in parts["verify"]["widths"]] == [1, 2, 3, 5, 8, 9, 17, 33, 65]
    assert all(described(one["seconds"]) and one["v"] > 0 for one in parts["verify"]["widths"].values())
    roofline = parts["roofline"]
    assert roofline["ratio"] == pytest.approx(roofline["pass_seconds"]["median"] / roofline["floor_seconds"])
    assert roofline["best_bandwidth"] == max(roofline["bandwidth"]["samples"]) and roofline["weight_bytes_read"] > 0
    assert "copying 1/1" in err


def test_in_float32_both_sides_write_the_same_tokens_as_many_as_asked_for(call, target, small):
    _, out, _ = call("--json", "--target", target, "--draft", small, "--only", "assisted")
    for one in json.loads(out)["parts"]["assisted"]["compared"].values():
        for prompt in one["prompts"].values():
            assert prompt["first_difference"] is None and prompt["tokens"] == QUICK.tokens


def test_a_draft_of_the_targets_own_weights_is_accepted_whole_on_both_sides(call, target):
    _, out, _ = call("--json", "--target", target, "--draft", target, "--only", "assisted")
    one = json.loads(out)["parts"]["assisted"]["compared"]["draft-model"]
    # 12 tokens at k = 3: three passes of four
    assert set(one["ours"]["tau"]["samples"]) == set(one["theirs"]["tau"]["samples"]) == {4.0}


def test_only_the_part_asked_for_is_measured_and_printed_as_a_table(call, target):
    status, out, err = call("--target", target, "--only", "verify")
    assert status == 0 and "verify curve" in out and "over one token" in out
    assert "generate:" not in err and "roofline" not in out
    assert len([line for line in out.splitlines() if line.strip()[:2].strip().isdigit()]) == 9


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--only", "speed"], f"no part 'speed' of the benchmark; choose from: {', '.join(NAMES)}"),
        (["--minutes", "0"], "The minutes must be a number above 0"),
        (["--minutes", "soon"], "not soon"),
        (["-k", "0"], "k must be a whole number from 1 to 64, not 0"),
        (["-k", "2.5"], "not 2.5"),
        (["--target", "path:nowhere"], "nowhere"),
        (["--target", "tiny"], "is not a source of weights"),
    ],
)
def test_what_cannot_be_measured_is_refused_in_words(call, arguments, words):
    status, out, err = call(*arguments)
    assert (status, out) == (2, "") and words in err and "Traceback" not in err


def test_a_pair_that_cannot_work_is_refused_before_anything_is_timed(call, target, tmp_path):
    other = save_llama(tmp_path, sentences=GERMAN, context=ROOM)
    status, out, err = call("--target", target, "--draft", other, "--only", "assisted")
    assert (status, out) == (2, "") and "copying" not in err


def test_a_target_too_short_for_the_prompts_is_left_out_in_words(call, tmp_path):
    short = save_llama(tmp_path, context=64)
    status, out, _ = call("--json", "--target", short, "--only", "generate")
    result = json.loads(out)
    assert (
        status == 0 and result["parts"] == {} and "no prompt leaves room for a reply" in result["skipped"]["generate"]
    )


def test_without_the_other_libraries_peers_says_what_to_install(call, target, monkeypatch):
    monkeypatch.setattr(peers, "_installed", lambda name: False)
    status, out, _ = call("--json", "--target", target, "--only", "peers")
    assert status == 0
    assert json.loads(out)["skipped"]["peers"].endswith("pip install --no-deps economize flashspec.")


def test_a_library_that_fails_costs_its_own_numbers_only(call, target, monkeypatch):
    def broken(harness):
        raise ValueError("not with this model")

    monkeypatch.setattr(peers, "_PEERS", {"rich": (broken, broken)})
    status, out, _ = call("--json", "--target", target, "--only", "peers", "--only", "verify")
    parts = json.loads(out)["parts"]
    assert parts["peers"]["failed"] == {"rich": "ValueError: not with this model"} and "verify" in parts


def test_replies_end_where_the_target_itself_would_end_them(target, one_thread, monkeypatch):
    harness = Harness(BenchPlan(target, None, "cpu", "float32", 3, QUICK), lambda words: None)
    harness.prompts = {"one": harness.prompts["chat"]}
    reply = harness.standard_writer()(harness.prompts["one"], QUICK.tokens).ids
    seventh = next(index for index in range(6, 12) if reply[index] not in reply[:index])
    harness.target.eos_ids = (reply[seventh],)
    assert [task.tokens for task in harness.tasks(1.0, (harness.standard_writer(),))] == [seventh + 1]
