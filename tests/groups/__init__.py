"""Lie groups against matrix exponentials, SciPy rotations and differences."""
