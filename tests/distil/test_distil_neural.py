"""Training of neural drafts on a tiny random target: what is learnt, what a kill costs, and that a draft meets in a run
what it was trained on."""

import math
import shutil
import time
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file
from support.tiny import ids_of, rounds_of, standard_ids
from support.tiny_checkpoints import save_llama

from specviz import load, make_draft
from specviz.core.errors import InputError
from specviz.distil import losses, trainer
from specviz.distil.corpus import Conversation, Corpus
from specviz.distil.feature_head_training import TrainableFeatureHead, train_feature_head, visible
from specviz.distil.job import Job
from specviz.distil.losses import OutputHead, back_propagate, soft_cross_entropy
from specviz.distil.student_training import TrainableStudent, start_weights, train_student
from specviz.distil.teacher import load_teacher
from specviz.distil.trainer import TrainingRecipe
from specviz.distil.training_examples import LONGEST, TrainingExamples, batches
from specviz.distil.training_state import exclusive, read_checkpoint, save_checkpoint
from specviz.drafting import bundled_drafts
from specviz.drafting.draft_weights import IDS
from specviz.drafting.feature_pass import FeaturePass, HeadShape
from specviz.drafting.target_facts import target_facts

pytestmark = pytest.mark.usefixtures("one_thread")

TRAIN = {"student": train_student, "feature-head": train_feature_head}
LENGTHS = (14, 9, 20, 11, 17, 8)


@pytest.fixture(scope="module")
def teacher(tmp_path_factory):
    return load_teacher(save_llama(tmp_path_factory.mktemp("target"), layers=3), dtype="float32")


@pytest.fixture(scope="module")
def corpus(teacher, tmp_path_factory):
    """Greedy replies to random prompts: a batch that is held out, and four to learn from."""
    folder = tmp_path_factory.mktemp("text")
    draws = torch.Generator().manual_seed(0)
    with Corpus(folder, {"name": "tiny", "seed": 0}) as corpus:
        for _ in range(5):
            corpus.add([conversation(teacher, length, draws) for length in LENGTHS])
    return Corpus(folder)


def conversation(teacher, length, draws):
    ids = torch.randint(3, teacher.vocabulary, (1, 4), generator=draws)
    whole = teacher.module.generate(ids, max_new_tokens=length, do_sample=False, eos_token_id=None, pad_token_id=0)
    return Conversation(tuple(whole[0].tolist()), 4)


def job(teacher, corpus, out, seconds=60.0, said=None, **facts):
    out.mkdir(exist_ok=True)
    told = [] if said is None else said
    return Job(teacher, corpus, out, seconds, 0, lambda *report: told.append(report), **facts)


QUICK = TrainingRecipe(batch_tokens=120, steps=60, learning_rate=3e-3)


@pytest.mark.parametrize("kind", TRAIN)
def test_training_lowers_the_held_out_cross_entropy_and_the_file_drafts_exactly(kind, teacher, corpus, tmp_path):
    said = []
    made = TRAIN[kind](job(teacher, corpus, tmp_path / "out", said=said), QUICK)
    first, last = made.curve[0], made.curve[-1]
    assert (first["trained_tokens"], first["steps"], last["steps"]) == (0, 0, 60)
    assert last["cross_entropy"] < 0.95 * first["cross_entropy"]
    assert made.facts["steps"] == 60 and made.facts["trained_tokens"] == last["trained_tokens"] > 0
    assert made.facts["held_out_cross_entropy"] == last["cross_entropy"]
    assert said[-1][0] == 1.0 and "held-out cross-entropy" in said[-1][1]
    lm = load(teacher.source, dtype="float32")
    for spec in made.drafts:
        strategy = make_draft(spec.strategy, lm, **dict(spec.options))
        assert f"trained for {lm.name}, on {last['trained_tokens']} tokens" in strategy.note
        rounds = rounds_of(lm, strategy, [5, 6, 7], k=spec.k, max_new_tokens=20)
        assert ids_of(rounds) == standard_ids(lm, [5, 6, 7], max_new_tokens=20)


@pytest.mark.parametrize("kind", TRAIN)
def test_a_killed_training_goes_on_to_the_same_weights(kind, teacher, corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(trainer, "_SAVE_SECONDS", 0.0)
    monkeypatch.setattr(trainer, "_CURVE_STEP", 0.5)
    recipe = TrainingRecipe(batch_tokens=120, steps=12)
    whole = job(teacher, corpus, tmp_path / "whole", vocabulary=50)
    killed = []

    def kill(*_):  # the folder as a SIGKILL would leave it
        if (whole.out / "checkpoint" / f"{kind}.safetensors").exists() and not killed:
            killed.append(shutil.copytree(whole.out, tmp_path / "killed"))

    made = TRAIN[kind](replace(whole, progress=kill), recipe)
    again = job(teacher, corpus, tmp_path / "killed", vocabulary=50)
    assert 0 < read_checkpoint(again, kind)[1].step < 12
    gone_on = TRAIN[kind](again, recipe)
    expected, found = load_file(made.files[0]), load_file(gone_on.files[0])
    assert expected.keys() == found.keys() and all(torch.equal(expected[name], found[name]) for name in expected)
    assert without_seconds(made.curve) == without_seconds(gone_on.curve)


def without_seconds(curve):
    return [{name: value for name, value in row.items() if name != "seconds"} for row in curve]


def test_a_training_that_is_done_is_not_done_again(teacher, corpus, tmp_path):
    one = job(teacher, corpus, tmp_path / "out")
    first = train_student(one, TrainingRecipe(batch_tokens=120, steps=3))
    second = train_student(one, TrainingRecipe(batch_tokens=120, steps=3))
    assert first.curve == second.curve and second.facts["steps"] == 3


def test_a_longer_training_goes_on_from_a_shorter_one(teacher, corpus, tmp_path):
    one = job(teacher, corpus, tmp_path / "out")
    train_student(one, TrainingRecipe(batch_tokens=120, steps=4))
    made = train_student(one, TrainingRecipe(batch_tokens=120, steps=8))
    steps = [row["steps"] for row in made.curve]
    assert steps[0] == 0 and steps[-1] == 8 and 4 in steps and len(set(steps)) == len(steps)


def test_the_jobs_steps_end_a_training_whatever_its_time(teacher, corpus, tmp_path):
    for kind, train in TRAIN.items():
        made = train(job(teacher, corpus, tmp_path / kind, seconds=0.0, steps=2))
        assert made.facts["steps"] == 2 and made.curve[-1]["trained_tokens"] == made.facts["trained_tokens"] > 0


def test_time_ends_a_training_that_has_no_number_of_steps(teacher, corpus, tmp_path):
    one = job(teacher, corpus, tmp_path / "out", seconds=0.4)
    made = train_student(one, TrainingRecipe(batch_tokens=120))
    assert made.facts["steps"] > 0 and 0.3 < made.curve[-1]["seconds"] < 60
    again = train_student(one, TrainingRecipe(batch_tokens=120))  # the time is for all runs of the job together
    assert again.facts["steps"] == made.facts["steps"]


def test_a_checkpoint_of_something_else_is_refused_in_words(teacher, corpus, tmp_path):
    one = job(teacher, corpus, tmp_path / "out")
    train_student(one, TrainingRecipe(batch_tokens=120, steps=1))
    for other in (job(teacher, corpus, one.out, vocabulary=40), Job(teacher, corpus, one.out, 9.0, 1, one.progress)):
        with pytest.raises(InputError, match="made from another text or with other options; delete it"):
            train_student(other, QUICK)
    (one.out / "checkpoint" / "student.safetensors").write_bytes(b"half")
    with pytest.raises(InputError, match="is damaged; delete it to start again"):
        train_student(one, QUICK)


def test_nothing_to_learn_from_is_said_in_words(teacher, corpus, tmp_path):
    with Corpus(tmp_path / "text", {"name": "tiny"}) as empty:
        empty.add([Conversation((3, 4, 5), 2)])  # held out
    with pytest.raises(InputError, match="no replies to learn from"):
        train_student(job(teacher, empty, tmp_path / "out"), QUICK)


def test_a_reduced_vocabulary_holds_the_most_frequent_ids_and_those_that_end_a_text(teacher, corpus, tmp_path):
    made = train_student(
        job(teacher, corpus, tmp_path / "out", vocabulary=20), TrainingRecipe(batch_tokens=120, steps=1)
    )
    ids = load_file(made.files[0])["vocabulary"].tolist()
    assert ids == sorted(ids) and len(ids) == 20 and {*teacher.eos_ids, *teacher.tokenizer.all_special_ids} <= {*ids}
    counts = torch.zeros(teacher.vocabulary)
    for each in corpus.training():
        counts += torch.bincount(torch.tensor(each.ids), minlength=teacher.vocabulary)
    special = {*teacher.eos_ids, *teacher.tokenizer.all_special_ids}
    left_out = [token for token in range(teacher.vocabulary) if token not in ids]
    assert counts[left_out].max() <= counts[[token for token in ids if token not in special]].min()


def test_a_student_starts_from_the_first_and_the_last_layer(teacher):
    start = start_weights(teacher.module, 2)
    layers = teacher.module.model.layers
    assert torch.equal(start["model.layers.0.mlp.up_proj.weight"], layers[0].mlp.up_proj.weight)
    assert torch.equal(start["model.layers.1.mlp.up_proj.weight"], layers[2].mlp.up_proj.weight)
    assert torch.equal(start["model.norm.weight"], teacher.module.model.norm.weight)
    assert set(start) == {f"model.layers.{i}.{name}" for i in (0, 1) for name, _ in layers[0].named_parameters()} | {
        "model.norm.weight"
    }


def test_training_changes_nothing_of_the_target(teacher, corpus, tmp_path):
    before = {name: weight.clone() for name, weight in teacher.module.named_parameters()}
    for kind, train in TRAIN.items():
        train(job(teacher, corpus, tmp_path / kind), TrainingRecipe(batch_tokens=120, steps=2))
    after = dict(teacher.module.named_parameters())
    assert before.keys() == after.keys() and all(torch.equal(before[name], after[name]) for name in before)
    assert not any(weight.requires_grad or weight.grad is not None for weight in after.values())


def test_of_two_trainings_in_one_folder_the_second_is_refused_in_words(teacher, corpus, tmp_path):
    one = job(teacher, corpus, tmp_path / "out")
    with exclusive(one), pytest.raises(InputError, match="Another run is training in .*out; wait for it"):
        train_student(one, TrainingRecipe(batch_tokens=120, steps=1))
    assert train_student(one, TrainingRecipe(batch_tokens=120, steps=1)).facts["steps"] == 1


def test_a_small_vocabulary_keeps_every_token_that_ends_a_text(teacher, corpus, tmp_path):
    ends = replace(teacher, eos_ids=(0, 7, 63))
    made = train_student(job(ends, corpus, tmp_path / "out", vocabulary=2), TrainingRecipe(batch_tokens=120, steps=1))
    assert load_file(made.files[0])[IDS].tolist() == [0, 7, 63]


def test_a_bundled_draft_is_found_by_what_its_file_says_of_the_target(teacher, corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(bundled_drafts, "FOLDER", tmp_path)
    train_student(job(teacher, corpus, tmp_path / "tiny"), TrainingRecipe(batch_tokens=120, steps=1))
    lm = load(teacher.source, dtype="float32")
    assert make_draft("student", lm).trained.facts["target"] == target_facts(lm)


@pytest.mark.parametrize("start", ["weight/", "exp_avg/", "exp_avg_sq/", "step/"])
@pytest.mark.parametrize("change", ["absent", "another shape"])
def test_a_checkpoint_that_lacks_a_weight_is_refused_in_words(start, change, teacher, corpus, tmp_path):
    recipe = TrainingRecipe(batch_tokens=120, steps=1)
    one = job(teacher, corpus, tmp_path / "out")
    train_student(one, recipe)
    tensors, state = read_checkpoint(one, "student")
    name = next(name for name in tensors if name.startswith(start))
    if change == "absent":
        del tensors[name]
    else:
        tensors[name] = torch.zeros(1, 1, 1)
    save_checkpoint(one, "student", tensors, state)
    with pytest.raises(InputError, match="is damaged; delete it to start again"):
        train_student(one, recipe)


def test_examples_are_what_the_target_says_and_half_written_ones_are_written_anew(teacher, corpus, tmp_path):
    examples = TrainingExamples(tmp_path, teacher.module, corpus.training(), features=True)
    examples.prepare(math.inf)
    assert len(examples) == 24 and examples.tokens == 4 * sum(LENGTHS)
    texts = list(corpus.training())
    batch = examples.batch([7, 2])
    assert batch.ids.shape == (2, 24) and len(batch.rows) == len(texts[7].reply) + len(texts[2].reply)
    ids = torch.tensor([texts[2].ids])
    with torch.inference_mode():
        output = teacher.module(ids, output_hidden_states=True)
    top = output.logits[0, 3:-1].softmax(-1).topk(32)
    assert torch.equal(batch.top_ids[-len(texts[2].reply) :], top.indices)
    assert torch.allclose(batch.top_probs[-len(texts[2].reply) :], top.values, atol=1e-3)
    assert torch.allclose(batch.features[1, : ids.shape[1]], output.hidden_states[-1][0], rtol=1e-2, atol=1e-2)
    assert batch.rows.tolist() == [*range(3, len(texts[7].ids) - 1), *range(24 + 3, 24 + len(texts[2].ids) - 1)]
    whole = (tmp_path / "probs").read_bytes()
    (tmp_path / "probs").write_bytes(whole[: len(whole) // 2 + 5])
    again = TrainingExamples(tmp_path, teacher.module, corpus.training(), features=True)
    assert 0 < len(again) < 24
    again.prepare(math.inf)
    assert (tmp_path / "probs").read_bytes() == whole


def test_examples_that_time_does_not_allow_are_left_for_later(teacher, corpus, tmp_path):
    examples = TrainingExamples(tmp_path, teacher.module, corpus.training())
    examples.prepare(time.monotonic() - 1)
    assert 0 < len(examples) and examples.tokens > 0 and max(examples.batch([0]).rows) < LONGEST


@pytest.mark.parametrize("key", [None, (0, 0), (0, 1)])
def test_an_epoch_takes_every_text_once_in_batches_that_fit(key):
    lengths = [5, 90, 17, 3, 44, 44, 8, 250, 61, 12]
    made = batches(lengths, key, 100)
    assert sorted(sum(made, [])) == list(range(10))
    assert all(len(batch) == 1 or len(batch) * max(lengths[one] for one in batch) <= 100 for batch in made)
    assert made == batches(lengths, key, 100) and batches(lengths, (0, 0), 100) != batches(lengths, (1, 0), 100)


def test_soft_cross_entropy_as_worked_by_hand():
    """q = (1/2, 1/4, 1/4); p = .6 on the first, .3 on the second, and .1 on one that the draft cannot say."""
    logits = torch.tensor([[2.0, 1.0, 1.0]]).log()
    loss = soft_cross_entropy(logits, torch.tensor([[0, 1, -1]]), torch.tensor([[0.6, 0.3, 0.1]]))
    assert float(loss) == pytest.approx(0.6 * math.log(2) + 0.3 * math.log(4))


def test_the_gradient_in_parts_is_that_of_the_whole(teacher, monkeypatch):
    head, draws = OutputHead(teacher.module, torch.arange(3, 50)), torch.Generator().manual_seed(0)
    states = torch.randn(7, 32, generator=draws, requires_grad=True)
    ids, probs = torch.randint(0, 284, (7, 5), generator=draws), torch.rand(7, 5, generator=draws)
    loss = soft_cross_entropy(head(states), head.indices(ids), probs)
    loss.backward()
    monkeypatch.setattr(losses, "_ROWS", 3)
    gradient, total = back_propagate(states, head, ids, probs, 1.0)
    assert total == pytest.approx(float(loss.detach()), rel=1e-5) and torch.allclose(gradient, states.grad, atol=1e-5)


def test_a_deeper_row_sees_the_targets_features_and_then_its_own_block():
    assert visible(4, 0)[0, 0].int().tolist() == [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]
    assert visible(4, 2)[0, 0, 3].int().tolist() == [1, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]


def test_a_head_meets_in_a_run_what_it_was_trained_on(teacher, corpus, tmp_path):
    """The logits of three drafted tokens are those of the three depths of training, position by position."""
    lm = load(teacher.source, dtype="float32")
    shape = HeadShape.of(teacher.module.config, 32, teacher.context_length)
    draft = TrainableFeatureHead(teacher.module, shape, None)
    examples = TrainingExamples(tmp_path, teacher.module, corpus.training(), features=True)
    examples.prepare(math.inf)
    batch = examples.batch([2])
    with torch.inference_mode():
        depths = [states[0] for states in draft._depths(batch)]
    head = FeaturePass(lm, shape, {name: weight.detach() for name, weight in draft.weights.items()}, None)
    ids, cache = batch.ids[0], head.new_cache(40)
    place = 9  # the last kept token; the next two are drafted
    before = torch.cat([torch.zeros(1, 32), batch.features[0, :place]])
    with torch.inference_mode():
        state = head.states(before, ids[: place + 1], 0, cache)[-1:]
        assert torch.allclose(state[0], depths[0][place], atol=1e-4)
        for depth in (1, 2):
            state = head.states(state, ids[place + depth][None], place + depth, cache)
            assert torch.allclose(state[0], depths[depth][place + depth], atol=1e-4)


def test_a_student_says_in_a_run_what_it_says_in_training(teacher, corpus, tmp_path):
    lm = load(teacher.source, dtype="float32")
    draft = TrainableStudent(teacher.module, 2, None)
    shallow = lm.with_layers("student", 2, {name: weight.detach() for name, weight in draft.weights.items()})
    examples = TrainingExamples(tmp_path, teacher.module, corpus.training())
    examples.prepare(math.inf)
    batch = examples.batch([2])
    with torch.inference_mode(), shallow.open(40) as context:
        logits = context.forward(batch.ids[0])[batch.rows]
        assert torch.allclose(logits, OutputHead(teacher.module, None)(draft._states(batch)), atol=1e-4)
