"""Text as it streams: what was emitted and what is held back add up to the tokenizer's own decoding, always."""

import json
import random

import pytest
from support.tiny import byte_level_tokenizer, metaspace_tokenizer, words_tokenizer
from tokenizers import Tokenizer, decoders, models
from transformers import CTRLTokenizer, PreTrainedTokenizerFast

from specviz.core.settings import Settings
from specviz.core.text import Detokenizer, Pieces, decode_ids
from specviz.decoding.ending import EndRule
from specviz.traces import Reason

SAMPLES = (
    "plain words, and the end",
    "👩‍👩‍👧 日本語 é",
    "🙂🙃 e\u0301 \u200d\ufe0f مرحبا",
    "a  b\n\n\tc ",
    " leading space",
)
TOKENIZERS = {"byte-level": byte_level_tokenizer, "metaspace": metaspace_tokenizer}


def stream(tokenizer, ids, silent=()):
    detokenizer = Detokenizer(tokenizer, silent)
    return [detokenizer.push(token) for token in ids], detokenizer


def whole(tokenizer, ids):
    return tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)


@pytest.mark.parametrize("kind", TOKENIZERS)
@pytest.mark.parametrize("sample", SAMPLES)
def test_a_text_comes_out_whole_and_in_whole_characters(kind, sample):
    tokenizer = TOKENIZERS[kind]()
    ids = tokenizer.encode(sample, add_special_tokens=False)
    texts, detokenizer = stream(tokenizer, ids)
    assert "".join(texts) + detokenizer.tail == whole(tokenizer, ids)
    assert "\ufffd" not in "".join(texts)


@pytest.mark.parametrize("kind", TOKENIZERS)
@pytest.mark.parametrize("seed", range(40))
def test_any_tokens_add_up_to_their_decoding(kind, seed):
    tokenizer, chance = TOKENIZERS[kind](), random.Random(seed)
    ids = [chance.randrange(len(tokenizer)) for _ in range(chance.choice((1, 2, 3, 10, 60)))]
    texts, detokenizer = stream(tokenizer, ids)
    assert "".join(texts) + detokenizer.tail == whole(tokenizer, ids)


@pytest.mark.parametrize("kind", TOKENIZERS)
@pytest.mark.parametrize("seed", range(3))
def test_long_texts_add_up_to_their_decoding(kind, seed):
    tokenizer, chance = TOKENIZERS[kind](), random.Random(seed)
    pool = tokenizer.encode("".join(SAMPLES) * 3, add_special_tokens=False)
    starts = [chance.randrange(len(pool)) for _ in range(80)]
    ids = [token for start in starts for token in pool[start : start + 20]]
    assert len(ids) > 600
    texts, detokenizer = stream(tokenizer, ids)
    assert "".join(texts) + detokenizer.tail == whole(tokenizer, ids)


@pytest.mark.parametrize("seed", range(3))
def test_a_long_text_of_one_unfinished_character_after_another_adds_up(seed):
    """Bytes that begin a character and never end it leave no quiet place where a window could begin."""
    tokenizer, chance = byte_level_tokenizer(), random.Random(seed)
    begins = [number for name, number in tokenizer.get_vocab().items() if name in ("ð", "Ł", "Ã", "â", "a", "Ġt")]
    ids = [chance.choice(begins) for _ in range(700)]
    texts, detokenizer = stream(tokenizer, ids)
    assert "".join(texts) + detokenizer.tail == whole(tokenizer, ids)


def test_text_after_bytes_that_form_no_character_still_streams():
    """In a run of byte tokens one bad byte makes the decoder give up the good ones too, after they were emitted."""
    tokenizer = metaspace_tokenizer()
    vocabulary = tokenizer.get_vocab()
    ids = [vocabulary[name] for name in ("<0x41>", "<0xE2>", "▁the", "▁a", "s")]
    texts, detokenizer = stream(tokenizer, ids)
    assert "".join(texts) + detokenizer.tail == whole(tokenizer, ids)
    assert "".join(texts).endswith(" the as")


WORD_PIECES = [
    "<unk>",
    "hel@@",
    "lo",
    "wor@@",
    "ld",
    "un",
    "##ing",
    "play",
    "a</w>",
    "the</w>",
    "▁a",
    "▁",
    ".",
    "n't",
    "@@",
]
DECODERS = {
    "none": None,
    "@@ taken off": decoders.BPEDecoder(suffix="@@"),
    "</w>": decoders.BPEDecoder(suffix="</w>"),
    "WordPiece": decoders.WordPiece(cleanup=False),
    "WordPiece, tidied": decoders.WordPiece(),
    "WordPiece of @@": decoders.WordPiece(prefix="@@"),
    "CTC": decoders.CTC(),
    "Metaspace": decoders.Metaspace(),
    "Metaspace without a prefix": decoders.Metaspace(prepend_scheme="never"),
    "ByteFallback": decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()]),
    "Fuse and Strip": decoders.Sequence([decoders.Fuse(), decoders.Strip(content=" ", left=1)]),
    "Replace": decoders.Replace("▁", " "),
    "Replace the mark": decoders.Sequence([decoders.Fuse(), decoders.Replace("@@", "")]),
    "ByteLevel": decoders.ByteLevel(),
}


def decoded_by(decoder):
    names = {name: number for number, name in enumerate(WORD_PIECES)}
    tokenizer = Tokenizer(models.WordLevel(names, unk_token="<unk>"))
    if decoder is not None:
        tokenizer.decoder = decoder
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer)


def ctrl_tokenizer(folder):
    (folder / "vocab.json").write_text(json.dumps({name: number for number, name in enumerate(WORD_PIECES)}))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    return CTRLTokenizer(str(folder / "vocab.json"), str(folder / "merges.txt"))


@pytest.mark.parametrize("kind", [*DECODERS, "CTRL"])
@pytest.mark.parametrize("seed", range(5))
def test_every_kind_of_decoder_is_shown_whole(tmp_path, kind, seed):
    tokenizer = ctrl_tokenizer(tmp_path) if kind == "CTRL" else decoded_by(DECODERS[kind])
    chance = random.Random(seed)
    ids = [chance.randrange(len(WORD_PIECES)) for _ in range(40)]
    for end in range(len(ids)):
        texts, detokenizer = stream(tokenizer, ids[:end])
        assert "".join(texts) + detokenizer.tail == whole(tokenizer, ids[:end])


def test_a_word_in_joined_pieces_comes_when_its_last_piece_does(tmp_path):
    tokenizer = ctrl_tokenizer(tmp_path)
    texts, detokenizer = stream(
        tokenizer, [WORD_PIECES.index(name) for name in ("hel@@", "lo", "wor@@", "ld", "hel@@")]
    )
    assert texts == ["", "hello", "", " world", ""] and detokenizer.tail == " hel@@"


def test_a_character_split_over_tokens_comes_after_its_last_one():
    tokenizer = byte_level_tokenizer()
    ids = tokenizer.encode("é日", add_special_tokens=False)
    texts, _ = stream(tokenizer, ids)
    assert texts == ["é", "", "", "日"]


def test_an_unfinished_character_is_held_back_as_the_tail():
    tokenizer = byte_level_tokenizer()
    ids = tokenizer.encode("a日", add_special_tokens=False)[:-1]
    texts, detokenizer = stream(tokenizer, ids)
    assert texts == ["a", "", ""] and detokenizer.tail == whole(tokenizer, ids)[1:] != ""


def test_special_and_silent_tokens_have_no_text():
    tokenizer = byte_level_tokenizer()
    end, letter = tokenizer.eos_token_id, tokenizer.get_vocab()["b"]
    texts, _ = stream(tokenizer, [letter, end, letter], silent=())
    assert texts == ["b", "", "b"]
    texts, _ = stream(tokenizer, [letter, letter, end], silent=(letter,))
    assert texts == ["", "", ""]


def test_a_fork_leaves_its_origin_as_it_was():
    tokenizer = byte_level_tokenizer()
    euro = tokenizer.encode("日", add_special_tokens=False)
    _, detokenizer = stream(tokenizer, euro[:2])
    fork = detokenizer.fork()
    assert [fork.push(token) for token in tokenizer.encode("xy", add_special_tokens=False)][-1] == "y"
    assert detokenizer.push(euro[2]) == "日"


@pytest.mark.parametrize(
    ("kind", "name", "piece"),
    [
        ("byte-level", "Ġthe", " the"),
        ("byte-level", "ð", "<F0>"),
        ("byte-level", "ðŁ", "<F0 9F>"),
        ("byte-level", "Ã©", "é"),
        ("byte-level", "<|end|>", "<|end|>"),
        ("metaspace", "▁the", " the"),
        ("metaspace", "the", "the"),
        ("metaspace", "<0xF0>", "<F0>"),
        ("metaspace", "<0x41>", "A"),
        ("metaspace", "▁", " "),
        ("metaspace", "</s>", "</s>"),
    ],
)
def test_a_piece_shows_the_token_alone(kind, name, piece):
    tokenizer = TOKENIZERS[kind]()
    assert Pieces(tokenizer)[tokenizer.get_vocab()[name]] == piece


def test_an_id_without_a_token_is_shown_as_its_number():
    assert Pieces(byte_level_tokenizer())[99_999] == "<99999>"


# the token that ends a run

WORDS = ["ha", " ", "hum", "!", "h", "a h", "a", "<end>", "a!"]


def ends(names, stop=(), eos_ids=(), limit=64, room=64, ignore_eos=False):
    """How many of the tokens are kept, why it ended, and the text before the stop string."""
    tokenizer = words_tokenizer(WORDS, eos="<end>")
    ids = [WORDS.index(name) for name in names]
    rule = EndRule(Settings(stop=stop, max_new_tokens=limit, ignore_eos=ignore_eos), eos_ids, tokenizer, room)
    kept = rule.cut(ids)
    text = decode_ids(tokenizer, [i for i in ids[:kept] if i not in rule.silent_ids])
    return kept, rule.reason, text[: rule.stop_at]


@pytest.mark.parametrize(
    ("names", "stop", "expected"),
    [
        (["hum", " ", "ha", " ", "ha", "!"], ("ha ha",), (5, Reason.STOP, "hum ")),
        (["hum", "h", "a h", "a", "!"], ("ha ha",), (4, Reason.STOP, "hum")),
        (["ha", " ", "ha", " ", "ha"], ("ha ha",), (3, Reason.STOP, "")),
        (["ha", "ha", " ", "ha"], ("haha h", "aha ha"), (4, Reason.STOP, "")),
        (["hum", "a!"], ("!", "a!"), (2, Reason.STOP, "hum")),
        (["hum", "a!"], ("!",), (2, Reason.STOP, "huma")),
        (["hum", "ha"], ("ha ha",), (2, None, "humha")),
        (["h", "h", "a"], ("ha",), (3, Reason.STOP, "h")),
        (["<end>", "ha"], ("<end>",), (2, None, "ha")),
    ],
)
def test_the_token_that_completes_a_stop_string_is_the_last_and_the_text_ends_before_it(names, stop, expected):
    assert ends(names, stop) == expected


def test_the_first_reason_in_order_of_tokens_ends_a_run():
    end = (WORDS.index("<end>"),)
    assert ends(["ha", "<end>", "ha"], eos_ids=end) == (2, Reason.EOS, "ha")
    assert ends(["ha", "<end>", "ha"], eos_ids=end, ignore_eos=True) == (3, None, "haha")
    assert ends(["ha", "ha", "<end>"], eos_ids=end, limit=2) == (2, Reason.LENGTH, "haha")
    assert ends(["ha", "<end>"], eos_ids=end, limit=2) == (2, Reason.EOS, "ha")
    assert ends(["ha", "ha", "ha"], limit=5, room=2) == (2, Reason.CONTEXT, "haha")
    assert ends(["ha", "ha", "ha"], limit=2, room=2) == (2, Reason.LENGTH, "haha")


@pytest.mark.embedded
@pytest.mark.parametrize("seed", range(8))
def test_the_embedded_tokenizer_streams_any_tokens(embedded, seed):
    chance = random.Random(seed)
    tokenizer = embedded.tokenizer
    some = tokenizer.encode("".join(SAMPLES) * 4, add_special_tokens=False)
    for ids in ([chance.randrange(len(tokenizer)) for _ in range(50)], some, chance.sample(some, len(some)) * 4):
        texts, detokenizer = stream(tokenizer, ids)
        assert "".join(texts) + detokenizer.tail == whole(tokenizer, ids)
