"""Threads of linear algebra."""

LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Environment variables that limit them, read when NumPy is imported: on matrices as small as those
of robots, several threads take up to three times as long as one."""
