"""The view's pure JavaScript, run in deno: the decoder against Python's, the state at t against the records."""

import json
from dataclasses import asdict

import pytest
from support.named_lanes import ALIKE, alike, named
from support.synthetic_race import race_events
from support.wire_decoder import Decoder

from specviz.core.settings import Settings
from specviz.metrics import formats
from specviz.traces import DraftToken, Kind, Round, RoundDone, TargetToken, Verdict, event_to_json, parse_trace
from specviz.views.web.race_view.wire import Encoder, dumps


def trace_in(modules, events):
    text = json.dumps([event_to_json(event) for event in events])
    modules.evaluate(
        "text => { globalThis.T = new M.Trace(); JSON.parse(text).forEach(event => T.append(event)); }", text
    )


def test_defaults_are_those_of_the_records(modules):
    found = modules.evaluate("[M.FIELDS, M.SETTINGS, M.VERDICTS, M.KINDS]")
    records, settings, verdicts, kinds = found
    for cls in (Round, DraftToken, TargetToken):
        wanted = [
            [name] if "MISSING" in repr(spec.default) else [name, spec.default]
            for name, spec in cls.__dataclass_fields__.items()
        ]
        assert records[cls.__name__] == wanted
    assert settings == {**asdict(Settings()), "stop": []}
    assert (verdicts, kinds) == ([v.value for v in Verdict], [k.value for k in Kind])


@pytest.mark.parametrize("hostile", [False, True])
def test_the_browser_decodes_to_the_lines_of_a_trace_file(modules, hostile):
    events = race_events(120, (3, 5), temperature=1.0, hostile=hostile)
    encoder = Encoder()
    texts = [dumps(encoder.batch(events[i : i + 9])) for i in range(0, len(events), 9)]
    decoder = Decoder()
    wanted = [event_to_json(event) for text in texts for event in decoder.events(json.loads(text))]
    decode = """texts => { const decoder = new M.Decoder();
                  return texts.flatMap(text => decoder.messages(JSON.parse(text)).map(message => message.event)); }"""
    assert modules.evaluate(decode, texts) == wanted


def test_a_state_at_t_is_exactly_the_rounds_that_have_ended(modules):
    events = race_events(60, (4,))
    trace_in(modules, events)
    for lane, name in enumerate(("standard", "k=4")):
        rounds = [event.round for event in events if isinstance(event, RoundDone) and event.lane == name]
        for t in (0.0, rounds[0].end_seconds, rounds[0].end_seconds - 1e-3, rounds[3].end_seconds + 1e-3, 1e9):
            ended = [done for done in rounds if done.end_seconds <= t + 1e-9]
            at = modules.evaluate("([lane, t]) => M.laneAt(T.lanes[lane], t)", [lane, t])
            assert at["rounds"] == len(ended)
            assert at["kept"] == sum(len(done.kept) for done in ended)
            assert at["draftPasses"] == sum(done.draft_passes for done in ended)
            assert at["targetPasses"] == len(ended)
            assert at["clock"] == pytest.approx(min(t, rounds[-1].end_seconds))


def test_a_round_in_flight_is_drafting_then_pending_then_over(modules):
    # one round from 0: drafts until 0.2, verified until 0.7, 0.1 of other work
    draft = DraftToken(token(1), Verdict.ACCEPTED)
    done = Round(0, 1, 1, (draft,), TargetToken(token(2), Kind.BONUS), None, 0.0, 0.2, 0.5, 0.1, None, 1)
    trace_in(modules, [race_events(1, (1,))[0], RoundDone("k=1", done)])
    phases = modules.evaluate(
        "[0.1, 0.3, 0.8].map(t => { const a = M.laneAt(T.lanes[1], t); return [a.phase, a.rounds]; })"
    )
    assert phases == [["drafting", 0], ["pending", 0], ["idle", 1]]


def token(number):
    from specviz.traces import Token

    return Token(number, f" t{number}", f" t{number}")


def test_the_race_clock_is_the_smallest_of_unfinished_lanes(modules):
    events = race_events(30, (4,))
    trace_in(modules, events[:20])
    ends = {}
    for event in events[:20]:
        if isinstance(event, RoundDone):
            ends[event.lane] = event.round.end_seconds
    assert modules.evaluate("M.raceClock(T)") == pytest.approx(min(ends.values()))
    trace_in(modules, events)
    last = max(event.round.end_seconds for event in events if isinstance(event, RoundDone))
    assert modules.evaluate("M.raceClock(T)") == pytest.approx(last)


def test_a_late_event_costs_what_an_early_one_does(modules):
    start = event_to_json(race_events(1, (4,))[0])
    lines = [event_to_json(event) for event in race_events(3000, (4,)) if isinstance(event, RoundDone)]
    costs = modules.evaluate(
        """([header, lines]) => [1, 2, 3, 4, 5].map(() => {
             const trace = new M.Trace(); trace.append(header);
             const cost = (from, to) => { const begin = performance.now();
               for (const line of lines.slice(from, to)) { trace.append(line);
                 M.laneAt(trace.lanes[1], M.raceClock(trace)); }
               return performance.now() - begin; };
             cost(0, 400);
             const early = cost(400, 1400); cost(1400, lines.length - 1000);
             return [early, cost(lines.length - 1000, lines.length)]; })""",
        [start, lines],
    )
    # the least of five is what it costs on a busy machine too; a quadratic state would be several times dearer late
    early, late = (min(pair[i] for pair in costs) for i in (0, 1))
    assert late <= 2 * early + 3


def test_the_receiver_orders_skips_and_asks_for_what_it_missed(modules):
    found = modules.evaluate(
        """async () => {
          const seen = []; const asked = [];
          const all = [1, 2, 3, 4, 5, 6].map(n => JSON.stringify({ e: [['s', String(n)]] }));
          const slot = n => `${n}|${all[n - 1]}`;
          const receiver = new M.Receiver({
            onRun: () => seen.push('run'),
            onMessages: messages => seen.push(...messages.map(message => message.report)),
            resync: async ({ run, after }) => {
              asked.push([run, after]);
              return { batches: all.slice(after, after + 2) };
            } });
          receiver.accept(null);
          receiver.accept({ run: 'a', ring: [slot(2), '', slot(1)] });
          receiver.accept({ run: 'a', ring: [slot(2), '', slot(1)] });
          receiver.accept({ run: 'a', ring: [slot(6)] });
          await new Promise(done => setTimeout(done, 20));
          receiver.accept({ run: 'b', ring: [slot(1)] });
          return [seen, asked]; }"""
    )
    assert found == [["run", "1", "2", "3", "4", "5", "6", "run", "1"], [["a", 2], ["a", 4]]]


def test_a_receiver_whose_run_is_gone_stops_asking(modules):
    asked = modules.evaluate(
        """async () => {
          let asked = 0;
          const resync = async () => { asked += 1; return { gone: true }; };
          const receiver = new M.Receiver({ onRun() {}, onMessages() {}, resync });
          for (let i = 0; i < 3; i += 1) {
            receiver.accept({ run: 'a', ring: ['9|{"e":[]}'] });
            await new Promise(done => setTimeout(done, 5));
          }
          return asked; }"""
    )
    assert asked == 1


def test_exported_lines_are_the_trace_and_are_read_back(modules):
    events = race_events(40, (4,), hostile=True)
    trace_in(modules, events)
    text = modules.evaluate("M.toJsonl(T)")
    assert [json.loads(line) for line in text.split("\n") if line] == [event_to_json(event) for event in events]
    assert [event_to_json(event) for event in parse_trace(text)] == [event_to_json(event) for event in events]


def test_the_card_says_why_in_a_plain_sentence(modules):
    say = """([draft, greedy, target]) =>
               M.explain({ slot: 0 }, { greedy, lane: null, round: { drafts: [draft], target } })
                .map(part => typeof part === 'string' ? part : '[' + part.token[1] + ']').join('')"""
    rejected = {"token": [1, " the"], "verdict": "rejected", "draft_prob": 0.62, "target_prob": 0.08, "draw": 0.41}
    text = modules.evaluate(say, [rejected, False, None])
    assert text == (
        "The draft gave it 62%, the target only 8%: kept with chance 13%, the draw was 0.41, so it was thrown away."
    )
    accepted = {**rejected, "verdict": "accepted", "draft_prob": 0.2, "target_prob": 0.6}
    assert "always kept" in modules.evaluate(say, [accepted, False, None])
    lookup = {**rejected, "draft_prob": 1, "target_prob": 0.3}
    assert "named it outright" in modules.evaluate(say, [lookup, False, None])
    tops = {"draft_top": [[[1, None, " and"], 0.29]], "target_top": [[[2, ":", ":"], 0.49], [[1, None, " and"], 0.1]]}
    greedy = {"token": [1, " and", " and"], "verdict": "rejected", **tops}
    target = {"token": [2, ":", ":"], "kind": "correction", "margin": 1.25}
    assert modules.evaluate(say, [greedy, True, target]) == (
        "The draft gave it 29%, the target only 10%. Greedy decoding keeps only the target’s first choice, "
        "which is [:], ahead by 1.25 in logits."
    )
    untested = {"token": [1, "x"], "verdict": "untested"}
    assert "already ended" in modules.evaluate(say, [untested, False, None])


def test_numbers_are_never_zero_infinite_or_nan_before_they_mean_something(modules):
    trace_in(modules, race_events(1, (4,))[:1])
    assert modules.evaluate("M.rate(M.rateAt(M.laneAt(T.lanes[0], 0)))") == "–"
    shown = modules.evaluate("[M.percent(null), M.percent(0.0004), M.percent(0.995), M.percent(1), M.seconds(null)]")
    assert shown == ["–", "<0.1%", "99.5%", "100%", "–"]
    assert modules.evaluate("[M.niceSpan(0), M.niceSpan(9), M.niceCount(0), M.niceCount(151)]") == [0.1, 10, 10, 200]


def test_a_speed_is_written_by_the_rule_of_the_metrics(modules):
    ratios = [0.0, 0.004, 0.03, 0.0999, 0.94, 0.951, 0.97, 0.994, 0.996, 1.0, 1.004, 1.049, 9.96, 12.34]
    ratios += [number / 100 for number in range(1, 400)] + [number / 8 for number in range(80)]
    assert modules.evaluate("ratios => ratios.map(M.times)", ratios) == [formats.times(ratio) for ratio in ratios]


def test_shares_and_durations_are_written_by_the_rules_of_the_metrics(modules):
    shares = [0.0004, 0.9994, 0.9996, 0.99996, *(number / 800 for number in range(801))]
    assert modules.evaluate("shares => shares.map(M.percent)", shares) == [formats.percent(share) for share in shares]
    times = [number * 10.0**power for power in range(-7, 3) for number in (0, 1, 1.5, 2.25, 3.125, 4.996, 5.04, 9.995)]
    assert modules.evaluate("times => times.map(M.seconds)", times) == [formats.seconds(time) for time in times]
    sizes = [0, 499_999, 500_000, 134_515_008, 999_999_999, 10**9, 1_543_714_304, 7_615_616_512, 70 * 10**9]
    assert modules.evaluate("sizes => sizes.map(M.millions)", sizes) == [formats.parameters(size) for size in sizes]


def test_lanes_have_the_short_names_of_the_figures(modules):
    races = [(alike(lanes), ["Standard decoding", *names]) for lanes, names in ALIKE]
    branching = tuple(DraftToken(token(i), Verdict.UNTESTED, -1) for i in (1, 2))
    tree = named(("a", "x", "draft", 2, None, {}, "fixed"), rounds=[RoundDone("a", Round(0, 2, 2, branching, None))])
    for events, names in [*races, (tree, ["Draft, 2 nodes"])]:
        trace_in(modules, events)
        assert modules.evaluate("(M.nameLanes(T.lanes), T.lanes.map(M.shortName))") == names


def test_a_lane_says_whose_weights_it_runs_and_how_much_it_drafts(modules):
    lanes = [(4, "Small", {}, "fixed"), (4, None, {}, "adaptive-0.3"), (16, None, {}, "fixed", True)]
    trace_in(modules, alike(lanes))
    assert modules.evaluate("T.lanes.map(M.subtitle)") == [
        "no draft, tiny, 0 M",
        "Small, 0 M, k = 4",
        "k ≤ 4, adaptive-0.3",
        "16 nodes",
    ]


def test_a_source_is_told_in_the_words_of_the_header_and_one_it_lacks_by_its_name(modules):
    info = {"name": "lane", "draft": "x", "settings": {}, "sources": [{"name": "a", "label": "A", "meaning": "m"}]}
    told = modules.evaluate("info => ['a', 'x<y'].map(n => M.guessedBy(new M.Lane(info, 0).source(n)))", info)
    assert told == ["Guessed by A: m.", "Guessed by x<y."]


def test_whether_a_round_drafted_is_told_by_its_number_its_drafts_or_its_own_token(modules):
    rounds = [
        ({"drafted": 0, "drafts": [], "target": {"kind": "standard"}}, False),
        # a served lane knows how many, not which, or not even that
        ({"drafted": 3, "drafts": [], "target": {"kind": "correction"}}, True),
        ({"drafted": None, "drafts": [], "target": {"kind": "bonus"}}, True),
        ({"drafted": None, "drafts": [], "target": {"kind": "standard"}}, False),
        ({"drafted": None, "drafts": [], "target": None}, False),
    ]
    found = modules.evaluate("rounds => rounds.map(M.hasDraft)", [done for done, _ in rounds])
    assert found == [drafted for _, drafted in rounds]
