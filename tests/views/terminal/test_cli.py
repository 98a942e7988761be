"""The commands as a person calls them, on real checkpoints: results on stdout, all else on stderr, and the status."""

import io
import json
import subprocess
import sys
from dataclasses import replace

import pytest
from support.scripted import race as scripted_race
from support.scripted import script, sourced, standard
from support.tiny_checkpoints import CONTEXT, GERMAN, save_llama

from specviz.traces import LaneFinished, RaceFinished, RaceStarted, Reason, read_trace, write_trace
from specviz.views.terminal import main
from specviz.views.terminal.commands import commands

KEYS = {
    *("text", "token_ids", "finish_reason", "kept_tokens", "target_passes", "draft_passes", "drafted", "accepted"),
    *(
        "tested",
        "alpha",
        "tau",
        "c",
        "coverage",
        "mean_drafted",
        "mean_depth",
        "sources",
        "seconds",
        "prefill_seconds",
        "first_token_seconds",
    ),
    *("tokens_per_second", "speedup", "identical_to_standard", "first_divergence"),
}


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    return save_llama(tmp_path_factory.mktemp("target"))


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A draft with the target's tokenizer and other weights."""
    return save_llama(tmp_path_factory.mktemp("small"), seed=1, layers=1)


@pytest.fixture
def call(capsys, one_thread):
    """Runs a command line; gives (status, stdout, stderr)."""

    def run(*arguments):
        status = main([str(argument) for argument in arguments])
        return status, *capsys.readouterr()

    return run


@pytest.fixture
def race(call, target):
    def run(*arguments, prompt="the cat", dtype="float32"):
        return call("race", "--target", target, "--dtype", dtype, f"--prompt={prompt}", *arguments)

    return run


def numbers(result):
    status, out, _ = result
    assert status == 0
    return json.loads(out)


def refused(result):
    """The sentence of a refusal: nothing on stdout, one line on stderr, status 2."""
    status, out, err = result
    assert status == 2 and out == "" and err.count("\n") == 1 and err.rstrip().endswith("."), (status, out, err)
    return err


# ---- race


def test_json_is_one_object_of_the_promised_keys(race, small):
    drafts = ("prompt-lookup:max_ngram=2,k=3", f"draft-model={small}:k=2")
    value = numbers(race(*(f"--draft={draft}" for draft in drafts), "--json", "--max-new-tokens", 12))
    assert set(value) == {"lanes", "settings", "device", "dtype"}
    assert list(value["lanes"]) == ["standard", *drafts]
    assert all(set(lane) == KEYS for lane in value["lanes"].values())
    assert (value["device"], value["dtype"]) == ("cpu", "float32")
    settings = value["settings"]
    assert (settings["k"], settings["max_new_tokens"], settings["temperature"], settings["seed"]) == (5, 12, 0.0, 0)


def test_the_numbers_agree_with_each_other(race, small):
    lanes = numbers(race(f"--draft=draft-model={small}", "--json", "--max-new-tokens", 12, "--ignore-eos"))["lanes"]
    plain, drafted = lanes["standard"], lanes[f"draft-model={small}"]
    assert plain["kept_tokens"] == plain["target_passes"] == 12 and plain["tau"] == 1.0 and plain["speedup"] == 1.0
    assert drafted["token_ids"] == plain["token_ids"] and drafted["text"] == plain["text"]
    assert drafted["identical_to_standard"] is True and drafted["first_divergence"] is None
    assert drafted["draft_passes"] == drafted["drafted"] == 5 * drafted["target_passes"]
    assert drafted["tau"] == 12 / drafted["target_passes"]
    assert drafted["finish_reason"] == "length" and drafted["seconds"] > 0


def test_a_draft_like_its_target_is_always_right(race, target):
    lane = numbers(race(f"--draft=draft-model={target}", "--json", "--max-new-tokens", 12, "-k", 3, "--ignore-eos"))
    lane = lane["lanes"][f"draft-model={target}"]
    assert (lane["alpha"], lane["target_passes"], lane["tau"]) == (1.0, 3, 4.0)


def test_two_ks_of_one_draft_race_as_two_lanes(race, small):
    texts = [f"draft-model={small}:k=2", f"draft-model={small}:k=8"]
    lanes = numbers(race(*(f"--draft={text}" for text in texts), "--json", "--max-new-tokens", 10, "--ignore-eos"))[
        "lanes"
    ]
    assert [lanes[text]["drafted"] / lanes[text]["target_passes"] for text in texts] == [2.0, 8.0]
    assert lanes[texts[0]]["token_ids"] == lanes[texts[1]]["token_ids"]


def test_the_page_of_text_has_lanes_table_and_verdicts(race):
    status, out, err = race("--draft", "prompt-lookup", "--max-new-tokens", 8, "--ignore-eos")
    assert status == 0
    assert "== standard ==" in out and "== prompt-lookup ==" in out
    for label in (
        "tokens per target pass (τ)",
        "cost of a drafted token (c)",
        "predicted speed-up (S)",
        "verify curve v",
    ):
        assert label in out
    assert "standard: 8 tokens in 8 target passes" in out and "\nprompt-lookup: " in out
    assert "\x1b" not in out and "\x1b" not in err
    assert "Measuring" in err and "Measuring" not in out


def test_the_same_seed_repeats_a_sampled_run(race, small):
    arguments = (f"--draft=draft-model={small}", "--json", "--temperature", 1, "--top-p", 0.9, "--max-new-tokens", 10)
    one, two, other = (numbers(race(*arguments, "--seed", seed))["lanes"] for seed in (3, 3, 4))
    text = {lane["text"] for lanes in (one, two) for lane in (lanes["standard"],)}
    assert len(text) == 1 and other["standard"]["text"] not in text
    assert [one[name]["accepted"] for name in one] == [two[name]["accepted"] for name in two]
    assert all(lane["identical_to_standard"] is None for lane in one.values())


def test_sampling_flags_reach_every_lane(race, tmp_path):
    trace = tmp_path / "run.jsonl"
    flags = {"--top-k": 7, "--repetition-penalty": 1.5, "--presence-penalty": -1, "--frequency-penalty": 0.5}
    pairs = [part for pair in flags.items() for part in pair]
    status, _, _ = race(*pairs, "--stop", "xyz", "--stop", "\n\n", "--draft", "none:seed=9", "--no-telemetry", "--json",
                        "--max-new-tokens", 3, "--temperature", "1e-6", "--trace", trace)  # fmt: skip
    assert status == 0
    lanes = next(read_trace(trace)).header.lanes
    assert [lane.settings.seed for lane in lanes] == [0, 9]
    for lane in lanes:
        found = lane.settings
        assert (found.top_k, found.repetition_penalty, found.presence_penalty) == (7, 1.5, -1.0)
        assert (found.frequency_penalty, found.stop, found.telemetry) == (0.5, ("xyz", "\n\n"), False)
        assert found.temperature == 1e-6


def test_raw_and_chat_decode_other_ids(race, tmp_path):
    def prompt_ids(*flags):
        assert race(*flags, "--json", "--max-new-tokens", 1, "--trace", tmp_path / "run.jsonl")[0] == 0
        header = next(read_trace(tmp_path / "run.jsonl")).header
        return header.chat, header.prompt_ids

    assert prompt_ids() == prompt_ids("--chat") and prompt_ids()[0]
    chat, raw_ids = prompt_ids("--raw")
    assert not chat and len(raw_ids) < len(prompt_ids()[1])


def test_a_prompt_file_is_the_prompt_without_its_last_line_break(call, target, tmp_path, monkeypatch):
    path, trace = tmp_path / "prompt.txt", tmp_path / "run.jsonl"
    path.write_bytes("\ufeffa cat\nund Öl\r\n".encode())
    arguments = ("--target", target, "--dtype", "float32", "--json", "--max-new-tokens", 1, "--trace", trace)
    assert call("race", "--prompt-file", path, *arguments)[0] == 0
    assert next(read_trace(trace)).header.prompt == "a cat\nund Öl"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"the dog\n")))
    assert call("race", "--prompt-file", "-", *arguments)[0] == 0
    assert next(read_trace(trace)).header.prompt == "the dog"


def test_notes_go_to_stderr_and_into_the_trace(call, tmp_path):
    bare = save_llama(tmp_path / "bare", template=None)
    arguments = ("--target", bare, "--dtype", "float32", "--json", "--max-new-tokens", 300, "--ignore-eos")
    status, out, err = call("race", "--prompt", "the cat", *arguments, "--trace", tmp_path / "run.jsonl")
    assert status == 0 and "has no chat template" in err and f"reads at most {CONTEXT}" in err
    lane = json.loads(out)["lanes"]["standard"]
    events = list(read_trace(tmp_path / "run.jsonl"))
    assert lane["finish_reason"] == "context"
    assert lane["kept_tokens"] == CONTEXT - len(events[0].header.prompt_ids)
    assert "has no chat template" in events[0].header.lanes[0].note
    assert call("replay", tmp_path / "run.jsonl", "--json")[1:] == (out, err.split("Measuring")[0])


def test_a_draft_cut_by_the_context_says_so(race, target):
    _, out, err = race(f"--draft=draft-model={target}:k=5", "--max-new-tokens", 300, "--ignore-eos", "--json")
    # 44 tokens of room are 7 rounds of 6 and one of 2
    assert "k cut to 2: the room left in the context (1 round)" in err and "cut" not in out


# ---- bad input


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "One of the arguments --prompt --prompt-file is required"),
        (("--prompt", ""), "The prompt is empty"),
        (("--prompt", " \n"), "The prompt is empty"),
        (("--prompt", "x", "--prompt-file", "y"), "not allowed with argument"),
        (("--prompt", "x", "--chat", "--raw"), "not allowed with argument"),
        (("--prompt-file", "/nowhere/at/all"), "/nowhere/at/all cannot be read: No such file"),
        (("--prompt-file", "/"), "cannot be read: Is a directory"),
        (("--prompt", "x", "-k", "-1"), "k must lie between 0 and 64"),
        (("--prompt", "x", "-k", "65"), "k must lie between 0 and 64"),
        (("--prompt", "x", "-k", "2.5"), "k must be a whole number"),
        (("--prompt", "x", "-k", "many"), "k must be a number"),
        (("--prompt", "x", "--max-new-tokens", "0"), "max_new_tokens must lie between 1 and"),
        (("--prompt", "x", "--max-new-tokens", "9" * 30), "max_new_tokens must lie between 1 and"),
        (("--prompt", "x", "--temperature", "-0.1"), "temperature must lie between 0"),
        (("--prompt", "x", "--temperature", "inf"), "temperature must be a number"),
        (("--prompt", "x", "--top-p", "0"), "top_p must be above 0"),
        (("--prompt", "x", "--seed", "9" * 500), "seed must be a number"),
        (("--prompt", "x", "--stop", ""), "A stop string must be a text of 1 to"),
        (("--prompt", "x", "--draft", "magic"), "There is no draft 'magic'"),
        (("--prompt", "x", "--draft", "none", "--draft", "none"), "'none' is given twice"),
        (("--prompt", "x", "--draft", "draft-model"), "needs a draft model"),
        (("--prompt", "x", "--temp", "1"), "Unrecognized arguments: --temp"),
        (("--prompt", "x", "--target", "smollm"), "'smollm' is not a source of weights"),
        (("--prompt", "x", "--target", "path:/nowhere"), "There is no folder /nowhere"),
        (("--prompt", "x", "--target", "gguf:/nowhere.gguf"), "/nowhere.gguf"),
        (("--prompt", "x", "--device", "abacus"), "'abacus' is not a device"),
        (("--prompt", "x", "--dtype", "int4"), "dtype 'int4' is not known"),
        (("--prompt", "x", "--trace", "/nowhere/run.jsonl"), "cannot be written to /nowhere/run.jsonl"),
        (("--prompt", "x", "--trace", "/"), "cannot be written to /"),
    ],
)
def test_a_wrong_input_is_one_sentence_and_status_2(call, arguments, words):
    assert words in refused(call("race", *arguments))


@pytest.mark.parametrize(
    ("content", "words"), [(b"\xff\xfe\x00", "is not text in UTF-8"), (b"", "empty"), (b"a" * 1_000_001, "larger than")]
)
def test_a_prompt_file_that_cannot_be_used_is_refused(call, tmp_path, content, words):
    path = tmp_path / "prompt.txt"
    path.write_bytes(content)
    assert words in refused(call("race", "--prompt-file", path))


def test_a_prompt_that_is_no_utf8_is_refused(call):
    assert "UTF-8" in refused(call("race", "--prompt", "a\udcff"))


def test_a_prompt_that_fills_the_context_is_refused(race):
    assert f"reads at most {CONTEXT}" in refused(race("--raw", prompt="z" * CONTEXT))


def test_a_draft_of_another_tokenizer_is_refused(race, tmp_path):
    other = save_llama(tmp_path / "other", sentences=GERMAN)
    assert "their tokenizers differ" in refused(race(f"--draft=draft-model={other}"))


def test_a_file_that_is_no_model_is_refused(call, tmp_path):
    (tmp_path / "config.json").write_text("{")
    assert "is damaged" in refused(call("race", "--prompt", "x", "--target", f"path:{tmp_path}"))


def test_a_refusal_cannot_write_controls_to_the_terminal(call):
    words = refused(call("race", "--prompt", "x", "--target", "path:/no\x1b[2J\nwhere\u202e"))
    assert "\\x1b[2J where\\u202e" in words


def test_a_refused_race_leaves_the_old_trace_as_it_was(race, tmp_path):
    trace = tmp_path / "run.jsonl"
    trace.write_text("precious")
    refused(race("--raw", "--trace", trace, prompt="z" * CONTEXT))
    assert trace.read_text() == "precious"
    refused(race("--raw", "--trace", tmp_path / "new.jsonl", prompt="z" * CONTEXT))
    assert not (tmp_path / "new.jsonl").exists()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs a device that is always full")
def test_a_full_disk_is_a_sentence(race):
    status, _, err = race("--trace", "/dev/full", "--max-new-tokens", 2, "--json")
    assert status == 2 and "cannot be written to /dev/full: No space left on device." in err


# ---- edges that are no errors


@pytest.mark.parametrize("k", [0, 1, 64])
def test_any_k_in_range_writes_what_standard_decoding_writes(race, target, k):
    value = numbers(race(f"--draft=draft-model={target}", "--json", "--max-new-tokens", 5, "-k", k, "--ignore-eos"))
    lane = value["lanes"][f"draft-model={target}"]
    assert lane["kept_tokens"] == 5 and lane["identical_to_standard"] is True
    assert lane["target_passes"] == {0: 5, 1: 3, 64: 1}[k]
    assert (lane["drafted"] == 0) == (k == 0)


def test_a_prompt_of_one_token_races(race):
    lanes = numbers(race("--raw", "--draft=prompt-lookup", "--json", "--max-new-tokens", 4, prompt="z"))["lanes"]
    assert lanes["prompt-lookup"]["token_ids"] == lanes["standard"]["token_ids"]


def test_no_draft_races_standard_alone(race):
    assert list(numbers(race("--json", "--max-new-tokens", 2))["lanes"]) == ["standard"]


@pytest.mark.parametrize("temperature", ["1e-6", "2"])
def test_any_temperature_runs(race, temperature):
    lanes = numbers(race("--draft=prompt-lookup", "--json", "--max-new-tokens", 4, "--temperature", temperature))[
        "lanes"
    ]
    assert all(lane["kept_tokens"] >= 1 for lane in lanes.values())


# ---- replay


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_replay_prints_what_the_race_printed(race, call, small, tmp_path, form):
    trace = tmp_path / "run.jsonl"
    arguments = (f"--draft=draft-model={small}:k=3", "--draft=prompt-lookup", "--max-new-tokens", 12)
    status, out, err = race(*arguments, "--trace", trace, *form)
    assert status == 0 and out
    assert call("replay", trace, *form) == (0, out, err.split("Measuring")[0])


def test_replay_at_a_speed_prints_the_same_numbers(call, tmp_path):
    events = scripted_race({"standard": standard(3), "x": script("AAb", times=(0.01, 0.1, 0.0))}, drafts={"x": "none"})
    write_trace(tmp_path / "run.jsonl", events)
    at_once = call("replay", tmp_path / "run.jsonl", "--json")
    assert call("replay", tmp_path / "run.jsonl", "--json", "--speed", 100) == at_once
    status, out, _ = call("replay", tmp_path / "run.jsonl", "--speed", 100)
    # on their own clocks the short lane ends first, though the file tells it last
    assert status == 0 and out.index("== x ==") < out.index("== standard ==")


def test_drafts_are_counted_by_source_in_the_table_and_the_json(call, tmp_path):
    rounds = sourced(script("AAb", "ARUc"), "match", "table", "match", "table", "table")
    path = tmp_path / "sourced.jsonl"
    write_trace(path, scripted_race({"standard": standard(5), "draft": rounds}))
    status, out, _ = call("replay", path)
    # columns: standard, then the draft
    told = [line.split("  ") for line in out[out.index("accepted by source") :].splitlines()[1:3]]
    assert [[cell.strip() for cell in line if cell.strip()] for line in told] == [
        ["match", "–", "2 of 2, 100%"],
        ["table", "–", "1 of 3, 33%"],
    ]
    lanes = numbers(call("replay", path, "--json"))["lanes"]
    assert lanes["draft"]["sources"] == [
        {"source": "match", "drafted": 2, "accepted": 2},
        {"source": "table", "drafted": 3, "accepted": 1},
    ]
    assert lanes["standard"]["sources"] == []
    assert (lanes["draft"]["mean_drafted"], lanes["draft"]["mean_depth"]) == (2.5, 2.5)


def test_replay_keeps_the_true_clock(monkeypatch):
    from specviz.views.terminal.commands import replay

    now, slept = [100.0], []
    monkeypatch.setattr(replay.time, "monotonic", lambda: now[0])

    def sleep(seconds):
        slept.append(round(seconds, 6))
        now[0] += seconds

    monkeypatch.setattr(replay.time, "sleep", sleep)
    events = list(scripted_race({"standard": standard(2, verify=0.3), "x": script("Ab", times=(0.1, 0.3, 0.0))}))
    order = [event for event in replay.paced(events, 0.5)]
    # rounds end at 0.3 and 0.6 (standard) and at 0.4 (x); at half speed each waits twice as long
    assert [seconds for seconds in slept if seconds] == [0.6, 0.2, 0.4]
    assert [event.lane for event in order if isinstance(event, LaneFinished)] == ["x", "standard"]
    assert isinstance(order[0], RaceStarted) and isinstance(order[-1], RaceFinished)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot be read: No such file"),
        (b"", "holds no events"),
        (b"hello\n", "run.jsonl, line 1: it is not JSON"),
        (b'{"event":"RaceFinished"}\n', "does not begin with a RaceStarted"),
    ],
)
def test_a_file_that_is_no_trace_is_refused(call, tmp_path, content, words):
    if content is not None:
        (tmp_path / "run.jsonl").write_bytes(content)
    assert words in refused(call("replay", tmp_path / "run.jsonl"))


@pytest.mark.parametrize("speed", ["0", "-1", "fast", "nan"])
def test_a_speed_out_of_range_is_refused(call, tmp_path, speed):
    write_trace(tmp_path / "run.jsonl", scripted_race({"standard": standard(1)}))
    assert "The speed must be a number from" in refused(call("replay", tmp_path / "run.jsonl", "--speed", speed))


def test_a_trace_that_breaks_late_is_refused_before_anything_is_shown(call, tmp_path):
    events = [*scripted_race({"standard": standard(1)}), LaneFinished("stranger", Reason.EOS, None)]
    write_trace(tmp_path / "run.jsonl", events)
    assert "lane 'stranger', which its header does not list" in refused(call("replay", tmp_path / "run.jsonl"))


def test_a_hostile_trace_writes_no_control_to_the_terminal(call, tmp_path):
    evil = "\x1b]0;owned\x07\x9b2J\u202e[bold]"
    events = list(scripted_race({"standard": standard(2), evil: script("Ac", note=evil)}))
    header = events[0].header
    target = replace(header.target, name=evil, note=evil)
    events[0] = RaceStarted(replace(header, prompt=evil, target=target, device=evil, device_name=evil, dtype=evil))
    write_trace(tmp_path / "run.jsonl", events)
    for form in ((), ("--json",)):
        status, out, err = call("replay", tmp_path / "run.jsonl", *form)
        assert status == 0 and not set("\x1b\x07\x9b\u202e") & set(out + err)
    assert "[bold]" in call("replay", tmp_path / "run.jsonl")[1]


def test_a_lane_that_failed_is_told_in_words(call, tmp_path):
    events = scripted_race({"standard": standard(2), "x": script("Ac")}, reasons={"x": Reason.ERROR})
    write_trace(tmp_path / "run.jsonl", events)
    status, out, _ = call("replay", tmp_path / "run.jsonl")
    assert status == 0 and "x: ended by an error after 2 tokens: out of memory" in out
    assert "x: out of memory" in call("replay", tmp_path / "run.jsonl", "--json")[2]


def test_replay_and_help_load_no_torch(tmp_path):
    write_trace(tmp_path / "run.jsonl", scripted_race({"standard": standard(1)}))
    code = (
        "import sys; from specviz.views.terminal import main; status = main(sys.argv[1:]);"
        "assert not {'torch', 'transformers', 'gradio'} & set(sys.modules); sys.exit(status)"
    )
    for arguments in (("replay", str(tmp_path / "run.jsonl")), ("replay", str(tmp_path / "run.jsonl"), "--json")):
        assert subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True).returncode == 0


# ---- the command line itself


def test_every_command_is_found_by_its_file_and_says_what_it_does(call):
    assert {"race", "replay"} <= set(commands())
    with pytest.raises(SystemExit) as caught:
        call("--help")
    assert caught.value.code == 0
    for command in commands().values():
        assert command.__doc__.splitlines()[0].endswith(".")


@pytest.mark.parametrize("arguments", [(), ("dance",), ("race", "--json")])
def test_a_command_line_that_makes_no_sense_is_one_sentence(call, arguments):
    assert "--help." in refused(call(*arguments))
