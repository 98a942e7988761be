"""Record the gallery's runs again, with the real models: `make gallery` (some minutes on two cores)."""

from __future__ import annotations

import argparse
import gzip
import sys
from functools import cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from specviz.catalogue.gallery import Recording, recordings
from specviz.core.settings import Settings
from specviz.metrics import Tally, verdict_of
from specviz.metrics.words import sentence
from specviz.models import LanguageModel
from specviz.models.calibration import measure_curve
from specviz.races.lanes import make_lanes, parse_drafts
from specviz.races.prompts import make_prompt
from specviz.races.racing import race
from specviz.sources import TerminalBar
from specviz.sources.loader import load
from specviz.traces.jsonl import dumps


@cache
def model(source: str) -> LanguageModel:
    bar = TerminalBar()
    try:
        return load(source, progress=bar)
    finally:
        bar.close()


def record(recording: Recording) -> str:
    """Run it and write its trace; the verdicts in words."""
    target = model(recording.target)
    settings = Settings(**recording.settings)
    prompt = make_prompt(target, recording.prompt)
    lanes = make_lanes(target, parse_drafts(recording.drafts), settings, model)
    # measured before the race, the curve stands in the header and a replay can say at once why
    measure_curve(target, max(lane.settings.k for lane in lanes), len(prompt.ids) + settings.max_new_tokens)
    tally, lines = Tally(), []
    for event in race(lanes, prompt.ids, prompt=prompt.text, chat=prompt.chat):
        tally.add(event)
        lines.append(dumps(event))
    recording.path.parent.mkdir(parents=True, exist_ok=True)
    data = "".join(line + "\n" for line in lines).encode("utf-8", "surrogatepass")
    recording.path.write_bytes(gzip.compress(data, mtime=0))
    return "; ".join(f"{name}: {sentence(verdict_of(summary))}" for name, summary in tally.summaries().items())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="only these runs")
    names = parser.parse_args().names or list(recordings())
    for name in names:
        print(f"{name}: {record(recordings()[name])}", flush=True)


if __name__ == "__main__":
    main()
