"""What the browser keeps of a run, a trace file and a saved page, tells the same as the run itself."""

import json

import pytest
from support.deno_kit import Modules
from support.wire_decoder import Decoder

from specviz.catalogue.gallery import recordings
from specviz.core.errors import TraceError
from specviz.traces import event_to_json, parse_trace
from specviz.views.report import race_report
from specviz.views.web.gallery_events import opened_trace
from specviz.views.web.race_view.race_stream import recorded

KEPT = """async value => {
  const trace = new M.Trace();
  const take = message => message.event ? trace.append(message.event) : (trace.report = message.report);
  const receiver = new M.Receiver({ onRun() {}, onMessages: all => all.forEach(take), resync() {} });
  receiver.accept(value);
  return [M.toJsonl(trace), M.toHtml(trace, 'SCRIPT')];
}"""


@pytest.fixture(scope="module")
def modules():
    modules = Modules()
    yield modules
    modules.close()


def told(report):
    return json.loads(json.dumps(report.as_json()))


@pytest.mark.parametrize("name", list(recordings()))
def test_a_run_its_file_and_its_saved_page_tell_the_same(modules, name):
    events = list(recordings()[name].events())
    report = told(race_report(events))
    file, page = modules.evaluate(KEPT, recorded(events, race_report(events)))
    data = json.loads(page.split('id="trace">')[1].split("</script>")[0])
    assert data["report"] == report
    # times travel in microseconds: no number that people read may change by that
    assert told(race_report(list(parse_trace(file)))) == report
    _, value = opened_trace({"name": "race.jsonl", "text": file})
    batch = json.loads(value["ring"][1].split("|", 1)[1])
    assert batch["e"][-1] == ["s", report]
    assert len(Decoder().events(batch)) == len(events) == len(data["saved"])


@pytest.mark.parametrize(
    "data", [None, "text", {}, {"name": "x"}, {"name": 1, "text": "a"}, {"name": "x", "text": None}]
)
def test_what_is_no_file_is_refused_in_words(data):
    with pytest.raises(TraceError, match="No trace file was sent"):
        opened_trace(data)


def test_a_trace_without_lanes_is_refused_in_words():
    start = event_to_json(next(recordings()["loss"].events()))
    start["header"]["lanes"] = []
    with pytest.raises(TraceError, match="races of 1 to 16 lanes; this one has 0"):
        opened_trace({"name": "x", "text": json.dumps(start)})
