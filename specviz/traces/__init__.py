"""The trace: what happened in a race, token by token, as an immutable stream of events.

Everything meets here. The compute side writes events, the view side reads them, and a trace file is the stream
itself, one JSON object per line. Standard library only: importing this package loads no torch.

Import levels; a module imports only from its right (a test enforces it):

    jsonl > codec > records
"""

from specviz.traces.codec import event_from_json, event_to_json
from specviz.traces.jsonl import MAX_TRACE_BYTES, TraceWriter, parse_trace, read_trace, write_trace
from specviz.traces.records import (
    SCHEMA_VERSION,
    STANDARD,
    Alternative,
    Calibrated,
    DraftToken,
    Event,
    Header,
    Kind,
    LaneFinished,
    LaneInfo,
    LaneStarted,
    ModelInfo,
    RaceFinished,
    RaceStarted,
    Reason,
    Round,
    RoundDone,
    SourceInfo,
    TargetToken,
    Token,
    Verdict,
    VerifyCurve,
)

__all__ = [
    "MAX_TRACE_BYTES",
    "SCHEMA_VERSION",
    "STANDARD",
    "Alternative",
    "Calibrated",
    "DraftToken",
    "Event",
    "Header",
    "Kind",
    "LaneFinished",
    "LaneInfo",
    "LaneStarted",
    "ModelInfo",
    "RaceFinished",
    "RaceStarted",
    "Reason",
    "Round",
    "RoundDone",
    "SourceInfo",
    "TargetToken",
    "Token",
    "TraceWriter",
    "Verdict",
    "VerifyCurve",
    "event_from_json",
    "event_to_json",
    "parse_trace",
    "read_trace",
    "write_trace",
]
