"""The gallery's recordings are whole, carry their facts, and are what their titles promise."""

import pytest

from specviz.catalogue.catalog import load_catalog
from specviz.catalogue.gallery import recordings
from specviz.drafting import checked
from specviz.metrics import summarize
from specviz.traces import RaceFinished, RaceStarted

NAMES = list(recordings())


def test_there_are_at_least_six_and_every_kind_is_among_them():
    assert len(NAMES) >= 6
    assert {"code", "copying", "loss", "prose", "japanese", "sampling"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_is_whole_and_says_where_it_was_made(name):
    recording = recordings()[name]
    events = list(recording.events())
    header = events[0].header
    assert isinstance(events[0], RaceStarted) and events[-1] == RaceFinished()
    assert header.device_name and header.created and header.curve is not None
    assert header.prompt == recording.prompt
    assert [lane.name for lane in header.lanes] == ["standard", *map(str, recording.drafts)]
    for summary in summarize(events).values():
        assert summary.kept_tokens >= 10


@pytest.mark.parametrize("name", [name for name in NAMES if not recordings()[name].settings.get("temperature")])
def test_greedy_recordings_prove_the_output(name):
    drafts = [lane for lane in summarize(recordings()[name].events()).values() if not lane.standard]
    assert all(lane.identical_to_standard or lane.first_divergence is not None for lane in drafts)


def test_one_wins_one_loses_and_says_why():
    win, loss = (summarize(recordings()[name].events()).values() for name in ("copying", "loss"))
    assert max(lane.speedup for lane in win) > 1.5
    slow = [lane for lane in loss if not lane.standard][0]
    assert slow.speedup < 1 and slow.because is not None


def test_the_japanese_text_has_no_broken_characters():
    for summary in summarize(recordings()["japanese"].events()).values():
        assert "\ufffd" not in summary.text and any(ord(character) > 0x3000 for character in summary.text)


def test_every_draft_that_a_data_file_names_can_run():
    profiles = [profile for profile in load_catalog().hardware.values() if profile.draft]
    named = [draft for recording in recordings().values() for draft in recording.drafts]
    assert profiles and named
    for draft in (*named, *(profile.draft for profile in profiles)):
        assert checked(draft) == draft
