"""Proofs that a robot performs a task within its limits, for stated starts and imperfections."""
