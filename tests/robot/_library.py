"""Robots of examples/urdf from the files of two packages, and reference numbers of two engines.

`python -m tests.robot._library` writes tests/data/library.json; it needs the packages.
"""

from __future__ import annotations

import json
import runpy
import shutil
import sys
import tempfile
from dataclasses import replace
from importlib.metadata import distribution
from pathlib import Path
from unittest import mock

import mujoco
import numpy as np

import concur as cc
from concur.io import repair_urdf
from tests.io.strangers import as_pinocchio_reads_it
from tests.io.test_urdf import UrdfOracle
from tests.oracles import Mujoco, assert_close, random_velocity

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "urdf"
NUMBERS = ROOT / "tests" / "data" / "library.json"
ROBOTS = ("tiago", "husky_ur5", "husky_panda", "talos")
FIXED = {
    "tiago": "tiago_description/robots/tiago_no_hand.urdf",
    "talos": "talos_data/robots/talos_reduced.urdf",
}
ARMS = {
    "husky_ur5": "ur_description/urdf/ur5_robot.urdf",
    "husky_panda": "panda_description/urdf/panda.urdf",
}


def packaged(package: str, ending: str) -> Path:
    """File of a package whose path ends so."""
    found = distribution(package)
    pinned = (ROOT / "tests" / "io" / "strangers.txt").read_text().splitlines()
    assert f"{package}=={found.version}" in pinned
    (name,) = [n for n in found.files or () if str(n).endswith(f"/{ending}")]
    return Path(str(found.locate_file(name)))


def assemble(folder: Path) -> Path:
    """Sidecars and tasks of the examples, beside URDF files made as their comments describe."""
    shutil.copytree(EXAMPLES, folder, dirs_exist_ok=True)
    for name, file in FIXED.items():
        data, _ = repair_urdf(packaged("example-robot-data", file))
        (folder / f"{name}.urdf").write_bytes(data)
    husky = packaged("pybullet", "husky/husky.urdf")
    for name, file in ARMS.items():
        arm, out = packaged("example-robot-data", file), folder / f"{name}.urdf"
        with mock.patch.object(sys, "argv", ["", str(husky), str(arm), str(out)]):
            runpy.run_path(str(EXAMPLES / "husky_with_arm.py"))
    return folder


def numbers(folder: Path, name: str) -> dict[str, object]:
    """Mass matrix (lower triangle), bias and momentum by Pinocchio's reader; MuJoCo agrees."""
    path = folder / f"{name}.urdf"
    robot = cc.load(path)
    planar = isinstance(robot.base.joint, cc.joints.Planar)
    first = UrdfOracle(as_pinocchio_reads_it(path, robot), robot, "planar" if planar else "free")
    tree = replace(robot, wheels=(), motors=(), actuated=None)
    second, order = Mujoco(tree), cc.interop.mujoco(tree)
    model, data = second.model, second.data
    rng, states = np.random.default_rng(7), []
    for _ in range(2):
        q, v = robot.random(rng), random_velocity(robot, rng)
        found = first.mass_matrix(q), first.bias(q, v), first.momentum(q, v)
        data.qpos[:], data.qvel[:] = order.to_q(q), order.to_v(q, v)
        mujoco.mj_forward(model, data)
        mujoco.mj_subtreeVel(model, data)
        mass, T = np.zeros((model.nv, model.nv)), order.velocity_map(q)
        mujoco.mj_fullM(model, data, mass)
        force = mass @ order.to_acceleration(q, v, np.zeros(robot.nv)) + data.qfrc_bias
        linear = robot.total_mass * data.subtree_linvel[0]
        angular = data.subtree_angmom[0] + np.cross(data.subtree_com[0], linear)
        others = T.T @ mass @ T, order.from_force(q, force), np.concatenate([linear, angular])
        for one, other in zip(found, others, strict=True):
            assert_close(one, other, 1e-8, name=name)
        lower = found[0][np.tril_indices(robot.nv)]
        parts = {"q": q, "v": v, "mass": lower, "bias": found[1], "momentum": found[2]}
        states.append({key: [float(f"{x:.12g}") for x in part] for key, part in parts.items()})
    return {"bodies": [body.name for body in robot.bodies], "states": states}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        made = assemble(Path(scratch))
        NUMBERS.write_text(json.dumps({name: numbers(made, name) for name in ROBOTS}) + "\n")
