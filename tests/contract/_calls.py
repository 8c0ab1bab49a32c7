"""Wrong calls with the class and the place of the error that each must give.

A case is a sound call of `SOUND` with other values of some arguments, all written as expressions,
or an expression of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import casadi as ca
import numpy as np

import concur as cc
from concur.formulations import Factor
from tests.contract._frozen import frozen

EXAMPLES = Path(__file__).parents[2] / "examples"
UNIT = "cc.Inertia(1.0, moments=(1, 1, 1))"
PENDULUM = (
    '[cc.Body("base", cc.joints.Fixed()), '
    f'cc.Body("rod", cc.joints.Revolute((0, 1, 0)), "base", inertia={UNIT})]'
)

SOUND: dict[str, tuple[str, dict[str, str]]] = {
    "Pose": ("cc.Pose", {"translation": "(0, 0, 1)", "rotation": "(0, 0, 0, 1)"}),
    "Inertia": ("cc.Inertia", {"mass": "1.0", "com": "(0, 0, 0)", "moments": "(1, 1, 1)"}),
    "Body": (
        "cc.Body",
        {
            "name": '"arm"',
            "joint": "cc.joints.Revolute((0, 0, 1))",
            "parent": '"base"',
            "placement": "cc.Pose()",
            "inertia": UNIT,
            "limits": "(-1.0, 1.0)",
            "speed_limit": "2.0",
            "torque_limit": "3.0",
        },
    ),
    "Wheel": (
        "cc.Wheel",
        {
            "body": '"arm"',
            "radius": "0.1",
            "kind": '"mecanum"',
            "roller_angle": "0.7",
            "axis": "(0, 1, 0)",
            "center": "(0, 0, 0)",
            "ground": "0.0",
        },
    ),
    "Motor": ("cc.Motor", {"name": '"d"', "joints": '{"arm": 2.0}'}),
    "Mimic": (
        "cc.robot.Mimic",
        {"body": '"a"', "of": '"b"', "multiplier": "1.0", "offset": "0.0"},
    ),
    "Mechanism": (
        "cc.Mechanism",
        {
            "name": '"r"',
            "bodies": PENDULUM,
            "wheels": "()",
            "gravity": "(0, 0, -9.81)",
            "actuated": '["rod"]',
        },
    ),
    **{
        name: (f"cc.joints.{name}", {"axis": "(0, 0, 1)"})
        for name in ("Revolute", "Prismatic", "Cylindrical")
    },
    **{
        name: (f"cc.joints.{name}", {"normal": "(0, 0, 1)"})
        for name in ("Planar", "Sliding", "PlanarPrismatic")
    },
    "Helical": ("cc.joints.Helical", {"axis": "(0, 0, 1)", "pitch": "0.1"}),
    "Output": (
        "cc.Output",
        {
            "name": '"o"',
            "body": '"arm"',
            "group": '"SE2"',
            "point": "(0, 0, 0)",
            "axes": "None",
            "orientation": "(0, 0, 0, 1)",
            "normal": "(0, 0, 1)",
            "relative_to": "None",
        },
    ),
    "ReferenceSample": (
        "cc.ReferenceSample",
        {"pose": "[0.0]", "twist": "[0.0]", "acceleration": "[0.0]"},
    ),
    "Redundancy": (
        "cc.control.Redundancy",
        {"weight": '"energy"', "objective": '"rest"', "stiffness": "1.0", "damping": "2.0"},
    ),
    "Servo": (
        "cc.Servo",
        {
            "model": "model",
            "outputs": "outputs",
            "stiffness": "4.0",
            "damping": "4.0",
            "inertia": "None",
            "singular_margin": "1e-3",
            "redundancy": "None",
            "damping_threshold": "None",
            "torque_limits": "20.0",
            "torque_weights": "None",
            "use_measured_velocity": "False",
            "integral": "None",
        },
    ),
    "reduce": ("cc.reduce", {"robot": "floater", "momentum": "np.zeros(6)"}),
    "Plant": ("cc.Plant", {"robot": "rover"}),
    "simulate": (
        "cc.simulate",
        {
            "robot": "rover",
            "servo": "servo",
            "reference": "reference",
            "duration": "0.02",
            "q0": "q0",
            "s0": "np.zeros(5)",
            "dt": "0.01",
        },
    ),
    "inverse_kinematics": (
        "cc.inverse_kinematics",
        {"robot": "rover", "outputs": "outputs", "target": "servo.output(q0)", "q0": "q0"},
    ),
    "torque": ("servo.torque", {"q": "q0", "s": "np.zeros(5)", "sample": "sample"}),
    "error": ("servo.error", {"q": "q0", "s": "np.zeros(5)", "sample": "sample"}),
    "margin": ("servo.margin", {"q": "q0"}),
    "tick": ("tick", {"q": "q0", "s": "np.zeros(5)", "sample": "sample"}),
    "lift": ("model.lift", {"q": "q0"}),
    "velocity": ("model.velocity", {"q": "q0", "s": "np.zeros(5)"}),
    "acceleration": ("model.acceleration", {"q": "q0", "s": "np.zeros(5)", "u": "np.zeros(5)"}),
    "mass_matrix": ("rover.mass_matrix", {"q": "q0"}),
    "bias": ("rover.bias", {"q": "q0", "v": "np.zeros(8)"}),
    "pose": ("rover.pose", {"q": "q0", "body": '"turret"'}),
    "jacobian": ("rover.jacobian", {"q": "q0", "body": '"turret"'}),
    "integrate": ("rover.integrate", {"q": "q0", "dv": "np.zeros(8)"}),
    "hold": ("ref.hold", {"point": "[0.0, 1.0]"}),
    "polynomial": ("ref.polynomial", {"coefficients": "[[0.0], [1.0]]"}),
    "rest_to_rest": (
        "ref.rest_to_rest",
        {"start": "[0.0]", "end": "[1.0]", "duration": "1.0", "begin": "0.0"},
    ),
    "circle": (
        "ref.circle",
        {
            "center": "[0.0, 0.0, 0.0]",
            "radius": "1.0",
            "period": "2.0",
            "normal": "(0, 0, 1)",
            "phase": "0.0",
            "attitude": "(0, 0, 0, 1)",
            "group": '"SE3"',
        },
    ),
    "waypoints": ("ref.waypoints", {"times": "[0.0, 1.0]", "points": "[[0.0], [1.0]]"}),
    "screw": ("ref.screw", {"start_pose": "np.eye(4)", "twist": "np.ones(6)", "group": '"SE3"'}),
    "moving": ("ref.moving", {"reference": "pose", "twist": "np.ones(6)"}),
    "drifting": ("ref.drifting", {"reference": "still", "velocity": "[1, 0, 0]"}),
    "relative": ("ref.relative", {"reference": "still", "to": "line", "components": "[0]"}),
    "planar": ("ref.planar", {"reference": "still"}),
    "reference(t)": ("reference", {"t": "0.5"}),
    "certify": ("cc.certify", {"law": "servo"}),
    "Factor": ("Factor", {"name": '"x"', "group": '"R2"', "unit": '"m"'}),
    "PD": (
        "cc.laws.PD",
        {"model": "model", "reference": "joints", "stiffness": "9.0", "damping": "6.0"},
    ),
    "load": ("cc.load", {"path": 'EXAMPLES / "my_robot.toml"'}),
}
"""Calls that are right: the function and its arguments."""


class _Bench(dict[str, Any]):
    """Objects that the expressions name, made when they are first named."""

    MAKE: ClassVar[dict[str, str]] = {
        "rover": "cc.robots.rover_arm()",
        "floater": "cc.robots.planar_floater()",
        "model": "cc.reduce(rover)",
        "outputs": '[cc.Output("base", "chassis", "R2", (0.25, 0, 0)), '
        'cc.Output("hand", "forearm", "R3", (0, 0.2, 0))]',
        "servo": "cc.Servo(model, outputs, 4.0, 4.0)",
        "tick": "servo.compile(interpreted=True)",
        "q0": "np.array([-0.45, -0.1, 0.1, 0, 0, -0.1, 1.0, -1.6])",
        "reference": "ref.hold(servo.output(q0))",
        "joints": "ref.hold(np.zeros(5))",
        "sample": "reference(0.0)",
        "still": "ref.hold([1.0, 2.0, 3.0])",
        "line": "ref.waypoints([0.0, 1.0, 2.0], [[0.0], [0.5], [1.0]])",
        "pose": 'ref.hold([0, 0, 0, 0, 0, 0, 1], "SE3")',
        "unit": UNIT,
        "base": 'cc.Body("base", cc.joints.Planar(), inertia=unit)',
        "wheel": 'cc.Body("wheel", cc.joints.Revolute((0, 1, 0)), "base", inertia=unit)',
        "upright": 'cc.Body("mast", cc.joints.Revolute((0, 0, 1)), "base", inertia=unit)',
        "plan": 'cc.Mechanism("plan", [base, wheel], [cc.Wheel("wheel", 0.1)])',
        "pair": 'cc.Mechanism("pair", [base, upright])',
        "nan": 'float("nan")',
        "inf": 'float("inf")',
    }

    def __missing__(self, name: str) -> Any:
        if name not in self.MAKE:
            raise KeyError(name)
        self[name] = value = evaluate(self.MAKE[name])
        return value


@cache
def _bench() -> _Bench:
    return _Bench(cc=cc, np=np, ca=ca, ref=cc.references, Factor=Factor, EXAMPLES=EXAMPLES)


def evaluate(expression: str) -> Any:
    """Value of an expression about the objects of the bench."""
    return eval(compile(expression, "<contract>", "eval"), {"__name__": "contract"}, _bench())


def cases() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield name and content of all cases."""
    yield from frozen("calls").items()


def outcome(row: dict[str, Any]) -> tuple[str, list[str]] | None:
    """Class and place of the error that a call raises; None if it returns."""
    try:
        if row["call"] in SOUND:
            function, sound = SOUND[row["call"]]
            given = {n: evaluate(v) for n, v in {**sound, **row["changes"]}.items()}
            evaluate(function)(**given)
        else:
            evaluate(row["call"])
    except Exception as error:
        return type(error).__name__, place(str(getattr(error, "where", "")))
    return None


def place(where: str) -> list[str]:
    """Names in the place of an error: those in backticks, and the last word."""
    return [*re.findall(r"`([^`]*)`", where), *re.findall(r"[\w]+(?=\W*$)", where)]
