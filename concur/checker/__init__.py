"""The proof checker: verification of files that others wrote, and of the tasks that they prove."""

from concur.checker._confirm import confirm
from concur.checker._receipts import confirmed
from concur.checker._recheck import is_task_proof, recheck
from concur.checker._stored import StoredTaskProof, load_task_proof

__all__ = ["StoredTaskProof", "confirm", "confirmed", "is_task_proof", "load_task_proof", "recheck"]
