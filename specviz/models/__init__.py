"""Models: weights, contexts and the execution of a pass on this device.

Import levels; a module imports only from its right (a test enforces it):

    calibration > language_model > native, plain, strict > context, fixed_width, reference, shallow > checks,
    config_facts, device, end_tokens, kv_cache, linear, masks, native_family, release, runnable, stopwatch
"""

from specviz.models.context import Context
from specviz.models.language_model import LanguageModel

__all__ = ["Context", "LanguageModel"]
