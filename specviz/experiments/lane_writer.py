"""Our side of a comparison: a lane's decoding as a Writer."""

from __future__ import annotations

import time
from collections.abc import Sequence

from specviz.core.settings import Settings
from specviz.decoding.engine import decode
from specviz.drafting import Strategy
from specviz.experiments.reply import Reply, Writer
from specviz.models import LanguageModel


def lane_writer(target: LanguageModel, strategy: Strategy, k: int) -> Writer:
    """Greedy decoding by this strategy. Timed from outside, as the other side is; what only explains is left out."""

    def write(prompt_ids: Sequence[int], tokens: int) -> Reply:
        settings = Settings(k=k, max_new_tokens=tokens, ignore_eos=True, telemetry=False)
        ids: list[int] = []
        passes = first_tokens = 0
        first_seconds = 0.0
        start = time.perf_counter()
        for round_ in decode(target, strategy, prompt_ids, settings):
            ids.extend(token.id for token in round_.kept)
            passes += 1
            if passes == 1:
                first_seconds, first_tokens = time.perf_counter() - start, len(ids)
        return Reply(tuple(ids), time.perf_counter() - start, first_seconds, first_tokens, passes)

    return write
