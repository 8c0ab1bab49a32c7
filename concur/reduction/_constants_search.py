"""Look for constants of motion among combinations of momenta with constant coefficients.

Rates at random states are the rows of a matrix whose null space holds the coefficients.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from concur.codegen import Array, Vector
from concur.reduction._phase_space import ROUNDING, SAMPLES, PhaseSpace


def search(space: PhaseSpace) -> dict[str, ca.Function]:
    """Combinations (q, p) -> h that are constant at random states; those without controls first."""
    q, p = ca.SX.sym("q", space.nq), ca.SX.sym("p", space.ns)
    terms = {name: ca.SX(term) for name, term in space.momenta(q, p).items()}
    terms |= {space.coordinate_names[i]: q[i] for i in space.lines}
    values, rates, pushes, sizes = _sampled(space, q, p, terms)
    names = [name for name, used in zip(terms, _independent(values), strict=True) if used]
    columns = [list(terms).index(name) for name in names]
    rates, pushes, sizes = rates[:, columns], pushes[:, columns], sizes[columns]
    # Undisturbed by the controls first; what they change is worth knowing too.
    found = list(_echelon(_null_space(np.vstack([rates, pushes])), sizes))
    for row in _echelon(_null_space(rates), sizes):
        together = np.array([*found, row]) * sizes
        together /= np.linalg.norm(together, axis=1, keepdims=True)
        if np.linalg.matrix_rank(together, rtol=1e-6) > len(found):
            found.append(row)
    functions = {}
    for row in found:
        parts = [(float(c), name) for c, name in zip(row, names, strict=True) if c]
        total = sum((c * terms[name] for c, name in parts), ca.SX(0))
        functions[_written(parts)] = ca.Function("constant", [q, p], [ca.densify(total)])
    return functions


def _sampled(
    space: PhaseSpace, q: Vector, p: Vector, terms: dict[str, Array]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Values at states, rates and what the controls do over the size of each term, sizes."""
    slope, s, form, inputs = space.slopes(q, p)
    results = []
    for term in terms.values():
        along_q, along_p = space.differential(term, q, p)
        rate = ca.dot(along_q, s) + ca.dot(along_p, form @ s - slope)
        size = ca.dot(ca.fabs(along_q), ca.fabs(s)) + ca.dot(
            ca.fabs(along_p), ca.fabs(slope) + ca.fabs(form) @ ca.fabs(s) + ca.fabs(p)
        )
        results.append(ca.vertcat(term, rate, size, inputs.T @ along_p))
    table = ca.Function("terms", [q, p], [ca.densify(ca.horzcat(*results))], {"cse": True})
    states = space.states(33, 2 * len(terms) + SAMPLES)
    sampled = np.array([np.array(table(*state)) for state in states])
    sizes = sampled[:, 2].max(axis=0)
    sizes = np.where(sizes > 0.0, sizes, 1.0)
    pushes = sampled[:, 3:].reshape(-1, len(terms)) / sizes
    pushes /= np.max(np.abs(pushes), initial=1e-300)
    return sampled[:, 0], sampled[:, 1] / sizes, pushes, sizes


def _independent(values: np.ndarray) -> list[bool]:
    """Terms that are no combination of the ones before them."""
    kept: list[bool] = []
    basis = np.zeros((len(values), 0))
    for column in values.T:
        size = np.linalg.norm(column)
        rest = column - basis @ (basis.T @ column)
        rest -= basis @ (basis.T @ rest)
        left = float(np.linalg.norm(rest))
        kept.append(left > ROUNDING * float(size))
        if kept[-1]:
            basis = np.column_stack([basis, rest / left])
    return kept


def _null_space(rows: np.ndarray) -> np.ndarray:
    """Rows that span what a matrix with columns of size one takes to zero."""
    _, sizes, right = np.linalg.svd(rows)
    large = int(np.sum(sizes > 0.1 * ROUNDING * np.sqrt(len(rows))))
    return np.asarray(right[large:])


def _echelon(rows: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Echelon form of coefficients of scaled terms, then of the terms themselves, leading 1."""
    rows = rows.copy()
    done = 0
    for column in range(rows.shape[1]):
        if done == len(rows):
            break
        best = done + int(np.argmax(np.abs(rows[done:, column])))
        if abs(rows[best, column]) < 1e-6:
            rows[done:, column] = 0.0
            continue
        rows[[done, best]] = rows[[best, done]]
        rows[done] /= rows[done, column]
        others = np.arange(len(rows)) != done
        rows[others] -= np.outer(rows[others, column], rows[done])
        done += 1
    rows[np.abs(rows) < 1e-8] = 0.0
    plain = rows / sizes
    leading = np.array([row[np.flatnonzero(row)[0]] for row in plain])
    plain /= leading[:, None]
    near = np.abs(plain - np.round(plain)) < 1e-9
    return np.asarray(np.where(near, np.round(plain), plain))


def _written(parts: list[tuple[float, str]]) -> str:
    """Name of a combination."""
    text = ""
    for factor, name in parts:
        sign = "- " if factor < 0.0 else "+ "
        size = "" if abs(factor) == 1.0 else f"{abs(factor):.6g} "
        text += f" {sign}{size}{name}"
    return text.strip().removeprefix("+ ")
