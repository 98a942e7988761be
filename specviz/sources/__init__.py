"""Where weights come from.

`resolve` turns a source text into a Checkpoint, a local folder of safetensors, config and tokenizer; `load_checkpoint`
reads that folder into a transformers model on the CPU. Only safetensors and GGUF are read, never a pickle, and code
that comes with a model is never run. Knows nothing of devices, decoding, the catalogue or the page. Importing this
package loads neither torch nor transformers.

    embedded                 SmolLM2-135M-Instruct, from the wheel of a package (`wheels:smollm2-135m-instruct`)
    hub:ID[@revision]        a repository of the Hugging Face hub, or what its cache holds of it
    path:FOLDER              a folder in the format of transformers
    gguf:FILE                a GGUF file, converted once
    wheels:NAME              a pinned GGUF file that comes in the wheels of a package index, converted once

Any of them may end in #int4, #strict or #plain, which says how the weights are to be run.

Import levels; a module imports only from its right (a test enforces it):

    loader > resolve > wheels > gguf_file, hub > disk_cache, folder, reading >
    checkpoint, gguf_config, gguf_tokenizer, progress
"""

from specviz.sources.checkpoint import Checkpoint
from specviz.sources.progress import Progress, TerminalBar
from specviz.sources.reading import checkpoint_config, load_checkpoint
from specviz.sources.resolve import EMBEDDED, FORMS, USAGE, names_file, normalise, resolve, split_form

__all__ = [
    "EMBEDDED",
    "FORMS",
    "USAGE",
    "Checkpoint",
    "Progress",
    "TerminalBar",
    "checkpoint_config",
    "load_checkpoint",
    "names_file",
    "normalise",
    "resolve",
    "split_form",
]
