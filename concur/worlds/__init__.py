"""Declared uncertainty, worlds as rows of numbers, and requirements that a world keeps or not."""

from concur.worlds._distributions import Choice, Distribution, Normal, Triangular, Uniform
from concur.worlds._requirements import Requirement
from concur.worlds._uncertainty import Quantity, Uncertainty
from concur.worlds._world import World

__all__ = [
    "Choice",
    "Distribution",
    "Normal",
    "Quantity",
    "Requirement",
    "Triangular",
    "Uncertainty",
    "Uniform",
    "World",
]
