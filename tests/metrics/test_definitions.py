"""The catalogue defines every number once, and everything that shows numbers is made from it."""

import json
from dataclasses import fields
from pathlib import Path

import pytest
from support.golden import golden

from specviz.metrics import METRICS, Place, Summary, rows, shown_in, values
from specviz.metrics.formats import Format, counted, fixed, parameters, seconds
from specviz.views.terminal.commands.metrics import document

# what a prediction is made of, and why a lane is slow: records, not numbers
INNER = {"costs", "because"}
DERIVED = {"verify_cost", "teaching_tokens", "teaching_speedup", "divergence_token"}


def test_every_number_of_a_summary_is_defined_and_nothing_else():
    assert set(METRICS) == {spec.name for spec in fields(Summary)} - INNER | DERIVED


def test_every_definition_reads_well():
    titles = [metric.title for metric in METRICS.values()]
    assert len(set(titles)) == len(titles)
    for metric in METRICS.values():
        assert metric.meaning.endswith(".") and "\n" not in metric.meaning, metric.field
        assert metric.unless_equal is None or metric.unless_equal in METRICS


def test_every_number_can_be_written_or_is_a_dash():
    for summary in golden().values():
        for metric in METRICS.values():
            assert metric.cell(summary) == metric.format(metric.of(summary))
            assert (metric.cell(summary) == "–") == (metric.of(summary) is None)


def test_a_program_gets_every_number_as_json_holds_it():
    lane = golden()["draft"]
    found = values(lane)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert set(found) == set(METRICS)
    assert (found["comparison"], found["tau"], found["token_ids"]) == ("identical", lane.tau, list(lane.token_ids))
    assert set(values(lane, Place.JSON)) < set(found)


def test_a_depth_that_repeats_what_was_drafted_is_no_row():
    titles = [row.title for row in rows(list(golden().values()), shown_in(Place.PAGE))]
    assert "mean drafted" in titles and "mean depth" not in titles


def test_the_document_of_the_metrics_is_up_to_date():
    path = Path(__file__).resolve().parents[2] / "docs" / "metrics.md"
    assert path.read_text("utf-8") == document(), "run: python -m specviz metrics > docs/metrics.md"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0 µs"),
        (0.0000041, "4 µs"),
        (0.00123, "1.23 ms"),
        (0.0123, "12.3 ms"),
        (0.05, "50 ms"),
        (0.2345, "235 ms"),
        (1.234, "1.23 s"),
        (12.34, "12.3 s"),
    ],
)
def test_a_duration_keeps_about_three_digits(value, shown):
    assert seconds(value) == Format.SECONDS(value) == shown


def test_small_words_of_numbers():
    assert [counted(1, "token"), counted(2, "pass", "passes")] == ["1 token", "2 passes"]
    assert [parameters(134_515_008), parameters(1_543_714_304)] == ["135 M", "1.54 B"]
    assert [fixed(0.125, 2), fixed(2.5, 0)] == ["0.13", "3"]
