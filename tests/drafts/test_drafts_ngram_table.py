"""N-gram tables: what is counted and pruned, worked by hand; their files, and files that are none; who gets which."""

import json
import random
import shutil
import zipfile

import numpy
import pytest
from support.tiny import ids_of, module, rounds_of, standard_ids, target, words_tokenizer

from specviz import LanguageModel, make_draft
from specviz.core.errors import InputError, PairError
from specviz.drafting import bundled_drafts
from specviz.drafting.ngram_file import bundled_table, load_facts, load_table, save_table
from specviz.drafting.ngrams import MAX_DOUBT, Contexts, NgramTable, count_ngrams
from specviz.drafting.target_facts import fingerprint, target_facts

pytestmark = pytest.mark.usefixtures("one_thread")

# after 1 comes 2 (twice) or 3; after (2, 1) comes 3, after (4, 1) comes 2
TEXT = [4, 1, 2, 1, 3, 4, 1, 2]


def contexts(table):
    """{context: what followed it, best first}, keys taken apart by hand."""
    found = {}
    for part in table.contexts:
        for row, key in enumerate(part.keys.tolist()):
            context = tuple(key >> 21 * back & 0x1FFFFF for back in reversed(range(part.size)))
            found[context] = tuple(part.tokens[part.starts[row] : part.starts[row + 1]].tolist())
    return found


def followed(text, shown):
    """What followed `shown` in a text, most frequent first, of equals the lowest."""
    after = [text[i + len(shown)] for i in range(len(text) - len(shown)) if text[i : i + len(shown)] == shown]
    return sorted(set(after), key=lambda token: (-after.count(token), token))


def test_successors_are_counted_and_longer_contexts_where_they_know_better():
    single = {(4,): (1,), (1,): (2, 3), (2,): (1,), (3,): (4,)}
    assert contexts(count_ngrams([TEXT], order=1)) == single
    # (4, 1) -> 2, (1, 2) -> 1, (1, 3) -> 4 and (3, 4) -> 1 say nothing new
    assert contexts(count_ngrams([TEXT], order=2)) == {**single, (2, 1): (3,)}
    assert contexts(count_ngrams([TEXT], order=3)) == contexts(count_ngrams([TEXT], order=2))
    assert contexts(count_ngrams([TEXT], order=1, successors=1)) == {**single, (1,): (2,)}


def test_a_doubt_is_the_share_of_occurrences_in_quarters_of_a_bit():
    """After 1, seen 3 times, 2 came twice: 2 / 4, one bit; 3 once: 1 / 4, two bits. 4 came but once in 80."""
    (part,) = count_ngrams([TEXT], order=1).contexts
    assert part.find(1) == ([2, 3], [4, 8]) and part.find(5) is None
    (part,) = count_ngrams([[0, *[7, 0] * 79, 4]], order=1).contexts
    assert part.find(0) == ([7, 4], [0, MAX_DOUBT])


def test_pruning_drops_what_was_seldom_seen():
    assert contexts(count_ngrams([TEXT], order=2, least=2)) == {(4,): (1,), (1,): (2,)}
    # seen: 1 three times, 4 and 2 twice, 3 and (2, 1) once; 1 has two successors
    assert contexts(count_ngrams([TEXT], order=2, entries=4)) == {(1,): (2, 3), (2,): (1,), (4,): (1,)}
    for entries in range(7):
        assert len(count_ngrams([TEXT], order=2, entries=entries)) == (0, 0, 2, 3, 4, 5, 6)[entries]


def test_of_equals_the_lowest_token_comes_first_and_texts_do_not_run_together():
    assert contexts(count_ngrams([[1, 9], [1, 5]], order=1)) == {(1,): (5, 9)}
    assert contexts(count_ngrams([[1], [2], []], order=3)) == {}


def test_the_longest_known_context_answers_and_then_shorter_ones():
    table = count_ngrams([TEXT])
    texts = ([1], [9, 1], [2, 1], [8, 2, 1], [9], [])
    assert [table.after(text) for text in texts] == [(2, 3), (2, 3), (3, 2), (3, 2), (), ()]


def test_large_ids_fit_into_a_key():
    top = 2**21 - 1
    table = count_ngrams([[top, top, top, 7, top, top, 5]])
    assert table.after([top, top, top])[0] == 7 and table.after([7, top, top])[0] == 5


@pytest.mark.parametrize("seed", range(3))
def test_a_table_answers_as_plain_counting_does(seed):
    text = numpy.random.default_rng(seed).integers(0, 6, 300).tolist()
    table = count_ngrams([text], successors=6)
    for end in range(1, 200):
        expected = [token for size in (3, 2, 1) if size <= end for token in followed(text, text[end - size : end])]
        assert table.after(text[:end]) == tuple(dict.fromkeys(expected))


def test_single_tokens_have_the_targets_own_successors():
    table = count_ngrams([TEXT]).with_alone([[5, 6], [7, 8], [9, 1]])
    assert [list(table.alone_after(token)) for token in range(4)] == [[5, 6], [7, 8], [9, 1], []]
    assert table.largest_id == 9 and list(count_ngrams([TEXT]).alone_after(0)) == []
    with pytest.raises(ValueError, match=r"\(vocabulary, r\)"):
        table.with_alone([1, 2])


# files


def test_a_table_survives_its_file(tmp_path):
    generator, facts = numpy.random.default_rng(0), {"target": {"name": "Zoë"}, "tokens": 4000, "seed": 0}
    ids = generator.integers(0, 50, 4000) ** 3  # beyond 16 bits
    table = count_ngrams([ids]).with_alone(generator.integers(0, 70000, (50, 4)))
    save_table(table, tmp_path / "table.npz", facts)
    again = load_table(tmp_path / "table.npz")
    assert contexts(again) == contexts(table) and len(again) == len(table) > 1000 and again.rows == table.rows
    for one, other in zip(again.contexts, table.contexts, strict=True):
        assert (one.doubts == other.doubts).all()
    assert (again.alone == table.alone).all() and again.facts == load_facts(tmp_path / "table.npz") == facts
    assert [path.name for path in tmp_path.iterdir()] == ["table.npz"]


@pytest.fixture
def saved(tmp_path):
    def save(texts, facts=None, name="table"):
        path = tmp_path / f"{name}.npz"
        save_table(count_ngrams(texts), path, facts or {})
        return str(path)

    return save


def test_a_file_that_is_no_table_is_refused_in_words(tmp_path, saved):
    lm, whole = target(), open(saved([TEXT]), "rb").read()
    for name in (str(tmp_path / "none.npz"), str(tmp_path), "a\0b", "~nosuchuser/x"):
        with pytest.raises(InputError, match="cannot be read; give the path"):
            make_draft("ngram-table", lm, table=name)
    (tmp_path / "text.npz").write_text("no table at all")
    (tmp_path / "half.npz").write_bytes(whole[:100])
    numpy.savez(tmp_path / "other.npz", weights=numpy.zeros(3))
    numpy.savez(tmp_path / "old.npz", format=numpy.array(1), keys1=numpy.array([1]), following1=numpy.array([2]))
    numpy.savez(tmp_path / "pickle.npz", format=numpy.array([{}], dtype=object))
    numpy.savez(tmp_path / "facts.npz", format=numpy.array(2), facts=numpy.frombuffer(b"[1]", numpy.uint8))
    numpy.save(tmp_path / "array.npy", numpy.zeros(3))
    for name in ("text.npz", "half.npz", "other.npz", "old.npz", "pickle.npz", "facts.npz", "array.npy"):
        for draft in ("ngram-table", "cascade"):
            with pytest.raises(InputError, match="is no n-gram table"):
                make_draft(draft, lm, table=str(tmp_path / name))


def test_a_small_file_that_swells_is_refused(tmp_path, saved):
    with zipfile.ZipFile(saved([TEXT]), "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("more.npy", bytes(1 << 28))
    with pytest.raises(InputError, match="is no n-gram table"):
        load_table(tmp_path / "table.npz")


def test_a_file_damaged_anywhere_is_read_or_refused_in_words(tmp_path, saved):
    whole, rng, refused = open(saved([TEXT, TEXT[::-1]], {"a": 1}), "rb").read(), random.Random(0), 0
    for _ in range(300):
        broken = bytearray(whole)
        for _ in range(rng.choice((1, 1, 3))):
            broken[rng.randrange(len(broken))] = rng.randrange(256)
        (tmp_path / "broken.npz").write_bytes(broken)
        try:
            table = load_table(tmp_path / "broken.npz")
        except InputError:
            refused += 1
        else:
            table.after([4, 1, 2])
    assert refused > 200


def test_a_file_of_another_packing_damaged_anywhere_is_read_or_refused_in_words(tmp_path, saved):
    path = tmp_path / "packed.npz"
    with zipfile.ZipFile(saved([TEXT])) as plain, zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as packed:
        for name in plain.namelist():
            packed.writestr(name, plain.read(name))
    whole, refused = path.read_bytes(), 0
    assert contexts(load_table(path)) == contexts(count_ngrams([TEXT]))
    for place in range(0, len(whole), 5):
        path.write_bytes(whole[:place] + b"\xff" + whole[place + 1 :])
        try:
            load_table(path)
        except InputError:
            refused += 1
    assert refused > 20


@pytest.mark.parametrize(
    "part",
    [
        Contexts(1, numpy.array([5, 3]), numpy.array([0, 1, 2]), numpy.array([1, 2]), numpy.array([0, 0])),
        Contexts(1, numpy.array([3, 5]), numpy.array([0, 1, 3]), numpy.array([1, 2]), numpy.array([0, 0])),
        Contexts(1, numpy.array([3, 5]), numpy.array([0, 0, 2]), numpy.array([1, 2]), numpy.array([0, 0])),
        Contexts(1, numpy.array([3, 5]), numpy.array([0, 1, 2]), numpy.array([1, 2]), numpy.array([0, 16])),
        Contexts(1, numpy.array([3, 5]), numpy.array([0, 1, 2]), numpy.array([1, 2]), numpy.array([0])),
        Contexts(1, numpy.array([3]), numpy.array([0, 1]), numpy.array([1 << 21]), numpy.array([0])),
    ],
    ids=["unsorted", "too long", "empty", "doubt", "short", "token"],
)
def test_numbers_that_are_no_table_are_refused(tmp_path, part):
    save_table(NgramTable((part,)), tmp_path / "table.npz", {})
    with pytest.raises(InputError, match="is broken; make it anew"):
        load_table(tmp_path / "table.npz")


# the draft


def test_a_table_of_what_the_target_wrote_drafts_it(saved):
    lm, prompt = target(), [3, 9, 4]
    written = standard_ids(lm, prompt, max_new_tokens=40)
    assert len(set(written)) >= 10
    strategy = make_draft("ngram-table", lm, table=saved([[*prompt, *written]]))
    rounds = rounds_of(lm, strategy, prompt, k=4, max_new_tokens=40)
    assert ids_of(rounds) == written
    assert len(rounds) < 20 and {each.draft_passes for each in rounds} == {0}
    assert all(draft.draft_prob == 1.0 for each in rounds for draft in each.drafts)
    assert "contexts" in strategy.note


def test_without_a_table_the_prompt_is_counted():
    lm = target()
    (first, *_) = rounds_of(lm, make_draft("ngram-table", lm), [5, 6, 7, 5], k=3, max_new_tokens=4)
    assert [draft.token.id for draft in first.drafts] == [6, 7, 5]


def test_a_file_that_was_written_anew_is_read_anew(saved):
    lm = target()
    made = [make_draft("ngram-table", lm, table=saved(texts)) for texts in ([[1, 2]], [[1, 3, 5]])]
    assert [strategy.counted.after([1]) for strategy in made] == [(2,), (3,)]


# whose table


WORDS = [f"w{number} " for number in range(64)]


def worded(words, name, seed=0):
    return LanguageModel(module(seed=seed, num_hidden_layers=2), words_tokenizer(words), name=name)


def test_the_fingerprint_is_that_of_the_tokens_below_the_vocabulary():
    tokenizer = words_tokenizer(WORDS)
    assert fingerprint(tokenizer, 64) == fingerprint(words_tokenizer(WORDS), 64) == fingerprint(tokenizer, 80)
    others = {fingerprint(tokenizer, 63), fingerprint(words_tokenizer(WORDS[::-1]), 64), fingerprint(None, 64)}
    assert len(others) == 3 and fingerprint(tokenizer, 64) not in others and fingerprint(None, 64) == ""


def test_a_bundled_table_is_taken_by_its_own_target_alone(tmp_path, monkeypatch, saved):
    own, twin, narrow = worded(WORDS, "own"), worded(WORDS, "twin", seed=1), worded(WORDS[::-1], "other")
    shallow = LanguageModel(module(num_hidden_layers=1), words_tokenizer(WORDS))
    monkeypatch.setattr(bundled_drafts, "FOLDER", tmp_path / "drafts")
    assert bundled_table(own) is None
    assert "without a table" in make_draft("cascade", own).note and make_draft("ngram-table", own).note is None
    (tmp_path / "drafts" / "own").mkdir(parents=True)
    path = shutil.copy(saved([[1, 2]], {"target": target_facts(own)}), tmp_path / "drafts" / "own" / "ngrams.npz")
    assert bundled_table(own) == bundled_table(twin) == path  # as alike as two can be, but for weights
    assert bundled_table(shallow) is bundled_table(narrow) is bundled_table(target()) is None
    for draft in ("cascade", "ngram-table"):
        assert make_draft(draft, own).note == "a table of 1 contexts" and make_draft(draft, shallow).counted is None


def test_a_damaged_table_that_the_package_brings_is_no_table_for_anybody(tmp_path, monkeypatch, saved):
    own, made = worded(WORDS, "own"), saved([[1, 2]])
    save_table(count_ngrams([[1, 2]]), made, {"target": target_facts(own)})
    monkeypatch.setattr(bundled_drafts, "FOLDER", tmp_path / "drafts")
    for folder in ("broken", "own"):
        (tmp_path / "drafts" / folder).mkdir(parents=True)
    (tmp_path / "drafts" / "broken" / "ngrams.npz").write_bytes(b"no table")
    assert make_draft("ngram-table", own).counted is None
    path = shutil.copy(made, tmp_path / "drafts" / "own" / "ngrams.npz")
    assert make_draft("ngram-table", own).note == "a table of 1 contexts"
    with zipfile.ZipFile(made) as whole, zipfile.ZipFile(path, "w") as archive:  # its facts are whole, its numbers not
        for name in whole.namelist():
            archive.writestr(name, b"" if name == "1.lengths.npy" else whole.read(name))
    assert bundled_table(own) == path
    assert make_draft("ngram-table", own).counted is None and "without a table" in make_draft("cascade", own).note


def test_a_table_of_another_tokenizer_is_refused_and_one_of_another_target_is_noted(saved):
    own, other = worded(WORDS, "own"), worded(WORDS[::-1], "other")
    shallow = LanguageModel(module(num_hidden_layers=1), words_tokenizer(WORDS))
    made = saved([[1, 2]], {"target": json.loads(json.dumps(target_facts(own)))})
    for draft in ("cascade", "ngram-table"):
        with pytest.raises(PairError, match="that other does not have; use one that was counted with"):
            make_draft(draft, other, table=made)
        with pytest.raises(PairError, match="does not have"):
            make_draft(draft, own, table=saved([[1, 64]], name="large"))
        assert make_draft(draft, own, table=made).note == "a table of 1 contexts"
        assert make_draft(draft, shallow, table=made).note == "a table of 1 contexts, made for own"
        assert make_draft(draft, target(), table=made).counted.after([1]) == (2,)  # without a tokenizer nothing differs
