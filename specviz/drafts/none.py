"""No draft: standard decoding, one target pass for one token."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from specviz.drafting.strategy import NOTHING, Drafter, Proposal, Run, Strategy


@dataclass(frozen=True)
class NoDraft(Strategy):
    name: ClassVar[str] = "none"
    label: ClassVar[str] = "Standard"
    help: ClassVar[str] = "The target alone."
    drafts: ClassVar[bool] = False

    def start(self, run: Run) -> Drafter:
        return _Silent()


class _Silent(Drafter):
    def propose(self, k: int) -> Proposal:
        return NOTHING
