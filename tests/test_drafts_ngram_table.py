"""N-gram tables: what is counted and pruned, worked by hand; what is drafted from them; files that are none."""

import numpy
import pytest
from tiny import ids_of, rounds_of, standard_ids, target

from specviz import make_draft
from specviz.drafts.ngrams import NgramTable, count_ngrams, load_table, save_table
from specviz.errors import InputError, PairError

pytestmark = pytest.mark.usefixtures("one_thread")

# after 1 comes 2 (twice) or 3; after (2, 1) comes 3, after (4, 1) comes 2
TEXT = [4, 1, 2, 1, 3, 4, 1, 2]


def contexts(table):
    """{context: what followed it}, keys taken apart by hand."""
    found = {}
    for size, (keys, tokens) in enumerate(zip(table.keys, table.following, strict=True), 1):
        for key, token in zip(keys.tolist(), tokens.tolist(), strict=True):
            found[tuple(key >> 21 * back & 0x1FFFFF for back in reversed(range(size)))] = token
    return found


def test_the_favourite_is_counted_and_longer_contexts_where_they_know_better():
    assert contexts(count_ngrams([TEXT], order=1)) == {(4,): 1, (1,): 2, (2,): 1, (3,): 4}
    # (4, 1) -> 2, (1, 2) -> 1, (1, 3) -> 4 and (3, 4) -> 1 say nothing new
    assert contexts(count_ngrams([TEXT], order=2)) == {(4,): 1, (1,): 2, (2,): 1, (3,): 4, (2, 1): 3}
    assert contexts(count_ngrams([TEXT], order=3)) == contexts(count_ngrams([TEXT], order=2))


def test_pruning_drops_what_was_seldom_seen():
    assert contexts(count_ngrams([TEXT], order=2, least=2)) == {(4,): 1, (1,): 2}
    assert contexts(count_ngrams([TEXT], order=2, entries=2)) == {(4,): 1, (1,): 2}
    assert len(count_ngrams([TEXT], order=2, entries=5)) == 5


def test_of_equals_the_lowest_token_is_the_favourite_and_texts_do_not_run_together():
    assert contexts(count_ngrams([[1, 9], [1, 5]], order=1)) == {(1,): 5}
    assert contexts(count_ngrams([[1], [2], []], order=3)) == {}


def test_the_longest_known_context_answers():
    table = count_ngrams([TEXT])
    assert [table.after(text) for text in ([1], [9, 1], [2, 1], [8, 2, 1], [9], [])] == [2, 2, 3, 3, None, None]


def test_large_ids_fit_into_a_key():
    top = 2**21 - 1
    table = count_ngrams([[top, top, top, 7, top, top, 5]])
    assert table.after([top, top, top]) == 7 and table.after([7, top, top]) == 5


@pytest.mark.parametrize("seed", range(3))
def test_pruned_or_not_a_table_answers_as_plain_counting_does(seed):
    text = numpy.random.default_rng(seed).integers(0, 6, 300).tolist()
    table = count_ngrams([text])
    for end in range(1, 200):
        shown = text[max(0, end - 3) : end]
        followed = [text[i + len(shown)] for i in range(len(text) - len(shown)) if text[i : i + len(shown)] == shown]
        assert table.after(text[:end]) == min(followed, key=lambda token: (-followed.count(token), token))


def test_a_table_survives_its_file(tmp_path):
    table = count_ngrams([numpy.random.default_rng(0).integers(0, 50, 4000)])
    save_table(table, tmp_path / "table.npz")
    again = load_table(tmp_path / "table.npz")
    assert contexts(again) == contexts(table) and len(again) == len(table) > 1000


@pytest.fixture
def saved(tmp_path):
    def save(texts, **facts):
        save_table(count_ngrams(texts, **facts), tmp_path / "table.npz")
        return str(tmp_path / "table.npz")

    return save


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
    assert [strategy.counted.after([1]) for strategy in made] == [2, 3]


def test_a_file_that_is_no_table_is_refused_in_words(tmp_path, saved):
    lm = target()
    with pytest.raises(InputError, match="cannot be read; give the path"):
        make_draft("ngram-table", lm, table=str(tmp_path / "none.npz"))
    with pytest.raises(InputError, match="cannot be read"):
        make_draft("ngram-table", lm, table=str(tmp_path))
    (tmp_path / "text.npz").write_text("no table at all")
    (tmp_path / "half.npz").write_bytes(open(saved([TEXT]), "rb").read()[:100])
    numpy.savez(tmp_path / "other.npz", weights=numpy.zeros(3))
    numpy.savez(tmp_path / "pickle.npz", format=numpy.array([{}], dtype=object))
    for name in ("text", "half", "other", "pickle"):
        with pytest.raises(InputError, match="is no n-gram table"):
            make_draft("ngram-table", lm, table=str(tmp_path / f"{name}.npz"))
    unsorted = NgramTable((numpy.array([5, 3]),), (numpy.array([1, 2]),))
    save_table(unsorted, tmp_path / "unsorted.npz")
    with pytest.raises(InputError, match="is broken"):
        make_draft("ngram-table", lm, table=str(tmp_path / "unsorted.npz"))
    with pytest.raises(PairError, match="does not have"):
        make_draft("ngram-table", lm, table=saved([[1, 64]]))
