"""The contract: what the package does, through its public names alone.

It was written before the house was rebuilt, and passed then. Physics is compared with Pinocchio,
KKT systems and SciPy, never with frozen numbers; frozen are only lengths of graphs, answers of the
commands and inputs that are refused. `python -m tests.contract` writes the frozen tables again.
"""
