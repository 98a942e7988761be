"""Ctrl-C, a closed pipe and a terminal without UTF-8: the command ends cleanly and shows what there is."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from support.scripted import race as scripted_race
from support.scripted import script, standard
from support.tiny_checkpoints import save_llama

from specviz.traces import LaneFinished, RaceFinished, Reason, RoundDone, read_trace, write_trace
from specviz.views.terminal import main
from specviz.views.terminal.interrupt import Interrupt
from specviz.views.terminal.race_progress import Stage
from specviz.views.terminal.recorder import TraceWriter


@pytest.fixture(autouse=True)
def ctrl_c():
    """Ctrl-C is heard, also where the tests were started in the background, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    return save_llama(tmp_path_factory.mktemp("target"), context=2048)


def race_arguments(target, trace, tokens=40):
    fixed = ("--prompt", "the cat", "--dtype", "float32", "--ignore-eos", "--draft", "prompt-lookup", "--json")
    return ["race", "--target", target, "--trace", str(trace), "--max-new-tokens", str(tokens), *fixed]


def press_at(monkeypatch, number, times=1):
    """Ctrl-C as the `number`th round is written to the trace."""
    write, rounds = TraceWriter.write, []

    def pressing(self, event):
        write(self, event)
        rounds.extend([event] if isinstance(event, RoundDone) else [])
        if len(rounds) == number and isinstance(event, RoundDone):
            for _ in range(times):
                signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(TraceWriter, "write", pressing)


def ends(trace):
    events = list(read_trace(trace))
    assert events[-1] == RaceFinished(cancelled=True)
    return {event.lane: event.reason for event in events if isinstance(event, LaneFinished)}, events


@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_shows_what_there_is_and_leaves_a_whole_trace(target, tmp_path, capsys, monkeypatch, one_thread, times):
    press_at(monkeypatch, 7, times)
    assert main(race_arguments(target, tmp_path / "run.jsonl")) == 130
    out, err = capsys.readouterr()
    lanes = json.loads(out)["lanes"]
    reasons, events = ends(tmp_path / "run.jsonl")
    assert reasons == {"standard": Reason.CANCELLED, "prompt-lookup": Reason.CANCELLED}
    assert sum(isinstance(event, RoundDone) for event in events) == 7
    # a second press does not wait for the round that is being told to have been counted
    assert 7 - sum(lane["target_passes"] for lane in lanes.values()) in ({0} if times == 1 else {0, 1})
    assert {lane["finish_reason"] for lane in lanes.values()} == {"cancelled"} and "Measuring" not in err


def test_ctrl_c_while_the_curve_is_measured_keeps_the_finished_lanes(target, tmp_path, capsys, monkeypatch, one_thread):
    monkeypatch.setattr("specviz.races.racing.measure_curve", lambda *_: signal.raise_signal(signal.SIGINT))
    assert main(race_arguments(target, tmp_path / "run.jsonl", tokens=4)) == 130
    lanes = json.loads(capsys.readouterr().out)["lanes"]
    assert [lane["kept_tokens"] for lane in lanes.values()] == [4, 4]
    assert ends(tmp_path / "run.jsonl")[0] == {"standard": Reason.LENGTH, "prompt-lookup": Reason.LENGTH}


def test_ctrl_c_while_a_model_loads_ends_at_once(target, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(
        "specviz.catalogue.model_loader.CatalogueLoader.load", lambda *_, **__: signal.raise_signal(signal.SIGINT)
    )
    assert main(race_arguments(target, tmp_path / "run.jsonl")) == 130
    assert capsys.readouterr() == ("", "Stopped before the race began.\n")
    assert not (tmp_path / "run.jsonl").exists()


def test_ctrl_c_in_a_replay_shows_what_was_shown_so_far(tmp_path, capsys, monkeypatch):
    write_trace(tmp_path / "run.jsonl", scripted_race({"standard": standard(3)}))
    from specviz.views.terminal.commands import replay

    def sleep(seconds):
        if seconds > 0.1:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(replay.time, "sleep", sleep)
    monkeypatch.setattr(replay.time, "monotonic", lambda: 0.0)
    assert main(["replay", str(tmp_path / "run.jsonl"), "--speed", "1", "--json"]) == 130
    assert json.loads(capsys.readouterr().out)["lanes"]["standard"]["kept_tokens"] == 1


def test_the_first_press_waits_for_the_round_and_the_second_does_not():
    stage = Stage()
    before = signal.getsignal(signal.SIGINT)
    with Interrupt(stage) as interrupt:
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        assert not interrupt.asked
        stage.add(next(iter(scripted_race({"standard": standard(1)}))))
        signal.raise_signal(signal.SIGINT)
        assert interrupt.asked
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_a_race_broken_off_closes_its_running_lanes_only():
    stage = Stage()
    assert list(stage.endings()) == []
    events = list(scripted_race({"standard": standard(1), "x": script("Ab")}, reasons={"x": None}, finished=False))
    for event in events:
        stage.add(event)
    assert list(stage.endings()) == [LaneFinished("x", Reason.CANCELLED, None), RaceFinished(cancelled=True)]
    stage.add(RaceFinished())
    assert list(stage.endings()) == [] and not stage.cancelled


def command(*arguments, **options):
    environment = {**os.environ, "CPU_CORES": "1", **options.pop("env", {})}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, "-m", "specviz", *arguments], env=environment, **pipes, **options)


def test_a_real_ctrl_c_ends_a_real_race(target, tmp_path):
    trace = tmp_path / "run.jsonl"
    process = command(*race_arguments(target, trace, tokens=2000))
    deadline = time.monotonic() + 120
    while not (trace.exists() and trace.read_bytes().count(b"RoundDone") > 5):
        assert process.poll() is None and time.monotonic() < deadline, process.communicate()
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130 and b"Traceback" not in err
    assert json.loads(out)["lanes"]["standard"]["finish_reason"] == "cancelled"
    assert set(ends(trace)[0].values()) == {Reason.CANCELLED}


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_closed_pipe_is_no_traceback(tmp_path, form):
    write_trace(tmp_path / "run.jsonl", scripted_race({"standard": standard(3)}))
    process = command("replay", str(tmp_path / "run.jsonl"), *form)
    process.stdout.close()
    assert process.stderr.read() == b"" and process.wait() == 1


def test_a_terminal_without_utf8_gets_escapes(tmp_path):
    events = scripted_race({"standard – Übung": standard(1), "standard": standard(1)})
    write_trace(tmp_path / "run.jsonl", events)
    process = command("replay", str(tmp_path / "run.jsonl"), env={"PYTHONIOENCODING": "ascii"})
    out, err = process.communicate()
    assert process.returncode == 0 and err == b"" and b"== standard \\u2013 \\xdcbung ==" in out
