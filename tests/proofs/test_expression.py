"""Expressions: a safe reader, bounds over cells, samples, and false limits refused."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import casadi as ca
import numpy as np
import pytest

from concur.certify import Status
from concur.errors import ConcurError, OutputError
from concur.proofs import Expression, prove_task
from concur.proofs._attack import Attack
from concur.proofs._prove import prove
from concur.proofs._sampled import counterexample
from tests.proofs._rover import NEAR, prover, rover, swept

T = 0.05
WHEELS = "torque(left_wheel) * speed(left_wheel) + torque(right_wheel) * speed(right_wheel)"
BENT = "sqrt(2 + cos(2 * angle(forearm))) / (1 + speed('turret') ** 2) - 0.1 * torque(upper_arm)"


def product(angles: ca.SX, speeds: ca.SX, torques: ca.SX) -> ca.SX:
    return torques[0] * speeds[0] + torques[1] * speeds[1]


def function() -> ca.Function:
    given = [ca.SX.sym(name, size) for name, size in (("a", 3), ("s", 5), ("u", 5))]
    return ca.Function("power", given, [product(*given)])


MADE = (
    Expression("power", WHEELS, 40.0, "W"),
    Expression("bent", BENT),
    Expression("same power", function()),
)


def task(made: tuple[Expression, ...] = MADE, duration: float = T) -> SimpleNamespace:
    names = ("path", "servo", "reference", "q0", "s0", "robot")
    given = {name: getattr(rover(), name) for name in names}
    statement = replace(NEAR, expressions=made)
    return SimpleNamespace(**given, duration=duration, statement=statement)


def values(q: np.ndarray, s: np.ndarray, u: np.ndarray) -> list[float]:
    power = u[0] * s[0] + u[1] * s[1]
    bent = np.sqrt(2 + np.cos(2 * q[7])) / (1 + s[2] ** 2) - 0.1 * u[3]
    return [power, bent, power]


def test_formulas_have_the_values_of_python() -> None:
    a, s, u = ca.SX.sym("a"), ca.SX.sym("s"), ca.SX.sym("u")
    names = {"a": a}, {"s": s}, {"u": u}
    for text in (
        "angle(a)",
        "-angle(a) + +speed(s) - 2 * torque(u) / 3",
        "sin(angle(a)) * cos(speed(s)) - sqrt(1.5 + torque(u) ** 2)",
        "2 ** 3 * pi - 1e-3 * (angle('a') - speed(\"s\")) ** 8 / 2",
        "sqrt(4)",
    ):
        found = ca.Function("f", [a, s, u], [Expression("x", text).at(*names)])
        plain = text.replace("'a'", "a").replace('"s"', "s")
        for name in ("angle", "speed", "torque"):
            plain = plain.replace(f"{name}(", "(")
        numbers = {"a": 0.3, "s": -0.7, "u": 1.9}
        maths = {"sin": np.sin, "cos": np.cos, "sqrt": np.sqrt, "pi": np.pi}
        expected = eval(plain, {"__builtins__": {}}, numbers | maths)
        assert float(found(0.3, -0.7, 1.9)) == pytest.approx(expected, rel=1e-14), text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1 +",
        "a",
        "angle",
        "angle(a, b)",
        "angle(b=1)",
        "angle(1 + 2)",
        "exp(angle(a))",
        "__import__('os').system('true')",
        "(lambda: 1)()",
        "[1][0]",
        "angle(a).real",
        "angle(a) if 1 else 2",
        "angle(a) < 1",
        "angle(a) // 2",
        "angle(a) ** 0.5",
        "angle(a) ** -1",
        "angle(a) ** 9",
        "angle(a) ** angle(a)",
        "1 / 0",
        "True",
        "1e400",
        "1j",
        "'a'",
        "1; 2",
        "x = 1",
        "-" * 300 + "1",
        "(" * 300 + "1" + ")" * 300,
        "1 + " * 400 + "1",
        "\x00",
    ],
)
def test_other_text_is_rejected_and_never_executed(text) -> None:
    with pytest.raises(OutputError):
        Expression("x", text)


def test_names_and_functions_are_checked() -> None:
    none = dict[str, ca.SX]()
    with pytest.raises(ConcurError, match=r"`x`.*turret"):
        Expression("x", "speed(turet)").at(none, {"turret": ca.SX.sym("s")}, none)
    with pytest.raises(OutputError, match=r"sizes \[0, 1, 0\].*They are: .*turret"):
        Expression("x", function()).at(none, {"turret": ca.SX.sym("s")}, none)
    with pytest.raises(OutputError, match="NaN"):
        Expression("x", "1", float("nan"))


@pytest.mark.by_default(1)
@pytest.mark.parametrize(("formula", "value"), [("2 * 3.0", 6.0), ("sqrt(4) - 1", 1.0)])
def test_constant_formulas_have_their_value(formula: str, value: float) -> None:
    made = Expression("x", formula)
    found = swept(
        prover(T), np.array([0.02, 0.15]), 0.0125, statement=replace(NEAR, expressions=(made,))
    )[1]
    assert all(part["added"] == pytest.approx([value], rel=1e-12) for part in found)


@pytest.mark.extended
@pytest.mark.parametrize(
    "formula", ["1 / (angle(turret) + 0.1)", "1 / (angle(turret) - angle(turret))"]
)
def test_a_formula_without_a_bound_is_not_proved(formula: str) -> None:
    """Without a limit too: it divides by an angle that may be zero, or by nothing."""
    statement = replace(NEAR, expressions=(Expression("x", formula),))
    found = prove(rover().servo, rover().reference, T, rover().q0, rover().s0, statement)
    assert found.status is Status.UNDECIDED
    assert found.reason.startswith("Not shown: expression x inf at 0.00 s")


@pytest.mark.extended
def test_samples_know_their_values_and_the_declared_motion_refutes() -> None:
    attack = Attack(task(duration=0.3))
    point = attack.balls.draw(np.random.default_rng(3), 1)
    runs = attack(point, 1)[2][0]
    rolled = attack._roll(point, [], 1).record
    at = [k for k, made in enumerate(attack.quantities) if made.kind == "expression"]
    model, states_ = rover().servo.model, attack.program.states
    for tick in (0, 299):
        q, v = (rolled.x[0, tick, states_[name]] for name in ("q", "v"))
        expected = values(q, v[list(model.shape)], rolled.u[0, tick])
        assert runs[at, tick] == pytest.approx(expected, rel=1e-9)
    declared = attack(np.zeros((1, attack.balls.size)), 1)[2][0][at[0]]
    for room, told in ((1e-4, ""), (-1e-4, "expression power is")):
        limit = float(declared.max()) + room
        made = (replace(MADE[0], below=limit),)
        assert told in counterexample(task(made, 0.3))
        assert bool(counterexample(task(made, 0.3))) == bool(told)
    low = (replace(MADE[0], below=float(declared[0]) - 0.1),)
    verdict = prove_task(task(low, 0.3))
    assert verdict.status is Status.REFUTED
    assert "W at 0 s, limit" in verdict.sentence
