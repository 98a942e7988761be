"""What travels to the browser is what happened: every token to the letter, every number to the digits promised."""

import json

import pytest
from support.synthetic_race import HOSTILE, TREE_ROUND, race_events
from support.wire_decoder import Decoder

from specviz.traces import (
    DraftToken,
    Kind,
    RaceStarted,
    Reason,
    Round,
    RoundDone,
    TargetToken,
    Token,
    Verdict,
    event_to_json,
)
from specviz.views.web.race_view.wire import Encoder, dumps


def test_events_survive_the_wire_up_to_the_digits_it_carries():
    for events in (race_events(120, (5,)), race_events(90, (2, 5, 8), temperature=1.0, hostile=True)):
        encoder, decoder = Encoder(), Decoder()
        batches = [encoder.batch(events[i : i + 7]) for i in range(0, len(events), 7)]
        arrived = [event for batch in batches for event in decoder.events(json.loads(dumps(batch)))]
        assert [coarse(event_to_json(event)) for event in arrived] == [coarse(event_to_json(event)) for event in events]


def coarse(value, name=""):
    """A trace's JSON with numbers cut as the wire cuts them."""
    if isinstance(value, dict):
        return {key: coarse(item, key) for key, item in value.items()}
    if isinstance(value, list):
        return [coarse(item, name) for item in value]
    if not isinstance(value, float):
        return value
    if name.endswith("_top"):
        return round(value * 1000) / 1000
    return round(value, 6) if name.endswith("_seconds") else float(f"{value:.6g}")


def test_a_text_travels_once_however_often_its_token_comes():
    encoder = Encoder()
    encoder.batch(race_events(1)[:1])
    rounds = [RoundDone("standard", standard(i, Token(7, " the", " the"))) for i in range(3)]
    first, second = encoder.batch(rounds[:2]), encoder.batch(rounds[2:])
    assert first["t"] == [7, " the"]
    assert "t" not in second
    assert second["e"] == [["r", 0, 2, 0, 0, [], [7, 2]]]


def standard(index: int, token: Token) -> Round:
    return Round(index, 0, 0, (), TargetToken(token, Kind.STANDARD))


def test_a_token_whose_text_is_not_its_piece_keeps_both():
    tokens = [Token(1, "", "<F0 9F>"), Token(2, "🙂", "<99 82>"), Token(3, None, None), Token(None, "x", None)]
    tokens += [Token(1, "other", "another piece"), Token(4, "t", None)]
    encoder, decoder = Encoder(), Decoder()
    start = race_events(1)[0]
    batch = encoder.batch([start, *(RoundDone("standard", standard(i, token)) for i, token in enumerate(tokens))])
    arrived = decoder.events(json.loads(dumps(batch)))
    assert [event.round.target.token for event in arrived[1:]] == tokens


def test_probabilities_and_times_keep_at_least_four_digits():
    draft = DraftToken(Token(1, "a", "a"), Verdict.REJECTED, None, None, 0.123456789, 3.14159e-7, 0.87654321)
    done = Round(0, 1, 1, (draft,), None, None, 12.3456789, 0.000123456, draft_passes=None, target_passes=0)
    encoder, decoder = Encoder(), Decoder()
    arrived = decoder.events(encoder.batch([race_events(1)[0], RoundDone("standard", done)]))[1].round
    got = arrived.drafts[0]
    assert (got.draft_prob, got.target_prob, got.draw) == (0.123457, 3.14159e-7, 0.876543)
    assert (arrived.start_seconds, arrived.draft_seconds) == (12.345679, 0.000123)
    assert (arrived.draft_passes, arrived.target_passes, arrived.target) == (None, 0, None)


def test_a_tree_round_keeps_parents_and_sources():
    encoder, decoder = Encoder(), Decoder()
    arrived = decoder.events(encoder.batch([race_events(1)[0], RoundDone("standard", TREE_ROUND)]))
    assert arrived[1].round == TREE_ROUND


def test_hostile_text_and_half_a_surrogate_pass_as_utf8():
    encoder = Encoder()
    rounds = [RoundDone("standard", standard(i, Token(i, t, t))) for i, t in enumerate((*HOSTILE, "\ud83d", "\u2028"))]
    text = dumps(encoder.batch([race_events(1)[0], *rounds]))
    assert json.loads(text.encode("utf-8"))["t"][1::2] == [*HOSTILE[: HOSTILE.index("\u2028") + 1], *rest_of_hostile()]


def rest_of_hostile():
    after = HOSTILE[HOSTILE.index("\u2028") + 1 :]
    return [*after, "\ud83d", "\u2028"]


def test_a_round_of_an_unknown_lane_still_arrives():
    event = RoundDone("nobody", standard(0, Token(1, "a", "a")))
    assert Decoder().events(Encoder().batch([event])) == [event]


def test_an_unknown_message_is_refused_in_words():
    with pytest.raises(ValueError, match="not known"):
        Decoder().events({"e": [["x", 1]]})


def test_two_lanes_of_500_tokens_fit_in_300_kilobytes():
    encoder = Encoder()
    events = race_events(500, (5,), temperature=1.0)
    size = sum(len(dumps(encoder.batch(events[i : i + 8]))) for i in range(0, len(events), 8))
    assert size < 300_000


def test_the_finish_keeps_its_reason():
    events = race_events(3, (2,), reason=Reason.EOS)
    encoder, decoder = Encoder(), Decoder()
    arrived = decoder.events(encoder.batch(events))
    assert isinstance(arrived[0], RaceStarted)
    assert [event.reason for event in arrived if hasattr(event, "reason")] == [Reason.EOS, Reason.EOS]
