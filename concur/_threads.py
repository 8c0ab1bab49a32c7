"""Threads of linear algebra."""

LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Environment variables that limit them, read when NumPy is imported: one thread is faster on
matrices as small as those of robots."""
