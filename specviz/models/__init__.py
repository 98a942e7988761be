"""Models: weights, contexts and the execution of a pass on this device."""

from specviz.models.context import Context
from specviz.models.language_model import LanguageModel

__all__ = ["Context", "LanguageModel"]
