"""Calls of compiled methods with as little in between as Python allows.

The general way to a method takes longer than what most methods compute: it binds arguments, looks
for expressions among them, finds the graph and waits for a lock. A direct function is written for
one method of one object. It takes vectors of floats into buffers of its own, evaluates, and copies
the results out. Whatever else comes goes the general way, which converts it or says what is wrong.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from concur.codegen._evaluator import OTHER, Evaluator

# Taking buffers from a list and putting them back is a lock at half the price: another thread finds
# the list empty, and goes the general way.
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
    """Write a function that calls the evaluators of a method directly; None if it has none.

    `arrays` is the number of its leading arguments that are arrays; evaluators are found by the
    arguments behind these.
    """
    apart = {key: evaluator.apart() for key, evaluator in evaluators.items()}
    kept = {key: evaluator for key, evaluator in apart.items() if evaluator is not None}
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
        "_ALL": slice(None),
        "_kept": kept,
    }
    exec(text, scope)
    made = scope["direct"]
    made.__defaults__ = inspect.unwrap(general).__defaults__
    return functools.wraps(general)(made)
