"""`bench --only drafts`: what is compared, its numbers as worked by hand, and a comparison that continues."""

import json
from pathlib import Path

import pytest
import yaml
from support.tiny_checkpoints import save_llama

from specviz.core.errors import InputError
from specviz.experiments.bench_report import Table, markdown
from specviz.experiments.comparison import compared_drafts, split_into_races
from specviz.experiments.comparison_log import ComparisonLog, LoggedRace
from specviz.experiments.comparison_result import AgainstParts, ComparisonResult
from specviz.experiments.json_form import to_json
from specviz.experiments.prompt_set import BENCH, COMPARISON, FixedPrompt, PromptSet, prompt_set
from specviz.views.terminal import main

ROOT = Path(__file__).resolve().parents[2]


# the prompts


TWELVE = prompt_set(COMPARISON)


def test_there_are_four_prompts_of_each_group():
    prompts = TWELVE.prompts
    assert TWELVE.groups == ("predictable", "chat", "surprising")
    assert [each.group for each in prompts] == [group for group in TWELVE.groups for _ in range(4)]
    assert [len(TWELVE.names_in(group)) for group in TWELVE.groups] == [4, 4, 4]
    assert len({each.name for each in prompts}) == len({each.text for each in prompts}) == 12


def test_a_set_of_prompts_is_known_by_its_texts():
    # logs of earlier comparisons hold this value: whoever edits a prompt starts new ones
    assert TWELVE.fingerprint == "0bd7306a88e0c9c3"
    assert prompt_set(BENCH).fingerprint != TWELVE.fingerprint


def test_no_draft_and_no_preset_is_made_from_the_comparison_prompts():
    presets = yaml.safe_load((ROOT / "assets" / "presets.yaml").read_text("utf-8"))
    known = {entry["prompt"] for entry in presets} | {each.text for each in prompt_set(BENCH).prompts}
    assert known and known.isdisjoint(each.text for each in TWELVE.prompts)
    for path in (ROOT / "specviz" / "distil").rglob("*.py"):
        text = path.read_text("utf-8")
        assert "prompt_set" not in text and "comparison_prompts" not in text, path
    for path in (path for path in (ROOT / "assets" / "drafts").rglob("card.*") if path.is_file()):
        text = " ".join(path.read_text("utf-8").split())
        assert not [each.name for each in TWELVE.prompts if each.text in text], path


# lanes


def test_a_draft_runs_at_every_k_unless_it_names_its_own():
    drafts = compared_drafts(["prompt-lookup", "early-exit:layers=1", "early-exit:k=3,layers=1"], ["2", "8"])
    assert [(draft.spell(), draft.without_k.spell(), draft.k) for draft in drafts] == [
        ("prompt-lookup:k=2", "prompt-lookup", 2),
        ("prompt-lookup:k=8", "prompt-lookup", 8),
        ("early-exit:layers=1,k=2", "early-exit:layers=1", 2),
        ("early-exit:layers=1,k=8", "early-exit:layers=1", 8),
        ("early-exit:layers=1,k=3", "early-exit:layers=1", 3),
    ]
    own = ["prompt-lookup:k=4", "prompt-lookup:max_ngram=2,k=4", "prompt-lookup:max_ngram=2,k=4,min_ngram=2"]
    assert [draft.without_k.spell() for draft in compared_drafts(own, ["5"])] == [
        "prompt-lookup",
        "prompt-lookup:max_ngram=2",
        "prompt-lookup:max_ngram=2,min_ngram=2",
    ]


def test_lanes_are_spread_over_as_few_races_as_hold_them():
    drafts = compared_drafts(["prompt-lookup"], range(1, 10))
    assert [[draft.k for draft in race] for race in split_into_races(drafts)] == [[1, 3, 5, 7, 9], [2, 4, 6, 8]]
    assert [len(race) for race in split_into_races(drafts[:7])] == [7] and list(split_into_races(())) == []


# numbers by hand

THREE = (FixedPrompt("copy", "a", "predictable"), FixedPrompt("sky", "b", "chat"), FixedPrompt("job", "c", "chat"))
PROMPTS = PromptSet("four", (*THREE, FixedPrompt("never raced", "d", "surprising")))
USUAL = {"acceptance": 0.5, "coverage": 1.0, "mean_drafted": 4.0, "mean_depth": 4.0, "message": None}


def lane(speedup, tau=2.0, c=0.1, identical=True, divergence=None, reason="length"):
    facts = {"speedup": speedup, "tau": tau, "c": c, "alpha": 0.75, "kept_tokens": 32, "finish_reason": reason}
    return {**USUAL, **facts, "identical_to_standard": identical, "first_divergence": divergence}


def logged(prompt, repeat, lanes):
    standard = {"tokens_per_second": 20.0 + repeat, "kept_tokens": 32}
    form = {"prompt": prompt, "repeat": repeat, "prompt_tokens": 9, "standard": standard, "lanes": lanes}
    return LoggedRace.from_json(form)


def row(prompt, repeat, **lanes):
    return logged(prompt, repeat, {name.replace("_", ":k="): one for name, one in lanes.items()})


def result_of(races, *texts):
    return ComparisonResult.of(races, PROMPTS, compared_drafts(texts, ["5"]))


def drafts_of(*texts):
    return to_json(result_of(RACES, *texts))["drafts"]


TWO_K = ("none:k=2", "none:k=8")
RACES = [
    *(
        row("copy", index, none_2=lane(speedup), none_8=lane(2 * speedup))
        for index, speedup in enumerate((1.5, 1.0, 3.0))
    ),
    row("sky", 0, none_2=lane(1.25, tau=1.5), none_8=lane(0.75, tau=1.25, identical=False, divergence=7)),
    row("job", 0, none_2=lane(0.75, c=0.3), none_8=lane(0.5, c=None)),
]


def test_a_prompt_has_the_median_of_its_repeats_and_a_group_the_mean_of_its_prompts_and_the_worst():
    found = drafts_of(*TWO_K)["none"]["ks"]["2"]
    assert found["prompts"]["copy"]["speedup"] == {"samples": [1.5, 1.0, 3.0], "median": 1.5, "q1": 1.25, "q3": 2.25}
    chat, whole = found["groups"]["chat"], found["groups"]["all"]
    assert chat["speedup"] == {"mean": 1.0, "worst": 0.75, "worst_prompt": "job"}
    assert chat["tau"] == {"mean": 1.75, "worst": 1.5, "worst_prompt": "sky"}
    assert whole["speedup"]["mean"] == pytest.approx(3.5 / 3) and whole["c"]["mean"] == pytest.approx(0.5 / 3)
    assert found["groups"]["surprising"]["speedup"] == {"mean": None, "worst": None, "worst_prompt": None}


def test_the_best_k_is_that_of_the_best_mean_group_by_group():
    draft = drafts_of(*TWO_K)["none"]
    # copy: 1.5 against 3; chat: 1 against .625; all: 3.5 / 3 against 4.25 / 3
    assert draft["best_k"] == {"predictable": 8, "chat": 2, "surprising": None, "all": 8}


def test_a_text_that_differs_in_any_repeat_is_not_the_same():
    found = drafts_of(*TWO_K)["none"]["ks"]["8"]
    assert found["prompts"]["sky"]["identical"] is False and found["prompts"]["sky"]["first_divergence"] == 7
    assert (found["groups"]["all"]["identical"], found["groups"]["all"]["of"]) == (2, 3)
    assert found["groups"]["chat"]["c"] == {"mean": 0.1, "worst": 0.1, "worst_prompt": "sky"}  # where it is known


def test_a_lane_that_failed_has_no_numbers_and_is_named():
    failed = lane(9.0, reason="error") | {"message": "Out of memory."}
    found = to_json(result_of([row("sky", 0, none_2=failed, none_8=lane(1.0))], *TWO_K))
    assert found["failed"] == [["none:k=2", "Out of memory."]] and set(found["drafts"]["none"]["ks"]) == {"8"}


def test_a_combined_draft_is_held_against_the_better_part_at_each_ones_own_best_k():
    either, model = ("lookup-else-model=path:small", "draft-model=path:small")
    speeds = {"copy": (2.0, 1.0, 4.0, 1.0), "sky": (1.47, 1.5, 0.5, 1.2), "job": (0.96, 1.0, 1.0, 9.0)}
    races = [
        logged(name, 0, {lane_: lane(speed) for lane_, speed in zip(LANES, one, strict=True)})
        for name, one in speeds.items()
    ]
    found = result_of(races, *LANES)
    # draft-model at k = 2 has the mean 3.7, at k = 5 1.17
    [one] = found.against_parts
    assert one.draft == either and one.best_k == {either: 5, "prompt-lookup": 5, model: 2}
    assert one.ratio == pytest.approx({"copy": 2.0, "sky": 0.98, "job": 0.96 / 9}) and one.held == 2
    assert AgainstParts.of(found.drafts, either, ["prompt-lookup"], share=0.95).held == 3


LANES = (
    "lookup-else-model=path:small:k=5",
    "prompt-lookup:k=5",
    "draft-model=path:small:k=5",
    "draft-model=path:small:k=2",
)


# the file


FACTS = {"target": "tiny", "tokens": 12}


def test_a_comparison_continues_where_its_log_ends(tmp_path):
    path = tmp_path / "comparison.jsonl"
    log = ComparisonLog(path, FACTS)
    log.add(row("sky", 0, none_2=lane(1.0)))
    log.add(row("sky", 0, none_8=lane(2.0)))
    with path.open("a") as file:
        file.write('{"prompt": "sky", "rep')
    again = ComparisonLog(path, FACTS)
    assert again.lanes_of("sky", 0) == {"none:k=2", "none:k=8"} and again.lanes_of("sky", 1) == frozenset()
    again.add(row("sky", 1, none_2=lane(3.0)))
    assert ComparisonLog(path, FACTS).races == again.races and len(again.races) == 3
    assert [each.repeat for each in again.races_of(["none:k=2"], 2)] == [0, 1]
    assert [each.repeat for each in again.races_of(["none:k=2", "none:k=8"], 1)] == [0, 0]


OURS = json.dumps({"schema": 1, **FACTS}) + "\n"


def test_a_first_line_that_was_half_written_is_written_again(tmp_path):
    path = tmp_path / "comparison.jsonl"
    path.write_text(OURS[:9])
    assert ComparisonLog(path, FACTS).races == [] and path.read_text() == OURS


@pytest.mark.parametrize(
    "content",
    [
        "no JSON\n",
        "[1]\n",
        '{"schema": 1, "target": "other", "tokens": 12}\n',
        '{"precious": "without a last newline"}',
        '{"other": 1}\n{"half": ',
        OURS + "{}\n",
        OURS + "5\n",
    ],
)
def test_a_file_of_something_else_is_refused_and_left_as_it_is(tmp_path, content):
    path = tmp_path / "comparison.jsonl"
    path.write_text(content)
    with pytest.raises(InputError, match="name another (one|file)"):
        ComparisonLog(path, FACTS)
    assert path.read_text() == content


# the command


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    return save_llama(tmp_path_factory.mktemp("target"), context=1024)


@pytest.fixture
def call(capsys, one_thread, target):
    def run(*arguments):
        asked = ["bench", "--quick", "--dtype", "float32", "--only", "drafts", "--target", target]
        status = main([*asked, *map(str, arguments)])
        return status, *capsys.readouterr()

    return run


def test_every_draft_races_on_every_prompt_and_a_second_call_measures_only_what_is_new(call, tmp_path, target):
    out = tmp_path / "comparison.jsonl"
    drafts = ["--draft", "prompt-lookup", "--draft", f"draft-model={target}:k=3", "--out", out, "--json"]
    status, text, err = call(*drafts, "-k", "2,4")
    result = json.loads(text)
    part = result["parts"]["drafts"]
    assert status == 0 and err.count("1/1") == 12 and part["repeats"] == 1 and part["longest"] == 12
    assert result["settings"]["drafts"] == ["prompt-lookup:k=2", "prompt-lookup:k=4", f"draft-model={target}:k=3"]
    own = part["drafts"][f"draft-model={target}"]["ks"]["3"]
    # the target drafts for itself: 12 tokens in three passes of four
    assert own["groups"]["all"]["tau"]["worst"] == own["groups"]["all"]["tau"]["mean"] == 4.0
    assert own["groups"]["all"]["alpha"]["mean"] == 1.0 and own["groups"]["all"]["identical"] == 12
    assert set(part["drafts"]["prompt-lookup"]["ks"]) == {"2", "4"} and part["failed"] == []
    assert all(one["tokens_per_second"]["median"] > 0 for one in part["prompts"].values())
    _, text, err = call(*drafts, "-k", "2,4", "--repeats", "1")
    assert "1/1" not in err and json.loads(text)["parts"]["drafts"]["drafts"] == part["drafts"]
    _, text, err = call("--draft", "prompt-lookup", "--out", out, "--markdown", "-k", "2", "--repeats", "2")
    assert "1/2" not in err and err.count("2/2") == 12
    assert "2 repeats of at most 12 tokens" in text and "| prompt-lookup | 2 |" in text and "draft-model" not in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "Name at least one draft"),
        (["--draft", "prompt-lookup", "-k", "2,2"], "'prompt-lookup:k=2' is given twice"),
        (["--draft", "prompt-lookup", "-k", "2,many"], "k must be"),
        (["--draft", "prompt-lookup", "-k", "65"], "k must lie between"),
        (["--draft", "psychic"], "There is no draft 'psychic'"),
        (["--draft", "prompt-lookup", "--repeats", "0"], "The repeats must be a whole number from 1 to 99, not 0"),
        (["--draft", "prompt-lookup", "--tokens", "0"], "max_new_tokens must lie between"),
        (["--draft", "prompt-lookup", "--only", "verify"], "measured on its own"),
        (["--draft", "prompt-lookup", "--out", "nowhere/at/all.jsonl"], "cannot be used"),
    ],
)
def test_a_comparison_that_cannot_run_is_refused_in_words(call, arguments, words):
    status, out, err = call(*arguments)
    assert (status, out) == (2, "") and words in err and "Traceback" not in err


def test_what_only_a_comparison_takes_is_refused_elsewhere(capsys):
    for arguments, words in (
        (["--tokens", "9"], "--tokens is for"),
        (["--draft", "a", "--draft", "b"], "one draft model"),
    ):
        assert main(["bench", "--only", "verify", *arguments]) == 2
        assert words in capsys.readouterr().err


def test_a_comparison_whose_time_is_up_begins_no_race(call):
    status, out, err = call("--draft", "prompt-lookup", "--minutes", "1e-9", "--json")
    assert status == 0 and "the time is up in repeat 1 of 1" in err
    assert json.loads(out)["parts"]["drafts"]["drafts"] == {}


def test_a_table_becomes_markdown():
    assert markdown(Table("what", ("a", "b"), (("1", "2"),))) == "what:\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n"
