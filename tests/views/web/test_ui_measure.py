"""Measuring again: medians and spread of the times, and the tokens of the race that is shown."""

from dataclasses import replace

from specviz.core.settings import Settings
from specviz.metrics import summarize
from specviz.races.request import make_request
from specviz.traces import (
    DraftToken,
    Header,
    Kind,
    LaneFinished,
    LaneInfo,
    ModelInfo,
    RaceFinished,
    RaceStarted,
    Reason,
    Round,
    RoundDone,
    TargetToken,
    Token,
    Verdict,
)
from specviz.views.web.measure import measure, report_of_runs
from specviz.views.web.race_view.race_stream import RaceStream
from specviz.views.web.session import Session

MODEL = ModelInfo("target", "tiny", "path:tiny", None, "llama", 1, 9, 64, 4, "plain")


def trace(draft_seconds):
    """Standard takes 2 x 1 s for two tokens; the other lane one round of `draft_seconds` + 1 s for the same two."""
    lanes = tuple(LaneInfo(name, name, name, Settings()) for name in ("standard", "fast"))
    token = [Token(1, "a"), Token(2, "b")]
    plain = [
        Round(i, 0, 0, (), TargetToken(token[i], Kind.STANDARD), None, float(i), 0.0, 1.0, 0.0, 0.0) for i in (0, 1)
    ]
    drafts = (DraftToken(token[0], Verdict.ACCEPTED),)
    bonus = TargetToken(token[1], Kind.BONUS)
    fast = Round(0, 1, 1, drafts, bonus, None, 0.0, draft_seconds, 1.0, 0.0, 0.0, 1)
    return (
        RaceStarted(Header(None, (5,), MODEL, lanes, "cpu", "cpu", "float32", 1, {}, "2026-01-01")),
        *(RoundDone("standard", item) for item in plain),
        RoundDone("fast", fast),
        *(LaneFinished(name, Reason.LENGTH, "ab", "") for name in ("standard", "fast")),
        RaceFinished(),
    )


def test_the_median_stands_and_the_spread_is_told():
    # speed-up is 2 / (1 + draft): 2, 1.6, 1.25
    runs = [summarize(trace(seconds)) for seconds in (0.0, 0.25, 0.6)]
    report = report_of_runs(trace(0.0), runs)
    cells = {row.title: row.cells for row in report.rows}
    assert cells["decode time"] == ("2.00 s", "1.25 s") and report.runs == 3
    assert (report.headline.big, report.badges[-1].text) == ("1.6× faster", "n = 3 runs")
    paid = "1 target pass instead of 2, plus 1 draft pass"
    (reason,) = report.reasons
    assert reason.startswith(f"1.6× faster, the same 2 tokens: {paid}. Every tested draft token was accepted")
    assert reason.endswith("or copied text. Median of 3 runs, 1.3× to 2.0×.")


def session():
    """A session whose last race is the trace above."""
    found = Session()
    found.trace, found.stream = trace(0.0), RaceStream()
    found.raced = make_request("a", ["prompt-lookup:k=1"], "embedded", {"max_new_tokens": 2})
    return found


def test_five_runs_end_in_one_change_of_the_view():
    mine, asked = session(), []

    def runner(request, cancelled):
        asked.append(request)
        yield list(trace(0.1 * len(asked)))

    changes = list(measure(mine, mine.begin(), runner))
    assert asked == [mine.raced] * 5
    assert [change.line[1] for change in changes[:-1]] == [f"Measuring: run {n} of 5" for n in range(1, 6)]
    assert [change.view is not None for change in changes] == [False] * 5 + [True]
    assert not mine.busy


def test_a_stopped_measurement_changes_no_number():
    mine = session()

    def runner(request, cancelled):
        mine.stop()
        yield [*trace(0.0)[:-1], replace(RaceFinished(), cancelled=True)]

    changes = list(measure(mine, mine.begin(), runner))
    assert all(change.view is None for change in changes)
    assert "stopped" in changes[-1].line[1]
