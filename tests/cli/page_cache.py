"""Which pages of a file are in memory."""
import ctypes
import mmap
import os

LIBC = ctypes.CDLL(None, use_errno=True)
PAGE = mmap.PAGESIZE


def drop(path):
    """Let the kernel forget the file's pages. Where it cannot (tmpfs), they stay."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def resident(path):
    """A byte for each page: 1 where it is in memory."""
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as data:
        pages = (ctypes.c_ubyte * ((len(data) + PAGE - 1) // PAGE))()
        first = ctypes.c_char.from_buffer(data)
        failed = LIBC.mincore(ctypes.c_void_p(ctypes.addressof(first)), ctypes.c_size_t(len(data)), pages)
        del first
        if failed:
            raise OSError(ctypes.get_errno(), "mincore")
        return bytes(page & 1 for page in pages)
