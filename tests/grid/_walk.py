"""Cells of the grid: each works, or raises an error of this package that says why not."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import casadi as ca

from concur.errors import ConcurError
from concur.simulation import RealPlant
from tests.grid._calls import (
    IMPERFECTIONS,
    LAWS,
    OF_LAWS,
    OF_SYSTEMS,
    REFERENCES,
    Setup,
    reference,
    simulated,
)
from tests.grid._systems import CASES, SHIPPED

SLOW = frozenset(
    """certified_gains; plot robot; certify; certify thesis; recheck;
    export c single; export c reference; export fmu 2; save_figures; Run repr; Run animate;
    Run plot; plot_loop; operating_bounds; linear_loop model; loop_response; symmetry of model;
    singularities path; reach; symmetry; audit along; compare; export fmu""".replace(
        "\n", " "
    ).split("; ")
)
"""Calls of more than a tenth of a second. They are made for `DRAWN` laws only."""

DRAWN = ("servo", "pd", "brake_state", "passive")


def is_slow(name: str) -> bool:
    """Whether a cell takes more than a tenth of a second."""
    return name.rpartition(" | ")[2] in SLOW


Cell = tuple[str, Callable[[], Any]]


def of_system(name: str, folder: Path) -> Iterator[Cell]:
    """Calls that need no law."""
    setup = Setup((CASES | SHIPPED)[name], "servo", folder)
    for call, act in OF_SYSTEMS.items():
        yield f"{name} | {call}", partial(act, setup)


def of_law(name: str, law: str, folder: Path) -> Iterator[Cell]:
    """Calls with a law, and its simulations with each imperfection."""
    setup = Setup((CASES | SHIPPED)[name], law, folder)
    yield f"{name} | {law}", partial(getattr, setup, "law")
    with contextlib.suppress(Exception):
        setup.law  # noqa: B018 - the cell before shows what is wrong
        for call, act in OF_LAWS.items():
            if call not in SLOW or law in DRAWN:
                yield f"{name} | {law} | {call}", partial(act, setup)
        for kind in IMPERFECTIONS:
            yield f"{name} | {law} | {kind}", partial(_imperfect, setup, kind)


def of_references(name: str, folder: Path) -> Iterator[Cell]:
    """The servo on each reference."""
    for kind in REFERENCES:
        setup = Setup((CASES | SHIPPED)[name], "servo", folder)
        yield f"{name} | reference {kind}", partial(_followed, setup, kind)


def cells(name: str, folder: Path) -> Iterator[Cell]:
    """All cells of a system."""
    yield from of_system(name, folder)
    for law in LAWS:
        yield from of_law(name, law, folder)
    yield from of_references(name, folder)


def _imperfect(setup: Setup, kind: str) -> Any:
    return simulated(setup, plant=RealPlant(imperfections=IMPERFECTIONS[kind](setup.system)))


def _followed(setup: Setup, kind: str) -> Any:
    path = setup.__dict__["reference"] = reference(kind, setup)
    if hasattr(path, "graph"):
        path(0.5), path.graph(), repr(path)
    simulated(setup)
    setup.law.compile(path, interpreted=True)(0.0, setup.case.q0, setup.w0)
    setup.law.feasibility(path, 0.01, setup.case.q0)


def fault(act: Callable[[], Any]) -> str:
    """What is wrong with how a cell ends; empty if nothing is."""
    try:
        act()
    except ConcurError as error:
        text = str(error)
        return "" if text.isprintable() and len(text) < 1000 else f"a message {text[:200]!r}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:400]
    return ""


@contextlib.contextmanager
def slices() -> Iterator[list[str]]:
    """Shapes of parts of vectors of one entry that came out as rows, by CasADi's type."""
    found, kinds = list[str](), (ca.SX, ca.MX)
    before = [kind.__getitem__ for kind in kinds]

    def watched(get: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        def item(vector: Any, key: Any) -> Any:
            result = get(vector, key)
            if not isinstance(key, tuple) and result.shape[0] == 1 and result.shape[1] != 1:
                found.append(
                    f"{type(vector).__name__}{vector.shape}[{key}] of shape {result.shape}"
                )
            return result

        return item

    try:
        for kind, get in zip(kinds, before, strict=True):
            kind.__getitem__ = watched(get)
        yield found
    finally:
        for kind, get in zip(kinds, before, strict=True):
            kind.__getitem__ = get
