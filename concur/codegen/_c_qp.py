"""Quadratic programs (QPs) in exported C: placeholders in the graph, filled with our own solver.

CasADi writes C for its solvers only with libraries that a controller lacks, or with printing. A
graph for export therefore contains placeholder functions ("holes"), which return NaN. When its C is
written, calls of our own solver replace their bodies.
"""

from __future__ import annotations

import re
from pathlib import Path

import casadi as ca

_NAME = "qp_{size}_{rows}"
_HOLE = re.compile(
    r"(?P<head>/\* qp_(?P<size>\d+)_(?P<rows>\d+):[^\n]*\*/\n[^\n]*\{\n)"
    r".*?(?P<tail>\n  return 0;\n\}\n)",
    re.DOTALL,
)
_SOURCE = Path(__file__).with_name("c") / "qp.c"


def qp_hole(size: int, rows: int) -> ca.Function:
    """Make the placeholder of a quadratic program, a function that returns NaN.

    Parameters
    ----------
    size, rows : int
        Numbers of unknowns and of inequalities.

    Returns
    -------
    casadi.Function
        Placeholder, which exported C replaces by a solver.

    Notes
    -----
    Inputs h (size, size), symmetric positive definite, g (size,), a (rows, size), lba and uba
    (rows,), lbx and ubx (size,). The QP minimises x h x / 2 + g x with lba <= a x <= uba and
    lbx <= x <= ubx. Outputs x (size,) and the multipliers lam_a (rows,) and lam_x (size,),
    positive at upper bounds.
    """
    shapes = {
        "h": (size, size),
        "g": (size, 1),
        "a": (rows, size),
        "lba": (rows, 1),
        "uba": (rows, 1),
        "lbx": (size, 1),
        "ubx": (size, 1),
    }
    results = {"x": size, "lam_a": rows, "lam_x": size}
    return ca.Function(
        _NAME.format(size=size, rows=rows),
        [ca.SX.sym(name, *shape) for name, shape in shapes.items()],
        [ca.SX(ca.DM.nan(length, 1)) for length in results.values()],
        list(shapes),
        list(results),
        {"never_inline": True},
    )


def fill_holes(text: str) -> tuple[str, int]:
    """Fill the holes of generated C; also return the length of the work memory `more`."""
    sizes = [(int(hole["size"]), int(hole["rows"])) for hole in _HOLE.finditer(text)]
    if not sizes:
        return text, 0

    def filled(hole: re.Match[str]) -> str:
        arguments = ", ".join([*(f"arg[{i}]" for i in range(7)), *(f"res[{i}]" for i in range(3))])
        call = f"qp({hole['size']}, {hole['rows']}, {arguments}, more);"
        return f"{hole['head']}  (void)iw;\n  (void)w;\n  {call}{hole['tail']}"

    source = _SOURCE.read_text(encoding="utf-8")
    source = source.replace("@SIZE@", str(max(n for n, _ in sizes)))
    work = max(3 * n * n + n * (n + m) + 8 * n for n, m in sizes)
    return source + _HOLE.sub(filled, text), work
