"""Settings of every test: no screen, one thread per process, and property tests that repeat."""

import os

from hypothesis import settings

# Read when the libraries are loaded, so they are set before any test imports NumPy: threads of
# the linear algebra would fight with the parallel test processes.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"
os.environ["MPLBACKEND"] = "Agg"

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("search", deadline=None, max_examples=1000)
settings.load_profile("repeatable")  # `--hypothesis-profile=search` looks further
