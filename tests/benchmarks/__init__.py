"""Speed beside peers, as ratios within one run: `python -m tests.benchmarks --help`.

The laws, the plant and the single functions are written over Pinocchio and MuJoCo as well as we
can; the tests here hold that they give the same numbers as ours, so that what is timed is the
same thing.
"""

import os

# Read when NumPy is loaded, which the modules of this package do: threads of the linear algebra
# cost more than they bring at these sizes.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"
