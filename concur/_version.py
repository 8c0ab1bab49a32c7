"""Version of the package, and the name under which it is installed."""

__version__ = "0.2.0"

DISTRIBUTION = "concur-control"
"""Name on the index of packages, where `concur` is another project."""
