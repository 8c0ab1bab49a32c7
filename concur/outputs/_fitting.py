"""References made to fit outputs: wrapped if they are plain functions, refused if they differ."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from concur.outputs import references
from concur.outputs._output import Output
from concur.outputs._sample import ReferenceSample
from concur.outputs.references import Reference


def reference_for(
    reference: Reference | Callable[[float], ReferenceSample] | None,
    outputs: Sequence[Output],
    where: str,
) -> Reference:
    """Take a reference for outputs.

    Parameters
    ----------
    reference : Reference, callable or None
        A reference, or a function of time that returns samples; None without outputs.
    outputs : sequence of Output
        The outputs.
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
    if reference is None and not outputs:
        return references.nothing()
    sizes = sum(output.pose_size for output in outputs), sum(output.dim for output in outputs)
    found = references.as_reference(reference, *sizes)
    references.check(found, outputs, where)
    return found
