"""References made to fit outputs: wrapped if they are plain functions, refused if they differ."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from concur.control import references
from concur.control._output import Output
from concur.control._sample import ReferenceSample
from concur.control.references import Reference


def fitting(
    reference: Reference | Callable[[float], ReferenceSample],
    outputs: Sequence[Output],
    where: str,
) -> Reference:
    """Take a reference for some outputs.

    Parameters
    ----------
    reference : Reference or callable
        A reference, or a function of time that returns samples.
    outputs : sequence of Output
        The outputs it is for.
    where : str
        Place named in errors.

    Returns
    -------
    Reference
        The reference.

    Raises
    ------
    ConcurError
        If it is neither, or does not fit the outputs.
    """
    sizes = sum(output.pose_size for output in outputs), sum(output.dim for output in outputs)
    demand = references.as_reference(reference, *sizes)
    references.check(demand, outputs, where)
    return demand
