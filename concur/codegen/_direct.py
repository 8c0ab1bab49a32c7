"""Direct calls of compiled methods, with as little Python in between as possible.

The general call of a method takes longer than most methods compute: it binds arguments, searches
them for expressions, finds the graph and waits for a lock. A direct function is generated for one
method of one object. It copies vectors of floats into its buffers, evaluates, and copies the
results out. Any other argument takes the general call, which converts or rejects it.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from concur.codegen._evaluator import ALL, OTHER, Evaluator

# Taking buffers from a list and returning them replaces a lock at half the cost: another thread
# finds the list empty and takes the general call.
_TEXT = """
def direct({given}):
    try:
        _free = {free}
        if not _free:
            return _general({given})
        _buffers = _free.pop()
    except _OTHER:
        return _general({given})
    try:
        {memories}, _trigger, _unsound, {readers} = _buffers
        {copies}
        _trigger()
        if not _unsound[0]:
            return {results}
    except _OTHER:
        pass
    finally:
        _free.append(_buffers)
    return _general({given})
"""


def direct(
    general: Callable[..., Any], arrays: int, evaluators: Mapping[tuple[Any, ...], Evaluator]
) -> Callable[..., Any] | None:
    """Generate a function that calls the evaluators of a method directly; None without evaluators.

    `arrays` is the number of leading arguments that are arrays; the arguments after them select the
    evaluator.
    """
    kept = {key: found.copy() for key, found in evaluators.items() if found.has_parts}
    parameters = list(inspect.signature(general).parameters)
    if not kept:
        return None
    ready: Any = {key: [evaluator.parts] for key, evaluator in kept.items()}
    memories = [f"_memory{i}" for i in range(arrays)]
    readers = [f"_read{i}" for i in range(len(next(iter(kept.values())).shapes))]
    names = ", ".join(parameters[arrays + 1 :])
    text = _TEXT.format(
        given=", ".join(parameters),
        free=f"_ready.get(({names},))" if names else "_ready",
        memories=", ".join(memories),
        readers=", ".join(readers),
        copies="; ".join(
            f"{m}[_ALL] = {p}" for m, p in zip(memories, parameters[1:], strict=False)
        ),
        results=", ".join(f"{reader}()" for reader in readers),
    )
    scope: dict[str, Any] = {
        "_general": general,
        "_ready": ready if names else ready[()],
        "_OTHER": (*OTHER, AttributeError),
        "_ALL": ALL,
        "_kept": kept,
    }
    exec(text, scope)
    made = scope["direct"]
    made.__defaults__ = inspect.unwrap(general).__defaults__
    return functools.wraps(general)(made)
