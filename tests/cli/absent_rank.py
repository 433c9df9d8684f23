#!/usr/bin/env python3
"""A rank that does its part of MPI, or only the beginning of it, and then nothing.

usage: absent_rank.py LIBRARY (begins | shares)
"""
import ctypes
import sys
import time

ADDRESS_BYTES = 168  # of struct cluster_team_address

library = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
library.assay_mpi_begin(*(ctypes.byref(ctypes.c_int()) for _ in range(4)))
if sys.argv[2] == "shares":
    library.assay_mpi_share(ctypes.create_string_buffer(ADDRESS_BYTES), ADDRESS_BYTES)
time.sleep(1000)
