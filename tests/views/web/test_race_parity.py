"""What the browser counts in mid-race and in a replay is what Python counts, on every prefix of every trace."""

from dataclasses import replace
from pathlib import Path

import pytest
from support.synthetic_race import TREE_ROUND, race_events

from specviz.metrics.tally import STANDARD, Tally
from specviz.traces import LaneFinished, RaceFinished, RaceStarted, Reason, RoundDone, event_to_json, read_trace
from specviz.views.web.race_view.wire import Encoder, dumps

GALLERY = sorted((Path(__file__).resolve().parents[3] / "assets/gallery").glob("*.jsonl.gz"))
FEWEST_ROUNDS = 3  # before, the page shows no rate

# The race so far: of each lane its state, and what the page works out from it.
NUMBERS = """
  (lane, at) => ({
    ...at,
    alpha: M.alphaAt(lane, at.rounds),
    passesPerToken: M.passesPerToken(at, at.targetPasses),
    ratio: M.ratioAt(M.laneAt(trace.byName.get('standard'), Infinity), at),
  })"""
PREFIXES = f"""
  events => {{
    const trace = new M.Trace();
    const numbers = {NUMBERS};
    return events.map(event => {{
      trace.append(event);
      return trace.lanes.map(lane => numbers(lane, M.laneAt(lane, Infinity)));
    }});
  }}"""
DECODED = f"""
  batches => {{
    const decoder = new M.Decoder();
    const events = batches.flatMap(text => decoder.messages(JSON.parse(text)).map(message => message.event));
    return ({PREFIXES})(events);
  }}"""
REPLAY = """
  ({ events, times }) => {
    const trace = new M.Trace();
    events.forEach(event => trace.append(event));
    return times.map(t => trace.lanes.map(lane => M.laneAt(lane, t)));
  }"""


def tree_race():
    """Two lanes, of which the second drafts a tree in every other round and nothing in the rest."""
    header, *events = race_events(12, (3,))
    standard = [event for event in events if getattr(event, "lane", None) == STANDARD]
    plain = next(event.round for event in standard if isinstance(event, RoundDone))
    tree, clock = [], 0.0
    for index, done in enumerate([TREE_ROUND, plain] * 4):
        tree.append(RoundDone("k=3", replace(done, index=index, start_seconds=clock, other_seconds=0.01)))
        clock = tree[-1].round.end_seconds
    return [header, *standard, *tree, LaneFinished("k=3", Reason.LENGTH, None), RaceFinished()]


TRACES = {path.name.removesuffix(".jsonl.gz"): lambda path=path: list(read_trace(path)) for path in GALLERY} | {
    "synthetic": lambda: race_events(120, (3, 5)),
    "synthetic, sampled": lambda: race_events(90, (2, 8), temperature=1.0, hostile=True),
    "synthetic, stopped": lambda: race_events(60, (4,), reason=Reason.CANCELLED)[:-9],
    "synthetic, of trees": tree_race,
}


@pytest.fixture(scope="module", params=TRACES)
def events(request):
    return TRACES[request.param]()


def summaries_by_prefix(events):
    tally = Tally()
    for event in events:
        tally.add(event)
        yield list(tally.summaries().values())


def counts(summary):
    """What the view sums up, from the numbers of a Summary."""
    drafting = summary.drafting_rounds
    return {
        "rounds": summary.rounds,
        "kept": summary.kept_tokens,
        "accepted": summary.accepted,
        "tested": summary.tested,
        "drafted": summary.drafted,
        "drafting": drafting,
        "depth": pytest.approx((summary.mean_depth or 0) * drafting),
        "draftPasses": summary.draft_passes,
        "targetPasses": summary.target_passes,
    }


def seconds(summary, tolerance):
    parts = (summary.draft_seconds, summary.verify_seconds, summary.other_seconds)
    return [pytest.approx(part or 0.0, abs=tolerance) for part in parts]


def check_prefixes(events, states, tolerance):
    """`tolerance`: seconds by which a sum may differ."""
    for summaries, lanes in zip(summaries_by_prefix(events), states, strict=True):
        standard = summaries[0].rounds
        for summary, at in zip(summaries, lanes, strict=True):
            wanted = counts(summary)
            assert {name: at[name] for name in wanted} == wanted
            assert [at["draft"], at["verify"], at["other"]] == seconds(summary, tolerance)
            assert at["clock"] == pytest.approx(summary.seconds or 0.0, abs=tolerance + 1e-9)
            assert at["alpha"] == summary.alpha
            assert at["passesPerToken"] == (summary.tau and pytest.approx(1 / summary.tau))
            told = min(summary.rounds, standard) >= FEWEST_ROUNDS
            assert at["ratio"] == (pytest.approx(summary.speedup, rel=1e-9 + tolerance) if told else None)


def test_every_prefix_counts_alike(modules, events):
    states = modules.evaluate(PREFIXES, [event_to_json(event) for event in events])
    assert len(states) == len(events) > 1 and isinstance(events[0], RaceStarted)
    check_prefixes(events, states, tolerance=0.0)


def test_every_prefix_that_came_by_wire_counts_alike(modules, events):
    encoder = Encoder()
    states = modules.evaluate(DECODED, [dumps(encoder.batch([event])) for event in events])
    # each time on the wire is rounded to a microsecond
    check_prefixes(events, states, tolerance=1e-6 * len(events))


def test_a_replay_at_the_end_of_any_round_counts_the_rounds_that_have_ended(modules, events):
    rounds = sorted(
        (event for event in events if isinstance(event, RoundDone)), key=lambda done: done.round.end_seconds
    )
    times = [done.round.end_seconds for done in rounds]
    lines = [event_to_json(event) for event in events]
    states = modules.evaluate(REPLAY, {"events": lines, "times": times})
    tally, ended = Tally(), 0
    tally.add(events[0])
    for t, lanes in zip(times, states, strict=True):
        while ended < len(rounds) and rounds[ended].round.end_seconds <= t + 5e-6:  # the view's own slack
            tally.add(rounds[ended])
            ended += 1
        for summary, at in zip(tally.summaries().values(), lanes, strict=True):
            wanted = counts(summary)
            assert {name: at[name] for name in wanted} == wanted
