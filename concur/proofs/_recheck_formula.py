"""Formulas of angles, speeds and torques over leaves, for the checker of proofs.

A formula is evaluated in second-order models about the middle of a leaf, with a symbol for each
angle, speed and torque. Its first-order part follows to first order from the cell, the time, the
heading and the balls, like torques themselves; the rest counts by its size.

**What holds.** Each bound is one for every point of the leaf and all y, nu in their sets.
"""

from __future__ import annotations

import ast
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from concur.proofs._recheck_arm import Forces
from concur.proofs._recheck_leaves import Entry, Linear, Sets, Table, Tensor, force, spread, tensor
from concur.proofs._recheck_smooth import Floats, Rejection, Smooth, constant, require, symbols

KINDS = ("angle", "speed", "torque")
DEEPEST = 250
"""Most parts within each other."""


@dataclass(frozen=True, eq=False)
class Formulas:
    """Formulas of a statement.

    Parameters
    ----------
    entries : list of tuple
        The quantities.
    trees : list of ast.expr
        The formulas.
    names : list of tuple
        Kind and name of the symbols that occur.
    rows : list of tuple
        Of each symbol its kind and row: in the arm's angles, the speeds or the torques.
    """

    entries: list[Entry]
    trees: list[ast.expr]
    names: list[tuple[str, str]]
    rows: list[tuple[str, int]]

    spatial = False

    def tensors(
        self, f: Forces, place: Smooth, phi: Smooth, made: dict[str, Smooth]
    ) -> tuple[dict[str, Tensor], dict[str, Floats]]:
        """Angles of the arm."""
        return {"phi": tensor(phi)}, {}

    def bounds(self, t: Table, sets: Sets) -> dict[str, Floats]:
        """Upper bounds of all formulas, (k, b), and the parts that halves reduce."""
        form, lines, rest = force(t, ("U1", "U2", "U0"), sets, False)
        s, phi, away = t.parts["S"], t.parts["phi"], spread(sets)
        value, slopes, along, loose = [], [], [], []
        zero = np.zeros((1, *form.value.shape[1:]))
        for kind, row in self.rows:
            own = slice(row, row + 1)
            if kind == "torque":
                value.append(form.value[own])
                slopes.append({name: part[own] for name, part in form.slopes.items()})
                along.append([line[own] for line in lines])
                loose.append(rest[own])
                continue
            none = np.zeros((1, 5, zero.shape[-1]))
            if kind == "angle":
                value.append(phi.c[own])
                slopes.append({"nu": none, "y": none})
                along.append([g[own] for g in phi.g])
                loose.append(phi.rest[own])
                continue
            value.append(np.einsum("ijb,jb->ib", s.c[own], sets.y.c))
            slopes.append({"nu": none, "y": s.c[own]})
            along.append([np.einsum("ijb,jb->ib", g[own], sets.y.c) for g in s.g])
            bend = np.einsum("ijb,jb->ib", s.size[own] - np.abs(s.c[own]), away["y"])
            bend = bend + np.einsum("ijb,jb->ib", s.rest[own], np.abs(sets.y.c))
            loose.append(bend + np.einsum("ijb,jb->ib", np.abs(s.c[own]), sets.y.rest))
        half = []
        for own_value, slope, line, more in zip(value, slopes, along, loose, strict=True):
            ahead, balls = Linear(own_value, slope).parts(sets, slice(0, 1))
            reach = sum(np.abs(one) for one in (*ahead, *line)) + more
            for matrix, radius in balls:
                reach = reach + np.sqrt((matrix**2).sum(axis=1)) * radius
            half.append(reach * (1 + 1e-12) + 1e-300)
        variables = symbols(np.concatenate(value), np.concatenate(half))
        found, parts_ = [], []
        for tree in self.trees:
            f = _value(tree, self.names, variables)
            # Of a symbol the first order is linear in what it depends on.
            factors = [f.g[k] / half[k][0] for k in range(len(half))]
            slope_of = {
                name: sum(factor * part[name] for factor, part in zip(factors, slopes, strict=True))
                for name in ("nu", "y")
            }
            combined = [
                sum(factor * own[i] for factor, own in zip(factors, along, strict=True))
                for i in range(len(lines))
            ]
            onward, balls = Linear(f.c[None], slope_of).parts(sets, slice(0, 1))
            bend = np.abs(f.h).sum(axis=0) + f.r[0]
            bend = bend + sum(
                np.abs(factor) * own[0] for factor, own in zip(factors, loose, strict=True)
            )
            reach = sum(np.abs(one[0]) for one in (*onward, *combined)) + bend
            for matrix, radius in balls:
                reach = reach + np.sqrt((matrix[0] ** 2).sum(axis=0)) * radius
            found.append(f.c + reach + 1e-10 * (np.abs(f.c) + reach))
            parts_.append(bend)
        return {"formula": np.array(found), "formula_rest": np.array(parts_)}


def formulas_of(expressions: Any, joints: list[str], shape: list[str], controls: list[str]) -> Any:
    """Formulas of a statement; rejects those with other parts than this checker evaluates."""
    rows = {("angle", name): ("angle", k) for k, name in enumerate(joints)}
    rows |= {("speed", name): ("speed", k) for k, name in enumerate(shape)}
    rows |= {("torque", name): ("torque", k) for k, name in enumerate(controls)}
    entries, trees, names = list[Entry](), [], list[tuple[str, str]]()
    for made in expressions:
        text = made.formula
        require(isinstance(text, str) and len(text) <= 1000, f"expression {made.name}: no formula")
        try:
            tree = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            raise Rejection(f"expression {made.name}: no formula") from None
        for own in _names(tree, 0):
            require(own in rows, f"expression {made.name}: unknown name {own[1]}")
            if own not in names:
                names.append(own)
        trees.append(tree)
        limit = None if math.isinf(made.below) else float(made.below)
        entries.append(("expression", made.name, made.unit, 1.0, limit))
    keys = [entry[:2] for entry in entries]
    require(len(set(keys)) == len(keys), "expressions: names are not unique")
    if not names:
        names.append(("angle", joints[0]))
    return Formulas(entries, trees, names, [rows[name] for name in names])


def _names(node: ast.expr, depth: int) -> list[tuple[str, str]]:
    """Kind and name of what occurs in a formula; rejects all but its grammar."""
    require(depth < DEEPEST, "a formula is too deep")
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            require(abs(number) < 1e300, "a formula has a number out of range")
            return []
        case ast.Name(id="pi"):
            return []
        case ast.UnaryOp(op=ast.UAdd() | ast.USub(), operand=inner):
            return _names(inner, depth + 1)
        case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=int() as power)):
            require(not isinstance(power, bool) and 0 < power < 9, "a formula has another power")
            return _names(left, depth + 1)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div(), right=right):
            return _names(left, depth + 1) + _names(right, depth + 1)
        case ast.Call(func=ast.Name(id="sin" | "cos" | "sqrt"), args=[inner], keywords=[]):
            return _names(inner, depth + 1)
        case ast.Call(
            func=ast.Name(id="angle" | "speed" | "torque" as kind), args=[inner], keywords=[]
        ):
            name = inner.id if isinstance(inner, ast.Name) else getattr(inner, "value", None)
            require(isinstance(name, str), "a formula has another name")
            return [(kind, str(name))]
    raise Rejection("a formula has other parts than sums, products, powers, sin, cos and sqrt")


def _value(node: ast.expr, names: list[tuple[str, str]], z: Smooth) -> Smooth:
    """Model of a formula; its grammar is known."""
    match node:
        case ast.Constant(value=number):
            return constant(np.full(z.c.shape[-1], float(number)), len(z.g))  # type: ignore[arg-type]
        case ast.Name():
            return constant(np.full(z.c.shape[-1], math.pi), len(z.g))
        case ast.UnaryOp(op=sign, operand=inner):
            found = _value(inner, names, z)
            return -found if isinstance(sign, ast.USub) else found
        case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=power)):
            one = found = _value(left, names, z)
            for _ in range(int(power) - 1):  # type: ignore[arg-type]
                found = found * one
            return found
        case ast.BinOp(left=left, op=op, right=right):
            a, b = _value(left, names, z), _value(right, names, z)
            if isinstance(op, ast.Div):
                return a * b.reciprocal()
            return a + b if isinstance(op, ast.Add) else a - b if isinstance(op, ast.Sub) else a * b
        case ast.Call(func=ast.Name(id=kind), args=[inner]):
            if kind in KINDS:
                name = inner.id if isinstance(inner, ast.Name) else inner.value  # type: ignore[attr-defined]
                return z[names.index((kind, name))]
            own = _value(inner, names, z)
            return own.sine() if kind == "sin" else own.cosine() if kind == "cos" else own.root()
    raise Rejection("a formula has other parts")
