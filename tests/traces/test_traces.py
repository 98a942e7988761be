"""Records survive the round trip through JSON, and a broken trace is refused in words."""

import gzip
import subprocess
import sys

import pytest

from specviz.core.errors import TraceError
from specviz.core.settings import Settings
from specviz.traces import (
    Calibrated,
    DraftToken,
    Header,
    Kind,
    LaneFinished,
    LaneInfo,
    LaneStarted,
    ModelInfo,
    RaceFinished,
    RaceStarted,
    Reason,
    Round,
    RoundDone,
    TargetToken,
    Token,
    Verdict,
    VerifyCurve,
    read_trace,
    write_trace,
)

MODEL = ModelInfo("target", "tiny", "path:tiny", None, "llama", 123, 300, 64, 492, "plain")
HOSTILE = [
    "${alert(1)}",
    "`",
    "<img src=x onerror=alert(1)>",
    "</script>",
    "{{x}}",
    "\x00",
    "\u202e",
    "\u2028",
    "👩‍👩‍👧",
    "\n",
]


def example_events():
    settings = Settings(k=2, temperature=1.0, stop=("ha ha",))
    lanes = (
        LaneInfo("standard", "none", "standard", settings),
        LaneInfo("l", "lookup", "Lookup", settings, {"n": 3, "s": ["a"], "f": 0.5}),
    )
    header = Header("hi", (1, 2), MODEL, lanes, "cpu", "CPU", "float32", 2, {"torch": "2"}, "2026-01-01T00:00:00Z")
    yield RaceStarted(header)
    yield LaneStarted("l", 0.25, None)
    tops = ((Token(1, None, "a"), 0.5), (Token(2, None, "<F0 9F>"), 0.25))
    drafts = (
        DraftToken(Token(5, " the", " the"), Verdict.ACCEPTED, None, "match", 1.0, 0.25, 0.125, 0.5, tops, tops),
        DraftToken(Token(None), Verdict.REJECTED),
    )
    target = TargetToken(Token(7, "", "<|im_end|>"), Kind.CORRECTION, 0.1, 0.3, 1.5, tops, None)
    yield RoundDone("l", Round(0, 2, 2, drafts, target, "note", 0.0, 0.1, 0.2, 0.3, 0.4, 2, 1, 9))
    yield RoundDone("l", Round(1, 2, None, (), None, draft_passes=None, target_passes=None))
    for text in HOSTILE:
        yield RoundDone("l", Round(2, 0, 0, (), TargetToken(Token(1, text, text), Kind.STANDARD)))
    yield LaneFinished("l", Reason.EOS, "text", "", "why", 1.0)
    yield Calibrated(VerifyCurve((1, 2), (0.1, 0.2), (0.0, 0.0)))
    yield RaceFinished()


def test_roundtrip(tmp_path):
    events = list(example_events())
    write_trace(tmp_path / "run.jsonl", events)
    assert list(read_trace(tmp_path / "run.jsonl")) == events


def test_each_event_is_one_line(tmp_path):
    events = list(example_events())
    write_trace(tmp_path / "run.jsonl", events)
    assert (tmp_path / "run.jsonl").read_bytes().count(b"\n") == len(events)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("", "no events"),
        ("{", "not JSON"),
        ("[1]", "not an event"),
        ('{"event": []}', "not an event"),
        ('{"event":"RaceFinished"}', "does not begin"),
        ('{"event":"RaceStarted"}', "lacks the field 'header'"),
        ('{"event":"RaceStarted","header":{"schema":99}}', "schema 99"),
        ('{"event":"RaceStarted","header":7}', "should be an object"),
        ("[" * 100_000, "nested too deeply"),
        ('{"event":"RaceStarted","header":{"a":NaN}}', "NaN"),
    ],
)
def test_broken_trace_is_refused_in_words(tmp_path, line, says):
    (tmp_path / "bad.jsonl").write_text(line)
    with pytest.raises(TraceError, match=says):
        list(read_trace(tmp_path / "bad.jsonl"))


@pytest.mark.parametrize(
    ("right", "wrong", "says"),
    [
        (
            '"verdict":"accepted"',
            '"verdict":"maybe"',
            r"line 3: RoundDone\.round\.drafts\[0\]\.verdict is 'maybe'",
        ),
        ('"draft_seconds":0.1', '"draft_seconds":-0.1', r"RoundDone\.round\.draft_seconds is -0\.1"),
    ],
)
def test_what_is_wrong_deep_inside_is_named(tmp_path, right, wrong, says):
    path = tmp_path / "run.jsonl"
    write_trace(path, example_events())
    path.write_text(path.read_text().replace(right, wrong))
    with pytest.raises(TraceError, match=says):
        list(read_trace(path))


def test_a_second_race_in_a_file_is_refused(tmp_path):
    path = tmp_path / "run.jsonl"
    write_trace(path, [*example_events(), *example_events()])
    with pytest.raises(TraceError, match="a second race begins here"):
        list(read_trace(path))


def test_missing_file_is_refused_in_words(tmp_path):
    with pytest.raises(TraceError, match="cannot be read"):
        list(read_trace(tmp_path / "none.jsonl"))


def test_a_packed_trace_reads_the_same(tmp_path):
    events = list(example_events())
    write_trace(tmp_path / "run.jsonl", events)
    (tmp_path / "run.jsonl.gz").write_bytes(gzip.compress((tmp_path / "run.jsonl").read_bytes()))
    assert list(read_trace(tmp_path / "run.jsonl.gz")) == events
    (tmp_path / "bad.jsonl.gz").write_bytes(b"not packed")
    with pytest.raises(TraceError, match="cannot be read"):
        list(read_trace(tmp_path / "bad.jsonl.gz"))


def test_a_last_line_cut_short_is_left_out(tmp_path):
    path = tmp_path / "run.jsonl"
    events = list(example_events())
    write_trace(path, events)
    path.write_bytes(path.read_bytes()[:-5])
    assert list(read_trace(path)) == events[:-1]


def test_traces_load_no_torch():
    code = "import sys, specviz.traces; assert not {'torch', 'transformers', 'gradio'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
