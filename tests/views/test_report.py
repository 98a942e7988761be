"""One report, made once: a run, its file, its replay and /summary give the same verdict, badges, table and words."""

import json

import pytest
from support.scripted import race, script, sourced, standard
from support.synthetic_race import race_events

from specviz.catalogue.gallery import recordings
from specviz.metrics import METRICS, Format, Group, Metric, Place, Spread, definitions, summarize, verdict_of
from specviz.metrics.words import paragraph, sentence
from specviz.traces import Reason, event_from_json, event_to_json, parse_trace, write_trace
from specviz.views.lane_names import short_names
from specviz.views.report import lane_json, opening_report, race_report
from specviz.views.terminal import main
from specviz.views.terminal.commands.metrics import document
from specviz.views.terminal.escaping import one_line

RECORDINGS = list(recordings())


def told(report):
    """The report as it reaches a browser or a program."""
    return json.loads(json.dumps(report.as_json(), allow_nan=False))


def table(out):
    """{label: cells} of the terminal's table."""
    lines = (line.strip().split("  ") for line in out.splitlines())
    cells = ([cell.strip() for cell in line if cell.strip()] for line in lines)
    return {line[0]: tuple(line[1:]) for line in cells if line}


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_recorded_run_is_told_alike_everywhere(name, tmp_path, capsys):
    events = list(recordings()[name].events())
    report = race_report(events)
    # opened from its file, and received as /race streams it
    write_trace(tmp_path / "run.jsonl", events)
    text = (tmp_path / "run.jsonl").read_text("utf-8")
    assert told(race_report(list(parse_trace(text)))) == told(report)
    assert told(race_report([event_from_json(event_to_json(event)) for event in events])) == told(report)
    # replayed in a terminal
    assert main(["replay", str(tmp_path / "run.jsonl")]) == 0
    out = capsys.readouterr().out
    printed = table(out)
    assert {row.title: printed[row.title] for row in report.rows} == {row.title: row.cells for row in report.rows}
    summaries = summarize(events)
    for lane in report.lanes:
        assert f"\n{lane}: {one_line(sentence(verdict_of(summaries[lane])))}\n" in out
    # for programs
    for lane, summary in summaries.items():
        if not summary.standard:
            said = lane_json(summary)
            more = [said["holds_back"], said["policy_bias"]]
            names = short_names(events)
            shown = " ".join(filter(None, (f"{said['verdict']}.", *more)))
            assert any(reason.removeprefix(f"{names[lane]}: ") == shown for reason in report.reasons)


def test_a_race_that_begins_has_its_facts_alone():
    events = race_events(20, (4,))
    begun = opening_report(events[0].header)
    assert begun.headline is None and not begun.rows and "verify curve pending" in begun.facts
    over = race_report(events)
    assert [fact for fact in over.facts if "own prefill" not in fact] == [
        fact for fact in begun.facts if not fact.startswith("Speculative")
    ]


def test_the_best_lane_has_the_headline_and_the_others_their_speed():
    lanes = {"standard": standard(6), "slow": script("ARc", "ARc", "ARc"), "fast": script("AAb", "AAb")}
    report = race_report(list(race(lanes, drafts={"slow": "prompt-lookup", "fast": "prompt-lookup"})))
    names = short_names(list(race(lanes, drafts={"slow": "prompt-lookup", "fast": "prompt-lookup"})))
    assert report.headline.big == "3.0× faster"
    assert report.headline.rest.startswith(f"{names['fast']}: the same 6 tokens")
    assert report.headline.rest.endswith(f". {names['slow']} 2.0×")
    assert not report.loss and len(report.reasons) == 2


def test_a_loss_is_a_value():
    slow = script(*["ARc"] * 3, times=(0.9, 0.1, 0.0))
    report = race_report(list(race({"standard": standard(6), "draft": slow})))
    assert report.loss and report.headline.rest.startswith("slower, because")


def test_badges_are_one_where_all_lanes_agree_and_one_per_lane_otherwise():
    same, other = script("AAb", "AAb"), script("AAb", "AAb", ids=(0, 1, 2, 3, 4, 9))
    agreeing = race_report(list(race({"standard": standard(6), "a": same, "b": same})))
    assert [(badge.text, badge.kind) for badge in agreeing.badges] == [
        ("✓ identical output", "good"),
        ("n = 1 run", ""),
    ]
    differing = race_report(list(race({"standard": standard(6), "a": same, "b": other})))
    assert [badge.kind for badge in differing.badges] == ["good", "bad", ""]
    assert differing.badges[1].text.endswith(": first difference at token 6")


def test_the_spread_of_several_runs_stands_in_headline_reason_and_badge():
    events = list(race({"standard": standard(6), "draft": script("ARc", "AAb", "s")}))
    report = race_report(events, spreads={"draft": Spread(5, 1.5, 2.5)})
    assert report.headline.rest.endswith("Median of 5 runs, 1.5× to 2.5×")
    assert report.badges[-1].text == "n = 5 runs"
    (reason,) = report.reasons
    assert "Median of 5 runs, 1.5× to 2.5×." in reason


def test_a_stopped_run_is_told_alike_by_headline_reason_badge_and_table():
    reasons = {"standard": Reason.CANCELLED, "draft": Reason.CANCELLED}
    report = race_report(list(race({"standard": standard(4), "draft": script("ARc", "s")}, reasons=reasons)))
    alike = "the same as far as both got (3 tokens)"
    assert report.badges[0].text == report.rows[-1].cells[1] == alike
    assert "as far as both got (3 tokens)" in report.headline.rest
    assert "as far as both got (3 tokens)" in report.reasons[0]


def test_sources_name_their_lane_only_where_several_lanes_have_sources():
    one = sourced(script("AAb", "ARUc"), "match", "table", "match", "table", "table")
    report = race_report(list(race({"standard": standard(5), "a": one})))
    assert [(row.lane, row.source, row.cells) for row in report.sources] == [
        ("", "match", ("2", "2", "100%", "67%")),
        ("", "table", ("3", "1", "33%", "33%")),
    ]
    events = list(race({"standard": standard(5), "a": one, "b": one}))
    assert [row.lane for row in race_report(events).sources] == [
        short_names(events)[lane] for lane in ("a", "a", "b", "b")
    ]


def test_a_column_is_added_by_its_definition_alone(monkeypatch, tmp_path, capsys):
    """One entry in the catalogue (and the field, where the number is new) reaches every place."""
    added = Metric(
        "tokens_per_round",
        "tokens per round",
        "Kept tokens per round.",
        Format.MEAN,
        Group.RATES,
        Place.PAGE | Place.TERMINAL | Place.JSON,
    )
    monkeypatch.setattr(
        type(next(iter(summarize(RACE).values()))), "tokens_per_round", _tokens_per_round, raising=False
    )
    monkeypatch.setitem(METRICS, added.field, added)
    assert ("tokens per round", "Kept tokens per round.", ("1.00", "2.00")) in [
        (row.title, row.meaning, row.cells) for row in race_report(RACE).rows
    ]
    assert lane_json(summarize(RACE)["draft"])["tokens_per_round"] == 2.0
    write_trace(tmp_path / "run.jsonl", RACE)
    assert main(["replay", str(tmp_path / "run.jsonl")]) == 0
    assert table(capsys.readouterr().out)["tokens per round"] == ("1.00", "2.00")
    assert main(["replay", str(tmp_path / "run.jsonl"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["lanes"]["draft"]["tokens_per_round"] == 2.0
    assert "| `tokens_per_round` | tokens per round |" in document()
    assert definitions.METRICS is METRICS


RACE = list(race({"standard": standard(6), "draft": script("ARc", "ARc", "ARc")}))


@property
def _tokens_per_round(summary):
    return summary.kept_tokens / summary.rounds


def test_a_paragraph_is_whole_sentences():
    for events in (RACE, list(recordings()["loss"].events())):
        for summary in summarize(events).values():
            said = paragraph(verdict_of(summary))
            assert said.endswith(".") and ".." not in said
