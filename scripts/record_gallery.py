"""Record the gallery's runs again, with the real models: `make gallery` (some minutes on two cores)."""

from __future__ import annotations

import argparse
import contextlib
import gzip
import sys
from functools import cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from specviz.catalogue.gallery import Recording, recordings
from specviz.catalogue.model_loader import catalogue_loader
from specviz.core.settings import Settings
from specviz.drafting import checked
from specviz.metrics import Tally, verdict_of
from specviz.metrics.words import sentence
from specviz.models import LanguageModel
from specviz.models.calibration import measure_curve
from specviz.races.request import RaceRequest
from specviz.sources import TerminalBar
from specviz.traces.jsonl import dumps


@cache
def model(source: str) -> LanguageModel:
    with contextlib.closing(TerminalBar()) as bar:
        return catalogue_loader().load(source, bar)


def record(recording: Recording) -> str:
    """Run it and write its trace; returns the verdicts in words."""
    drafts = tuple(map(checked, recording.drafts))
    request = RaceRequest(recording.prompt, drafts, recording.target, Settings(**recording.settings))
    target = model(request.target)
    # measured before the race, the curve is in the header and a replay can say at once why
    measure_curve(target, request.k_max, len(request.prompt_for(target).ids) + request.max_new_tokens)
    tally, lines = Tally(), []
    for event in request.events(model):
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
