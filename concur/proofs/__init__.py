"""Proofs that a robot performs a task within its limits, for stated starts and imperfections."""

from concur.proofs._bound import Bound
from concur.proofs._expression import Expression
from concur.proofs._ground import Ground
from concur.proofs._passing import largest_factor
from concur.proofs._proof import TaskProof
from concur.proofs._prove import prove
from concur.proofs._quantity import Quantity
from concur.proofs._reading import Reading
from concur.proofs._recheck_document import LARGEST_PROOF, TASK_PROOF
from concur.proofs._sampled import Sampled, SampledBound, sample_statement
from concur.proofs._statement import Statement
from concur.proofs._stored import TaskDocument
from concur.proofs._task import prove_task
from concur.robot import Capsule, Clearance, Obstacle

__all__ = [
    "LARGEST_PROOF",
    "TASK_PROOF",
    "Bound",
    "Capsule",
    "Clearance",
    "Expression",
    "Ground",
    "Obstacle",
    "Quantity",
    "Reading",
    "Sampled",
    "SampledBound",
    "Statement",
    "TaskDocument",
    "TaskProof",
    "largest_factor",
    "prove",
    "prove_task",
    "sample_statement",
]
