"""Declared uncertainty, worlds as rows of numbers, and requirements that a world keeps or not."""

from concur.worlds._requirements import Requirement
from concur.worlds._uncertainty import Quantity, Uncertainty, World

__all__ = ["Quantity", "Requirement", "Uncertainty", "World"]
