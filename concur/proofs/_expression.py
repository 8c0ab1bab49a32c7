"""Expressions of angles, speeds and torques that stay below a bound."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import casadi as ca
import numpy as np
from annotated_types import Len

from concur.errors import OutputError, shown
from concur.proofs._quantity import Quantity
from concur.robot import unknown_name
from concur.tables import Expected, InFiles, Number, Text

LONGEST, DEEPEST, POWER = 1000, 200, 8
"""Most characters of a formula, most parts within each other, and largest power."""

KINDS = ("angle", "speed", "torque")
FUNCTIONS: dict[str, Callable[[Any], Any]] = {"sin": ca.sin, "cos": ca.cos, "sqrt": ca.sqrt}
_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
}

Formula = Annotated[
    str, Len(1, LONGEST), Expected(f"a formula of at most {LONGEST} characters", str.isprintable)
]


@dataclass(frozen=True)
class Expression:
    """A formula of angles, speeds and torques with a limit.

    Parameters
    ----------
    name : str
        Name of the expression.
    formula : str or casadi.Function
        Formula of angles, speeds and torques, such as `torque(arm) * speed(arm)`: of numbers,
        ``pi``, ``angle(joint)``, ``speed(velocity)``, ``torque(control)``, the operators
        ``+ - * /``, ``**`` with a whole number up to 8, and ``sin``, ``cos``,
        ``sqrt``. Names with other characters than letters stand in quotation marks. Or a function
        over SX of the angles (k,), speeds (ns,) and torques (nu,), with one number as result and
        instructions of the same kinds.
    below : float, optional
        Limit that the formula stays below, in its unit. Default: none.
    unit : str, optional
        Unit of the formula, for the report.

    Raises
    ------
    OutputError
        If the formula has other parts.

    Examples
    --------
    >>> Expression("power", "torque(turret) * speed(turret)", 5.0, "W").below
    5.0
    """

    name: Text
    formula: Annotated[str | ca.Function, InFiles(Formula)]
    below: Number = np.inf
    unit: Annotated[str, Expected("text")] = ""

    def __post_init__(self) -> None:
        if np.isnan(self.below):
            raise self._refusal("a number as limit", "NaN", "Correct it.")
        if isinstance(self.formula, str):
            _read(self.formula, self._refusal, lambda kind, name: ca.SX.sym(f"{kind} {name}"))

    @property
    def quantity(self) -> Quantity:
        """Its quantity."""
        return Quantity("expression", self.name, self.unit)

    def at(
        self,
        angles: Mapping[str, ca.SX],
        speeds: Mapping[str, ca.SX],
        torques: Mapping[str, ca.SX],
    ) -> ca.SX:
        """Value of the expression.

        Parameters
        ----------
        angles, speeds, torques : mapping of str to casadi.SX
            Values by joint, shape velocity and control.

        Returns
        -------
        casadi.SX
            The value.

        Raises
        ------
        UnknownNameError
            If the formula has another name.
        OutputError
            If the function has other arguments or more than one result.
        """
        values = dict(zip(KINDS, (angles, speeds, torques), strict=True))

        def value(kind: str, name: str) -> ca.SX:
            if name not in values[kind]:
                raise unknown_name(self._where, kind, name, list(values[kind]))
            return values[kind][name]

        if isinstance(self.formula, str):
            return ca.SX(_read(self.formula, self._refusal, value))
        parts = [ca.vertcat(*part.values()) for part in values.values()]
        sizes = [self.formula.size1_in(k) for k in range(self.formula.n_in())]
        wanted = [part.shape[0] for part in parts]
        if sizes != wanted or self.formula.n_out() != 1 or self.formula.numel_out(0) != 1:
            came = f"inputs of sizes {sizes} and {self.formula.n_out()} results"
            names = "; ".join(", ".join(part) for part in values.values())
            expected = f"a function of angles, speeds and torques, sizes {wanted}, with one number"
            raise self._refusal(expected, came, f"They are: {names}.")
        return self.formula(*parts)

    @property
    def _where(self) -> str:
        return f"expression `{self.name}` of a proof"

    def _refusal(self, expected: str, came: str, cure: str) -> OutputError:
        return OutputError(self._where, expected=expected, came=came, cure=cure)


def _read(
    text: str,
    refusal: Callable[[str, str, str], OutputError],
    value: Callable[[str, str], Any],
) -> Any:
    """Value of a formula; nothing in it is executed."""
    cure = "Write numbers, pi, angle(...), speed(...), torque(...), + - * / **, sin, cos and sqrt."

    def wrong(came: str) -> OutputError:
        return refusal("a formula", came, cure)

    if len(text) > LONGEST:
        raise refusal(f"a formula of at most {LONGEST} characters", f"{len(text)}", "Shorten it.")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise wrong(shown(text)) from None

    def part(node: ast.expr, depth: int = 0) -> Any:
        if depth > DEEPEST:
            raise refusal(f"at most {DEEPEST} parts within each other", "more", "Shorten it.")
        match node:
            case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
                if abs(number) < 1e300:
                    return float(number)
            case ast.Name(id="pi"):
                return np.pi
            case ast.UnaryOp(op=ast.UAdd() | ast.USub() as sign, operand=inner):
                found = part(inner, depth + 1)
                return -found if isinstance(sign, ast.USub) else found
            case ast.BinOp(left=base, op=ast.Pow(), right=ast.Constant(value=int() as power)):
                if not isinstance(power, bool) and 1 <= power <= POWER:
                    one = found = part(base, depth + 1)
                    for _ in range(power - 1):
                        found = found * one
                    return found
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
                second = part(right, depth + 1)
                if not (isinstance(op, ast.Div) and isinstance(second, float) and second == 0.0):
                    return _BINARY[type(op)](part(left, depth + 1), second)
            case ast.Call(func=ast.Name(id=name), args=[inner], keywords=[]):
                if name in FUNCTIONS:
                    return FUNCTIONS[name](part(inner, depth + 1))
                if name in KINDS and isinstance(inner, ast.Name):
                    return value(name, inner.id)
                if name in KINDS and isinstance(inner, ast.Constant):
                    return value(name, str(inner.value))
        raise wrong(shown(ast.unparse(node)))

    return part(tree)


def limits_of(expressions: Sequence[Expression]) -> dict[tuple[str, str], float]:
    """Limits by kind and name."""
    return {made.quantity.key: made.below for made in expressions if made.below < np.inf}
