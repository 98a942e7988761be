"""Giving back the memory of a weight that has been copied, while the others of its file are still to come.

A checkpoint's tensors are views of one mapped file. The mapping goes when its last view does, and until then every page
that was read counts as this process's memory: twice the model, at the end of a conversion.
"""

from __future__ import annotations

import ctypes
import mmap
import sys

from torch import Tensor

_DONTNEED = 4


def release(tensor: Tensor) -> None:
    """Drop the pages of a CPU tensor that nobody will read again; where the system cannot, nothing happens."""
    if tensor.device.type != "cpu" or sys.platform != "linux":
        return
    first = -(-tensor.data_ptr() // mmap.PAGESIZE) * mmap.PAGESIZE  # whole pages inside the tensor, none beside it
    last = (tensor.data_ptr() + tensor.nbytes) // mmap.PAGESIZE * mmap.PAGESIZE
    if last > first:
        ctypes.CDLL(None).madvise(ctypes.c_void_p(first), ctypes.c_size_t(last - first), _DONTNEED)
