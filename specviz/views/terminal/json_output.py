"""The numbers of a race as one JSON object, for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict

from specviz.metrics import Summary
from specviz.traces import Header

LANE_FIELDS = (
    "text",
    "token_ids",
    "finish_reason",
    "kept_tokens",
    "target_passes",
    "draft_passes",
    "drafted",
    "accepted",
    "tested",
    "alpha",
    "tau",
    "c",
    "coverage",
    "mean_drafted",
    "mean_depth",
    "sources",
    "seconds",
    "prefill_seconds",
    "first_token_seconds",
    "tokens_per_second",
    "speedup",
    "identical_to_standard",
    "first_divergence",
)


def to_json(header: Header, summaries: Mapping[str, Summary]) -> str:
    """One line of ASCII: lanes by name, the settings shared by all lanes, device and dtype."""
    lanes = {name: {field: getattr(summary, field) for field in LANE_FIELDS} for name, summary in summaries.items()}
    settings = asdict(header.lanes[0].settings) if header.lanes else {}
    value = {"lanes": lanes, "settings": settings, "device": header.device, "dtype": header.dtype}
    return json.dumps(value, allow_nan=False, default=asdict)
