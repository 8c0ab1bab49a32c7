"""Quadratic programmes in exported C: a hole in the graph, and what fills it.

CasADi writes C for its solvers only against libraries that a controller does not have, or with
printing in them. So a graph that is to be exported has holes in place of its programmes: functions
that find nothing. When its C is written, the bodies of the holes call a solver of our own.
"""

from __future__ import annotations

import re
from pathlib import Path

import casadi as ca

_NAME = "programme_{size}_{rows}"
_HOLE = re.compile(
    r"(?P<head>/\* programme_(?P<size>\d+)_(?P<rows>\d+):[^\n]*\*/\n[^\n]*\{\n)"
    r".*?(?P<tail>\n  return 0;\n\}\n)",
    re.DOTALL,
)
_SOURCE = Path(__file__).with_name("c") / "programme.c"


def programme_hole(size: int, rows: int) -> ca.Function:
    """A place for a quadratic programme, as a function that finds nothing but NaN.

    Inputs h (size, size), symmetric positive definite, g (size,), a (rows, size), lba and uba
    (rows,), lbx and ubx (size,) of: least x h x / 2 + g x with lba <= a x <= uba and
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
    """Fill the holes of generated C; also returns the numbers of further work memory, `more`."""
    sizes = [(int(hole["size"]), int(hole["rows"])) for hole in _HOLE.finditer(text)]
    if not sizes:
        return text, 0

    def filled(hole: re.Match[str]) -> str:
        arguments = ", ".join([*(f"arg[{i}]" for i in range(7)), *(f"res[{i}]" for i in range(3))])
        call = f"programme({hole['size']}, {hole['rows']}, {arguments}, more);"
        return f"{hole['head']}  (void)iw;\n  (void)w;\n  {call}{hole['tail']}"

    source = _SOURCE.read_text(encoding="utf-8")
    source = source.replace("@SIZE@", str(max(n for n, _ in sizes)))
    work = max(3 * n * n + n * (n + m) + 8 * n for n, m in sizes)
    return source + _HOLE.sub(filled, text), work
