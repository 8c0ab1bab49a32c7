"""Quadratic programs in graphs: CasADi's DAQP when interpreted, our own solver in all C.

CasADi writes C for its solvers only with libraries that a controller lacks. The C of a function
with programs therefore gets our own solver in place of the functions that call DAQP.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import casadi as ca

OPTIONS = {"error_on_fail": False, "daqp": {"primal_tol": 1e-12, "dual_tol": 1e-12}}
NEAR = 1e-6
"""Relative error of the conditions of an optimum up to which an interpreted program is solved."""

SOURCE = Path(__file__).with_name("c") / "qp.c"
_LINES = re.DOTALL | re.MULTILINE
_PROGRAM = re.compile(
    r"^(?P<head>/\* qp_(?P<size>\d+)_(?P<rows>\d+):[^\n]*\*/\n[^\n]*\{\n)"
    r".*?(?P<tail>\n  return 0;\n\}\n)",
    _LINES,
)
_DAQP = re.compile(
    r"^#include <daqp[^\n]*\n"
    r"|^(?:int|void) casadi_daqp_\w+\([^{;]*\) \{(?:[^\n]*\}|.*?^\})\n"
    r"|^struct casadi_daqp_\w+ \{.*?^\};\n",
    _LINES,
)
_COUNTERS = re.compile(
    r"^void casadi_f\d+_(?:in|de)cref\(void\) \{.*?^\}\n|^  casadi_f\d+_(?:in|de)cref\(\);\n",
    _LINES,
)
_INNER = re.compile(r"^/\* daqp_\w+:[^\n]*\*/\nstatic int (casadi_f\d+)\(.*?^\}\n", _LINES)


@cache
def quadratic_program(size: int, rows: int) -> ca.Function:
    """Make a quadratic program: the least change of a point that keeps its limits.

    Parameters
    ----------
    size, rows : int
        Numbers of unknowns and of rows.

    Returns
    -------
    casadi.Function
        Over MX. Inputs h (size, size), symmetric positive definite; a (rows, size); low and high
        (rows,), which must not cross; slack (rows,), zero or more. It minimises
        ``x h x / 2 + t^2 / 2`` with ``low <= a x + sqrt(slack) t <= high``: rows with slack zero
        are kept, others as far as they can be, for a price of 1 / (2 slack) per square of what
        they miss. Kept rows must be linearly independent. Outputs x (size,); the multipliers
        lam (rows,), positive at upper limits; and solved: 1, or 0 if the solver stopped early,
        at its bound of steps or for lack of a solution: x then misses some rows.
    """
    shapes = {"h": (size, size), "a": (rows, size), "low": (rows, 1), "high": (rows, 1)}
    h, a, low, high = (ca.MX.sym(name, *shape) for name, shape in shapes.items())
    slack, both = ca.MX.sym("slack", rows), size + rows
    wide = {"h": ca.Sparsity.dense(both, both), "a": ca.Sparsity.dense(rows, both)}
    solve = ca.conic(f"daqp_{size}_{rows}", "daqp", wide, OPTIONS)
    found = solve(
        h=ca.diagcat(h, ca.MX.eye(rows)),
        g=ca.MX(both, 1),
        a=ca.horzcat(a, ca.diag(ca.sqrt(slack))),
        lba=low,
        uba=high,
        lbx=-ca.inf,
        ubx=ca.inf,
    )
    # Where DAQP stops early it leaves undefined numbers behind, such as those of another program.
    x, t, force = found["x"][:size], found["x"][size:], found["lam_a"]
    reached, pulled = a @ x + ca.sqrt(slack) * t, ca.horzcat(h @ x, a.T @ force)
    below, above = NEAR * (1 + ca.fabs(low)), NEAR * (1 + ca.fabs(high))
    rough = NEAR * (1 + ca.mmax(ca.fabs(pulled)))
    near = [
        low - below <= reached,
        reached <= high + above,
        ca.logic_or(force <= 0.0, reached >= high - above),
        ca.logic_or(force >= 0.0, reached <= low + below),
        ca.fabs(ca.sum2(pulled)) <= rough,
        ca.fabs(t + ca.sqrt(slack) * force) <= rough,
    ]
    solved = ca.mmin(ca.vertcat(*near))
    results = [ca.if_else(solved, found[name], 0.0) for name in ("x", "lam_a")]
    results = [results[0][:size], results[1], solved]
    names = [*shapes, "slack"], ["x", "lam", "solved"]
    given, name = [h, a, low, high, slack], f"qp_{size}_{rows}"
    return ca.Function(name, given, results, *names, {"never_inline": True})


def with_own_solver(text: str, memory: str | None = None) -> tuple[str, int]:
    """Put our own solver into generated C in place of CasADi's.

    Parameters
    ----------
    text : str
        C as CasADi writes it.
    memory : str, optional
        Name of the solver's work memory in the calls; default an array in each.

    Returns
    -------
    str
        The text.
    int
        Length of the work memory; 0 without programs.
    """
    sizes = [(int(p["size"]), int(p["rows"])) for p in _PROGRAM.finditer(text)]
    if not sizes:
        return text, 0

    def filled(program: re.Match[str]) -> str:
        n, m = int(program["size"]), int(program["rows"])
        arguments = ", ".join([*(f"arg[{i}]" for i in range(5)), "res[0]", "res[1]"])
        own = "" if memory else f"  casadi_real work[{_length(n, m)}];\n"
        call = f"{own}  const int solved = qp({n}, {m}, {arguments}, {memory or 'work'});"
        end = f"\n  if (res[2]) *res[2] = solved;{program['tail']}"
        return f"{program['head']}  (void)iw;\n  (void)w;\n{call}{end}"

    text = _COUNTERS.sub("", _DAQP.sub("", _PROGRAM.sub(filled, text)))
    for inner in dict.fromkeys(found[1] for found in _INNER.finditer(text)):
        memory_of = rf"^(?:static )?int {inner}_\w+\(.*?^\}}\n|^void {inner}_\w+\(.*?^\}}\n"
        text = re.sub(rf"{memory_of}|^static [^\n]*{inner}_[^\n]*;\n", "", text, flags=_LINES)
    text = _INNER.sub("", text)
    source = SOURCE.read_text(encoding="utf-8").replace("real_t", "casadi_real")
    source = source.replace("@ROWS@", str(max(rows for _, rows in sizes)))
    start = _PROGRAM.search(text)
    assert start is not None
    return text[: start.start()] + source + text[start.start() :], max(
        _length(n, m) for n, m in sizes
    )


def _length(n: int, m: int) -> int:
    """Length of the work memory of a program."""
    return n * n + 2 * n * m + m * m + n + 5 * m
