"""Declared uncertainty, worlds as rows of numbers, and requirements that a world keeps or not."""

from concur.worlds._distributions import Choice, Distribution, Normal, Triangular, Uniform
from concur.worlds._uncertainty import Quantity, Uncertainty

__all__ = [
    "Choice",
    "Distribution",
    "Normal",
    "Quantity",
    "Triangular",
    "Uncertainty",
    "Uniform",
]
