"""Loading a large robot from its file, and from there to the first torque, beside Pinocchio."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pinocchio as pin

import concur as cc
from tests.benchmarks._contender import Comparison, Contender, Run
from tests.benchmarks._floating_job import DAMPING, MOMENTUM, STIFFNESS
from tests.benchmarks._robots import chain

JOINTS = 56
"""Joints of the arm; with those of the floating base 62 freedoms."""


@cache
def files() -> TemporaryDirectory[str]:
    """Folder with the robot in a TOML file, and in a URDF file with its sidecar."""
    folder = TemporaryDirectory()
    for name in ("toml/robot.toml", "urdf/robot.urdf"):
        path = Path(folder.name, name)
        path.parent.mkdir()
        chain(JOINTS).save(path)
    return folder


def loading_comparisons() -> list[Comparison]:
    """List all comparisons; nothing is built yet."""
    peer = "`buildModelFromUrdf`"
    return [
        Comparison(
            f"load a file with {JOINTS + 6} freedoms",
            (
                Contender("`cc.load` of TOML", lambda: _loaded("toml/robot.toml")),
                Contender("`cc.load` of URDF", lambda: _loaded("urdf/robot.urdf")),
                Contender(peer, lambda: _built(_sizes), "Pinocchio"),
            ),
            1,
            15,
            "file",
        ),
        Comparison(
            "from this file to the first torque, compiled before",
            (
                Contender("`load`, `reduce`, `Servo`, `compile`, first call", _first_torque),
                Contender(
                    f"{peer}, first mass matrix and bias", lambda: _built(_terms), "Pinocchio"
                ),
            ),
            1,
            5,
            "file",
            alike=False,
        ),
    ]


def _loaded(name: str) -> Run:
    path = Path(files().name, name)

    def run() -> np.ndarray:
        robot = cc.load(path)
        return np.array([robot.nv, robot.total_mass])

    return run


def _built(result: Callable[[pin.Model], np.ndarray]) -> Run:
    path = str(Path(files().name, "urdf/robot.urdf"))
    return lambda: result(pin.buildModelFromUrdf(path, pin.JointModelFreeFlyer()))


def _sizes(model: pin.Model) -> np.ndarray:
    return np.array([model.nv, pin.computeTotalMass(model)])


def _terms(model: pin.Model) -> np.ndarray:
    data, q, v = model.createData(), pin.neutral(model), np.zeros(model.nv)
    mass = pin.crba(model, data, q)
    return np.asarray(mass @ v + pin.nonLinearEffects(model, data, q, v))


def _first_torque() -> Run:
    path = Path(files().name, "toml/robot.toml")
    outputs = [cc.Output("tool", "link_tool", "SE3")]
    q = chain(JOINTS).random(np.random.default_rng(0))
    start = cc.references.hold(chain(JOINTS).pose(q, "link_tool"))(0.0)

    def run() -> np.ndarray:
        model = cc.reduce(cc.load(path), momentum=MOMENTUM)
        law = cc.Servo(model, outputs, STIFFNESS, DAMPING).compile()
        return law(q, np.zeros(model.ns), start)

    run()  # compiles
    return run
