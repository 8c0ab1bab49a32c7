"""Version of the package, and the name under which it is installed."""

__version__ = "0.2.0"

DISTRIBUTION = "concur-control"
"""Name on the index of packages, where `concur` is another project."""


def install_command(extra: str) -> str:
    """Command that installs the package with an extra.

    Parameters
    ----------
    extra : str
        Name of the extra.

    Returns
    -------
    str
        For a shell.
    """
    return f'pip install "{DISTRIBUTION}[{extra}]"'
