"""Drafts made from a target: the text, the table, what it is worth, the card; on a tiny random target, in seconds."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from support import tiny_checkpoints

from specviz import load, make_draft
from specviz.core.errors import InputError
from specviz.distil import pipeline as run_module
from specviz.distil.card import markdown
from specviz.distil.corpus import FILE, Conversation, Corpus
from specviz.distil.job import Job
from specviz.distil.kinds import KINDS, kind_named
from specviz.distil.pipeline import run_distil, written_text
from specviz.distil.plan import Plan, SynthesisRecipe
from specviz.distil.prompt_format import prompt_format
from specviz.distil.synthesis import corpus_facts, is_enough, synthesise
from specviz.distil.table_counting import best_prefix, make_table, top_successors
from specviz.distil.table_replay import ReplayText, replay_texts, replayed_tau
from specviz.distil.teacher import load_teacher
from specviz.drafting.ngram_file import load_table
from specviz.drafting.ngrams import count_ngrams
from specviz.drafting.strategy import NOTHING, Drafter, Proposal
from specviz.drafts.cascade import Cascade
from specviz.sources.progress import silent
from specviz.views.terminal import main

RECIPE = SynthesisRecipe(batch=6, prompt_tokens=6, reply_tokens=10, top_p=1.0)
FACTS = {"name": "tiny", "seed": 0}
ONE, TWO = Conversation((5, 6, 7, 8), 2), Conversation((5, 9, 1), 1)


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return tiny_checkpoints.save_llama(tmp_path_factory.mktemp("target"))


@pytest.fixture(scope="module")
def teacher(source):
    return load_teacher(source, "cpu", "float32")


def text_of(folder):
    return (folder / FILE).read_bytes()


def ids_of(folder):
    return [conversation.ids for conversation in Corpus(folder)]


def test_a_corpus_reads_back_what_was_added(tmp_path):
    with Corpus(tmp_path, FACTS) as corpus:
        corpus.add([ONE, TWO], seconds=1.5)
        corpus.add([])
        corpus.add([TWO], seconds=1.0)
    again = Corpus(tmp_path)
    assert list(again) == [ONE, TWO, TWO] and again.facts == FACTS
    assert (len(again), again.tokens, again.batches, again.seconds) == (3, 2 + 2 + 2, 3, 2.5)
    assert (ONE.prompt, ONE.reply) == ((5, 6), (7, 8))


def test_the_first_batch_is_held_out_for_good_and_the_rest_is_learnt_from(tmp_path):
    with Corpus(tmp_path, FACTS) as corpus:
        for batch in ([], [ONE], [TWO]):
            corpus.add(batch)
        assert corpus.held_out() == (ONE,) and list(corpus.training()) == [TWO]
        corpus.add([TWO, TWO])
        assert corpus.held_out() == (ONE,) and list(corpus.training()) == [TWO] * 3


@pytest.mark.parametrize("cut", [1, 7, 30])
def test_a_half_written_batch_is_dropped_when_the_corpus_is_written_again(tmp_path, cut):
    with Corpus(tmp_path, FACTS) as corpus:
        corpus.add([ONE])
        whole = text_of(tmp_path)
        corpus.add([TWO])
    (tmp_path / FILE).write_bytes(text_of(tmp_path)[:-cut])
    assert list(Corpus(tmp_path)) == [ONE]
    with Corpus(tmp_path, FACTS) as corpus:
        corpus.add([TWO])
    assert list(Corpus(tmp_path)) == [ONE, TWO] and text_of(tmp_path).startswith(whole)


def test_a_corpus_that_is_read_leaves_a_line_that_is_being_written_alone(tmp_path):
    with Corpus(tmp_path, FACTS) as corpus:
        corpus.add([ONE])
    (tmp_path / FILE).write_bytes(text_of(tmp_path) + b'{"seconds":')
    before = text_of(tmp_path)
    reader = Corpus(tmp_path)
    assert list(reader) == [ONE] and text_of(tmp_path) == before
    with pytest.raises(InputError, match="opened to be read"):
        reader.add([TWO])


def test_text_of_other_facts_is_not_mixed_and_two_do_not_write_at_once(tmp_path):
    with Corpus(tmp_path, FACTS), pytest.raises(InputError, match="Another run is writing"):
        Corpus(tmp_path, FACTS)
    with pytest.raises(InputError, match="written with seed 0, not 1"):
        Corpus(tmp_path, {**FACTS, "seed": 1})
    with Corpus(tmp_path, FACTS) as corpus:
        assert len(corpus) == 0


@pytest.mark.parametrize("content", [b"nothing\n", b"[]\n", b'{"format":9}\n', b'{"format":1}\n{"seconds":1}\n',
    *(b'{"format":1}\n{"seconds":1,"conversations":[[%s]]}\n' % row
      for row in (b"1,2.5", b"1,true", b'1,"2"', b"1,-2", b"true,2", b"1.0,2", b"1,null", b"1,[2]", b"2,3", b"")),
    *(b'{"format":1}\n{"seconds":%s,"conversations":[[1,2]]}\n' % seconds
      for seconds in (b"NaN", b"Infinity", b"null", b"1" + b"0" * 400))])  # fmt: skip
def test_a_file_that_is_no_corpus_is_refused(tmp_path, content):
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(InputError, match="not text that specviz wrote"):
        Corpus(tmp_path)


def test_a_run_that_was_killed_in_its_first_line_begins_anew(teacher, tmp_path):
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / FILE).write_bytes(b'{"format":1,"na')
    plan = Plan(teacher.source, "ngram", tmp_path, tokens=1, recipe=RECIPE)
    with written_text(plan, teacher, 0, silent) as corpus:
        assert corpus.tokens > 0 and corpus.facts["name"] == teacher.name


def test_text_of_another_target_or_of_other_tokens_is_not_learnt_from(teacher, tmp_path):
    facts, plan = corpus_facts(teacher, RECIPE, 0), Plan(teacher.source, "ngram", tmp_path, tokens=1, recipe=RECIPE)
    for folder, changed, last, words in (
        ("target", {"target": "elsewhere"}, 5, "written with target 'elsewhere'"),
        ("large", {}, teacher.vocabulary, "holds tokens that .* does not have"),
        ("short", {}, teacher.vocabulary, "holds tokens that .* does not have"),
    ):
        with Corpus(tmp_path / folder, {**facts, **changed}) as corpus:
            for _ in range(1 if folder == "short" else 3):
                corpus.add([Conversation((5, 6, last), 1)])
        with pytest.raises(InputError, match=words):
            written_text(replace(plan, text=tmp_path / folder), teacher, 0, silent)
        Corpus(tmp_path / folder, {**facts, **changed}).close()  # and it is let go of


def test_a_home_folder_is_meant_the_same_everywhere(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    plan = Plan("tiny", "ngram", Path("~/x"), text=Path("~/t"))
    assert (plan.out, plan.text) == (tmp_path / "x", tmp_path / "t")
    assert Plan("tiny", "ngram", Path("~nosuchuser/x")).out == Path("~nosuchuser/x")
    with pytest.raises(InputError, match="There is no text in ~nosuchuser"):
        Corpus("~nosuchuser/x")


def test_prompts_are_rendered_as_a_run_renders_what_a_person_types(teacher):
    form = prompt_format(teacher)
    tokenizer = teacher.tokenizer
    assert tokenizer.decode(form.header) == "<|im_start|>user\n"
    assert set(form.ends) == {tokenizer.eos_token_id, tokenizer.convert_tokens_to_ids("<|im_end|>")}
    written = tuple(tokenizer(" a cat \n")["input_ids"])
    wanted = "<|im_start|>user\na cat<|im_end|>\n<|im_start|>assistant\n"
    assert tokenizer.decode(form.render(teacher, written)) == wanted
    assert form.render(teacher, tuple(tokenizer(" \n")["input_ids"])) == ()


def test_a_base_model_starts_from_its_first_token(tmp_path):
    base = load_teacher(tiny_checkpoints.save_llama(tmp_path / "base", template=None), "cpu", "float32")
    with Corpus(tmp_path, corpus_facts(base, RECIPE, 0)) as corpus:
        synthesise(base, corpus, RECIPE, 0, 1, silent)
    conversations = list(Corpus(tmp_path))
    assert conversations and all(each.ids[0] == base.tokenizer.eos_token_id for each in conversations)


def test_a_reply_is_the_targets_own_greedy_text(teacher, tmp_path):
    with Corpus(tmp_path, corpus_facts(teacher, RECIPE, 0)) as corpus:
        synthesise(teacher, corpus, RECIPE, 0, 1, silent)
    target = load(teacher.source, "cpu", "float32")
    for each in list(Corpus(tmp_path))[:4]:
        written = tiny_standard(target, each.prompt, len(each.reply))
        assert each.reply == written


def tiny_standard(target, prompt, count):
    from support.tiny import standard_ids

    return tuple(standard_ids(target, prompt, max_new_tokens=count))


def test_text_goes_on_after_a_kill_as_if_nothing_had_been(teacher, tmp_path):
    for name, budgets in (("whole", [90]), ("killed", [1, 90])):
        for tokens in budgets:
            with Corpus(tmp_path / name, corpus_facts(teacher, RECIPE, 3)) as corpus:
                synthesise(teacher, corpus, RECIPE, 0, tokens, silent)
            if name == "killed" and tokens == 1:
                path = tmp_path / name / FILE
                path.write_bytes(path.read_bytes()[:-20])  # the last batch is half on the disk
    assert ids_of(tmp_path / "whole") == ids_of(tmp_path / "killed")
    assert Corpus(tmp_path / "whole").tokens >= 90


def test_no_prompt_comes_twice_and_another_seed_writes_other_text(teacher, tmp_path):
    for seed in (0, 1):
        with Corpus(tmp_path / str(seed), corpus_facts(teacher, RECIPE, seed)) as corpus:
            synthesise(teacher, corpus, RECIPE, 0, 100, silent)
        prompts = [each.prompt for each in Corpus(tmp_path / str(seed))]
        assert len(prompts) == len(set(prompts)) > 10
    assert ids_of(tmp_path / "0") != ids_of(tmp_path / "1")


class Scripted(Drafter):
    """Proposes the same block again and again."""

    def __init__(self, proposal):
        self.proposal, self.kept = proposal, []

    def propose(self, k):
        return self.proposal

    def observe(self, kept_ids, seen):
        assert len(seen.ids) == len(seen.choices)
        self.kept.append(tuple(kept_ids))


class Fixed:
    def __init__(self, *proposal, **facts):
        self.drafter = Scripted(Proposal(*proposal, **facts) if proposal else NOTHING)

    def start(self, run):
        return self.drafter


def test_replayed_rounds_keep_what_agrees_and_a_token_of_the_targets():
    recorded = [ReplayText(Conversation((9, 1, 2, 1, 2, 3, 1), 1), torch.zeros(7, 8, dtype=torch.long))]
    assert replayed_tau(Fixed(), recorded, 2) == 1.0
    chain = Fixed((1, 2))  # 1 2 and the target's 1; nothing right, the target's 2; its 3; its 1, where the reply ends
    assert replayed_tau(chain, recorded, 2) == 6 / 4
    assert chain.drafter.kept == [(9,), (1, 2, 1), (2,), (3,), (1,)]
    tree = Fixed((1, 2, 2, 3), parents=(-1, -1, 0, 1))  # 1 2 1; 2 3 1
    assert replayed_tau(tree, recorded, 4) == 6 / 2
    assert tree.drafter.kept == [(9,), (1, 2, 1), (2, 3, 1)]


def test_recorded_choices_are_the_targets_successors_in_spite_of_padding(teacher):
    texts = [Conversation((3, 4, 5, 6, 7, 8, 9), 2), Conversation((5, 6), 1)]
    for each in replay_texts(teacher, texts):
        alone = teacher.module(torch.tensor([each.conversation.ids])).logits[0].topk(8).indices
        assert each.choices.tolist() == alone.tolist()


def test_top_successors_follow_a_token_alone(teacher):
    for prefix in ((), (7,)):
        found = top_successors(teacher, 3, prefix, silent)
        assert found.shape == (teacher.vocabulary, 3)
        for token in (0, 17, teacher.vocabulary - 1):
            logits = teacher.module(torch.tensor([[*prefix, token]])).logits[0, -1]
            assert found[token].tolist() == logits.topk(3).indices.tolist()


def test_the_prefix_is_the_one_whose_successors_come_true(teacher):
    end = teacher.tokenizer.eos_token_id
    after = {token: int(teacher.module(torch.tensor([[end, token]])).logits[0, -1].argmax()) for token in range(40, 60)}
    sample = [Conversation(pair, 1) for pair in after.items()]
    assert best_prefix(teacher, sample, 1, silent) == (end,)


def job(teacher, folder, megabytes=8.0):
    return Job(teacher, Corpus(folder), folder / "out", 1.0, 0, silent, megabytes=megabytes)


def test_the_table_counts_all_but_what_is_held_out_and_keeps_to_its_size(teacher, tmp_path):
    with Corpus(tmp_path, corpus_facts(teacher, RECIPE, 0)) as corpus:
        corpus.add([Conversation((10, 11, 12, 13), 2)])
        corpus.add([Conversation(tuple(range(20, 120)), 50), Conversation((10, 14, 15), 1)])
    trained = make_table(job(teacher, tmp_path))
    table = load_table(trained.files[0])
    assert table.after((10,)) == (14,) and table.after((12,)) == () and table.after((20,)) == (21,)
    assert table.facts["counted_tokens"] == 103 == trained.facts["counted_tokens"]
    assert table.alone.shape == (teacher.vocabulary, 8)
    whole = trained.facts["file_bytes"]
    assert whole == trained.files[0].stat().st_size
    smaller = make_table(job(teacher, tmp_path, (whole - 60) / 1e6))
    assert smaller.facts["file_bytes"] <= whole - 60 and smaller.facts["entries"] < trained.facts["entries"]
    assert [row["reply_tokens"] for row in trained.curve] == [50, 52]  # no size cuts anything
    with pytest.raises(InputError, match="No table fits into 0.0001 MB"):
        make_table(job(teacher, tmp_path, 0.0001))


@pytest.mark.parametrize("batches", [(), ([ONE],), ([Conversation((5, 6), 2)], [ONE])])
def test_without_replies_there_is_no_table(teacher, tmp_path, batches):
    with Corpus(tmp_path, corpus_facts(teacher, RECIPE, 0)) as corpus:
        for batch in batches:
            corpus.add(batch)
    with pytest.raises(InputError, match="There are no replies to learn from"):
        make_table(job(teacher, tmp_path))


def test_the_table_is_made_for_the_target_that_wrote_the_text(source, teacher, tmp_path):
    with Corpus(tmp_path, corpus_facts(teacher, RECIPE, 0)) as corpus:
        corpus.add([ONE])
        corpus.add([TWO])
    path = make_table(job(teacher, tmp_path)).files[0]
    draft = make_draft("cascade", load(source, "cpu", "float32"), table=str(path))
    assert draft.note == f"a table of {load_table(path).rows} contexts"


def test_a_run_makes_the_draft_and_its_card_and_finds_its_text_again(source, tmp_path):
    plan = Plan(source, "ngram", tmp_path, minutes=0, held_out=2, device="cpu", dtype="float32", recipe=RECIPE)
    facts = run_distil(plan, silent)
    assert facts == json.loads((tmp_path / "card.json").read_text())
    assert markdown(facts) == (tmp_path / "card.md").read_text()
    assert [row["identical"] for row in facts["worth"]] == [2, 2, 2]
    assert all(row["tau"] >= 1.0 and row["c"] is not None for row in facts["worth"])
    assert facts["text"]["batches"] == 2 and facts["kind"] == "ngram"
    words = facts["command"].split()
    assert words[words.index("--tokens") + 1] == str(facts["text"]["reply_tokens"])
    assert [words[words.index(flag) + 1] for flag in ("--device", "--dtype", "--held-out")] == ["cpu", "float32", "2"]
    assert is_enough(Corpus(tmp_path / "text"), 0, facts["text"]["reply_tokens"])
    with pytest.raises(InputError, match="holds a draft of the kind 'ngram'"):
        run_distil(Plan(source, "student", tmp_path), silent)


def test_held_out_conversations_have_prompts_that_are_nowhere_in_the_training_text(teacher, tmp_path):
    with Corpus(tmp_path, corpus_facts(teacher, RECIPE, 0)) as corpus:
        synthesise(teacher, corpus, RECIPE, 0, 80, silent)
        held_out, training = {each.prompt for each in corpus.held_out()}, {each.prompt for each in corpus.training()}
    assert held_out and training and not held_out & training


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--kind", "oracle"], "There is no kind 'oracle'; choose one of: feature-head, ngram, student."),
        (["--kind", "ngram", "--minutes", "-1"], "--minutes must be a number from 0 to 100,000, not -1."),
        (["--kind", "ngram", "--minutes", "soon"], "--minutes must be a number from 0 to 100,000, not soon."),
        (["--kind", "ngram", "--tokens", "1.5"], "--tokens must be a whole number, not 1.5."),
        (["--kind", "ngram", "--mb", "0"], "--mb must be a number from 0.001 to 10,000, not 0."),
        (["--kind", "ngram", "--minutes", "nan"], "--minutes must be a number from 0 to 100,000, not nan."),
        (["--kind", "ngram", "--target", "nowhere"], "'nowhere' is not a source of weights."),
        (["--kind", "ngram", "--target", "embedded#int4"], "leave out the '#' and what follows: embedded#int4."),
    ],
)
def test_bad_input_is_refused_in_a_sentence(words, sentence, tmp_path, capsys):
    assert main(["distil", "--out", str(tmp_path / "out"), *words]) == 2
    assert sentence in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_is_refused_in_a_sentence(source, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["distil", "--out", str(tmp_path / "file"), "--kind", "ngram", "--target", source]) == 2
    assert str(tmp_path / "file") in capsys.readouterr().err


@pytest.mark.parametrize("below", ["file/out", "a\0b"])
def test_a_folder_that_cannot_be_made_is_refused_before_the_target_is_loaded(below, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(run_module, "check_folder", lambda *_: None)
    monkeypatch.setattr(run_module, "load_teacher", None)
    with pytest.raises(InputError, match=f"cannot be written to {tmp_path}"):
        run_distil(Plan("tiny", "ngram", tmp_path / below), silent)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_is_read_only_is_refused_before_the_target_is_loaded(tmp_path, monkeypatch):
    monkeypatch.setattr(run_module, "load_teacher", None)
    tmp_path.chmod(0o500)
    with pytest.raises(InputError, match="cannot be written to"):
        run_distil(Plan("tiny", "ngram", tmp_path), silent)


def test_every_kind_says_what_it_is_and_how_its_time_is_shared():
    for kind in KINDS:
        assert kind_named(kind.name) is kind and kind.help.endswith(".") and 0 < kind.text_share < 1


def test_the_corpus_module_and_the_command_load_no_torch():
    code = "import specviz.distil.corpus, specviz.views.terminal.commands.distil, sys; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_cascade_with_a_table_of_the_text_replays_better_than_without():
    text = tuple(range(5, 45))
    recorded = [ReplayText(Conversation(text, 1), torch.zeros(len(text), 8, dtype=torch.long))]
    table = count_ngrams([text])
    with_table, without = (replayed_tau(Cascade(shape="chain", counted=each), recorded, 4) for each in (table, None))
    assert with_table == 39 / 8 and without < 1.1  # rounds of five tokens, the last of four
