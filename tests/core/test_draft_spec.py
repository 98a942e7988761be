"""A draft's spelling: what parse reads, spell writes, for every strategy, every option and any text at all."""

import pickle
from urllib.parse import parse_qsl, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specviz.core.draft_spec import DraftSpec
from specviz.core.errors import InputError, SpecvizError
from specviz.core.settings import K_POLICIES, MAX_STOP_LENGTH, Settings
from specviz.drafting import checked, read_draft, strategies

TRICKY = [
    *("", " ", "a,b", "a:b", "a=b", "a+b", '"', '"a"', 'say "so"', "a\nb", "\\", "\\n", "true", "False", "7", "007"),
    *(
        "1e5",
        "0.5",
        "nan",
        "inf",
        "-0",
        "+1",
        "日本語",
        "👩‍👩‍👧",
        "C:/a b,k=3",
        ":k=3",
        "a:k=3",
        "\x00",
        "\u2028",
        "a+",
        "+",
    ),
]
TEXTS = st.one_of(st.sampled_from(TRICKY), st.text(max_size=30), st.text(alphabet=',:="+\\ ak3\n', max_size=12))
NUMBERS = st.one_of(st.booleans(), st.integers(-(10**19), 10**19), st.floats(allow_nan=False, allow_infinity=False))
VALUES = st.one_of(TEXTS, NUMBERS, st.lists(TEXTS, max_size=4).map(tuple))
WORDS = st.from_regex(r"\A[A-Za-z_][A-Za-z_0-9]{0,8}\Z").filter(lambda word: word not in Settings.__slots__)
NAMES = st.from_regex(r"\A[a-z][a-z0-9-]{0,12}\Z")
SOURCES = st.one_of(
    st.none(), TEXTS, st.sampled_from(["hub:a/b@main", "path:/a:b/c", "path:/a:x=1/b", "embedded#int4"])
)


def same(one, other):
    """Equal in values and in the types of values: 1 and True are not the same."""
    assert one == other
    pairs = zip((*one.options, *one.settings), (*other.options, *other.settings), strict=True)
    assert all(type(left[1]) is type(right[1]) for left, right in pairs)


def option_values(option):
    """Values that an option may have, within its type and range."""
    if option.choices:
        return st.sampled_from(option.choices)
    if option.type is bool:
        return st.booleans()
    if option.type is int:
        return st.integers(option.low, option.high)
    if option.type is float:
        return st.floats(option.low, option.high)
    return TEXTS if option.type is str else st.lists(TEXTS, max_size=3).map(tuple)


SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        "k": st.integers(0, 64),
        "k_policy": st.sampled_from([*K_POLICIES, "confidence-0.3", "entropy-1.5"]),
        "temperature": st.floats(0, 10),
        "seed": st.integers(0, 2**63 - 1),
        "stop": st.lists(TEXTS.filter(lambda text: 0 < len(text) <= MAX_STOP_LENGTH), max_size=3).map(tuple),
        "telemetry": st.booleans(),
    },
)


@st.composite
def runnable_specs(draw):
    """Specs of the strategies that there are, each option present or not."""
    kind = strategies()[draw(st.sampled_from(sorted(strategies())))]
    chosen = {option.name: option_values(option) for option in kind.options()}
    options = draw(st.fixed_dictionaries({}, optional=chosen))
    path = st.text(min_size=1).filter(lambda text: text == text.strip())
    source = draw(st.one_of(st.sampled_from(["embedded", "hub:a/b"]), path.map("path:{}".format)))
    return DraftSpec(kind.name, source if kind.takes_model else None, options, draw(SETTINGS))


@given(runnable_specs())
def test_every_strategy_with_every_option_reads_back_as_it_was_spelt(spec):
    spec = checked(spec)
    same(DraftSpec.parse(spec.spell()), spec)
    same(read_draft(spec.spell()), spec)


@given(NAMES, SOURCES, st.dictionaries(WORDS, VALUES, max_size=3), SETTINGS)
def test_any_value_reads_back_as_it_was_spelt_from_an_address_too(name, source, options, settings):
    spec = DraftSpec(name, source, options, settings)
    same(DraftSpec.parse(spec.spell()), spec)
    [(_, sent)] = parse_qsl(urlencode([("draft", spec.spell())]), keep_blank_values=True)
    same(DraftSpec.parse(sent), spec)
    assert spec.spell().isprintable()


@given(st.text(max_size=40) | st.text(alphabet='ab=:,"+k3\\ ', max_size=20))
def test_any_text_is_a_spec_or_is_refused_in_a_sentence(text):
    try:
        spec = DraftSpec.parse(text)
    except SpecvizError as error:
        assert str(error).endswith(".") and error.field == "draft"
    else:
        same(DraftSpec.parse(spec.spell()), spec)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("x:a=true", True),
        ("x:a=True", "True"),
        ("x:a=4", 4),
        ("x:a=007", "007"),
        ("x:a=4.0", 4.0),
        ("x:a=.5", ".5"),
        ("x:a=nan", "nan"),
        ('x:a="4"', "4"),
        ("x:a=", ()),
        ('x:a=""', ""),
        ('x:a="b"+', ("b",)),
        ('x:a="b,c"+"d:e"', ("b,c", "d:e")),
        ("x:a=b+c", "b+c"),
        (r'x:a="\u00e4\n"', "ä\n"),
    ],
)
def test_a_value_says_by_itself_what_it_is(text, value):
    [(_, found)] = DraftSpec.parse(text).options
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x:", "what follows 'x:' must read option=value"),
        ("x:a", "what follows 'x:' must read option=value"),
        ('x:a="b', "must read option=value"),
        ('x:a="b"c', "must read option=value"),
        ('x="s":k', "what follows the source must read"),
        (r'x:a="\q"', "is not a text as JSON writes it"),
        ("x:a=1,a=2", "'a' is given twice"),
    ],
)
def test_a_text_that_breaks_the_grammar_is_refused(text, words):
    with pytest.raises(InputError, match=words) as caught:
        DraftSpec.parse(text)
    assert f"'{text}'" in str(caught.value)


def test_specs_that_say_the_same_are_equal_and_spelt_alike():
    one, other = DraftSpec.parse("early-exit:seed=2,k=4,layers=3"), DraftSpec.parse("early-exit:layers=3,k=4,seed=2")
    assert one == other and hash(one) == hash(other)
    assert one.spell() == other.spell() == str(one) == "early-exit:layers=3,k=4,seed=2"
    assert read_draft("none:telemetry=Yes,top_p=5e-1") == read_draft("none:telemetry=true,top_p=0.5")
    assert pickle.loads(pickle.dumps(one)) == one


def test_k_is_taken_from_a_draft_and_given_to_it():
    spec = DraftSpec.parse("prompt-lookup:max_ngram=4,k=8,seed=1")
    assert spec.k == 8 and spec.without_k.spell() == "prompt-lookup:max_ngram=4,seed=1"
    assert spec.without_k.k is None and spec.without_k.with_k(8) == spec
    assert spec.settings_in(Settings(top_k=3)) == Settings(k=8, seed=1, top_k=3)


@pytest.mark.parametrize(
    ("spec", "field", "code"),
    [
        (DraftSpec("magic"), "draft", "unknown-draft"),
        (DraftSpec("prompt-lookup", "embedded"), "draft.source", "takes-no-model"),
        (DraftSpec("draft-model"), "draft.source", "needs-model"),
        (DraftSpec("draft-model", "ftp:x"), "draft.source", "not-loaded"),
        (DraftSpec("early-exit", options={"depth": 1}), "draft.options.depth", "unknown-option"),
        (DraftSpec("early-exit", options={"layers": 999}), "draft.options.layers", "out-of-range"),
        (DraftSpec("early-exit", options={"layers": "x"}), "draft.options.layers", "wrong-type"),
        (DraftSpec("token-recycling", options={"shape": "ring"}), "draft.options.shape", "unknown-choice"),
        (DraftSpec("early-exit", settings={"k": 65}), "draft.k", "out-of-range"),
        (DraftSpec("early-exit", settings={"k": 1.5}), "draft.k", "not-whole"),
        (DraftSpec("early-exit", settings={"telemetry": "perhaps"}), "draft.telemetry", "not-a-truth"),
        (DraftSpec("early-exit", settings={"k_policy": "entropy-x"}), "draft.k_policy", "not-a-number"),
        (DraftSpec("early-exit", settings={"k_policy": "clever"}), "draft.k_policy", "unknown-policy"),
    ],
)
def test_what_cannot_be_used_is_named_by_its_field_and_a_code(spec, field, code):
    with pytest.raises(SpecvizError) as caught:
        checked(spec)
    assert (caught.value.field, caught.value.code) == (field, code)
    assert pickle.loads(pickle.dumps(caught.value)).__dict__ == caught.value.__dict__


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("ngram-table:table=/a+b,order", None),
        ("ngram-table:table=7", {"table": "7"}),
        ("ngram-table:table=true", {"table": "true"}),
        ("ngram-table:table=", {"table": ""}),
        ("ngram-table:table=/a+b.npz", {"table": "/a+b.npz"}),
        ("prompt-lookup:max_ngram= 4", {"max_ngram": 4}),
        ("prompt-lookup:max_ngram=4.0", {"max_ngram": 4}),
    ],
)
def test_values_are_taken_as_the_option_means_them(text, options):
    if options is None:
        with pytest.raises(SpecvizError):
            read_draft(text)
    else:
        assert dict(read_draft(text).options) == options
