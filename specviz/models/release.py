"""Release the memory of a weight that has been copied while other weights of its file are still to be read.

A checkpoint's tensors are views of one mapped file, which stays mapped until its last view is gone. Until then every
page that was read counts as memory of this process: twice the model at the end of a conversion.
"""

from __future__ import annotations

import ctypes
import mmap
import sys

from torch import Tensor

_DONTNEED = 4


def release(tensor: Tensor) -> None:
    """Drop the pages of a CPU tensor that nobody will read again. Does nothing where the system cannot do so."""
    if tensor.device.type != "cpu" or sys.platform != "linux":
        return
    first = -(-tensor.data_ptr() // mmap.PAGESIZE) * mmap.PAGESIZE  # only pages that lie inside the tensor
    last = (tensor.data_ptr() + tensor.nbytes) // mmap.PAGESIZE * mmap.PAGESIZE
    if last > first:
        ctypes.CDLL(None).madvise(ctypes.c_void_p(first), ctypes.c_size_t(last - first), _DONTNEED)
