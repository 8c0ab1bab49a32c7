"""Every function has finite values and derivatives at every delicate point.

A NaN in the branch that a conditional discards does not show in the value, nor always in
the Jacobian: it shows in reverse gradients, in Hessians and in generated C. So all of
them are evaluated, and the Hessian is compared with differences of the gradient.
"""

from __future__ import annotations

import functools
import subprocess
from collections.abc import Callable
from typing import NamedTuple

import casadi as ca
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from concur.groups import quaternion, se2, se3, so3
from tests.oracles import each

from .oracles import (
    LONG_PLANAR_TWISTS,
    LONG_ROTATION_VECTORS,
    LONG_TWISTS,
    PLANAR_TWISTS,
    QUATERNIONS,
    ROTATION_VECTORS,
    TWISTS,
    differences,
    near,
    pose_of,
)

Points = dict[str, list[np.ndarray]]


def single(points: dict[str, np.ndarray]) -> Points:
    return {name: [point] for name, point in points.items()}


def paired(points: dict[str, np.ndarray], partner: np.ndarray) -> Points:
    return {name: [point, partner] for name, point in points.items()}


def below_a_turn(points: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The logarithm's differential has poles at multiples of a turn."""
    return {name: point for name, point in points.items() if name != "turn"}


VECTORS = {**ROTATION_VECTORS, **LONG_ROTATION_VECTORS}
BODY = {**TWISTS, **LONG_TWISTS}
FLAT = {**PLANAR_TWISTS, **LONG_PLANAR_TWISTS}
ROTATIONS = {name: Rotation.from_rotvec(w).as_matrix() for name, w in VECTORS.items()}
POSES = {name: pose_of(twist) for name, twist in BODY.items()}
RATE = np.array([0.3, -0.2, 0.5])
OTHER = np.array([0.1, -0.7, 0.5, 0.5])


class Case(NamedTuple):
    function: Callable
    points: Points
    jumps: bool = False  # at the angle pi


CASES = {
    "so3.skew": Case(so3.skew, single(VECTORS)),
    "so3.vee": Case(so3.vee, single(ROTATIONS)),
    "so3.exp": Case(so3.exp, single(VECTORS)),
    "so3.log": Case(so3.log, single(ROTATIONS), jumps=True),
    "so3.dexp_body": Case(so3.dexp_body, single(VECTORS)),
    "so3.dexp_spatial": Case(so3.dexp_spatial, single(VECTORS)),
    "so3.dexp_body_inverse": Case(so3.dexp_body_inverse, single(below_a_turn(VECTORS))),
    "so3.dexp_spatial_inverse": Case(so3.dexp_spatial_inverse, single(below_a_turn(VECTORS))),
    "quaternion.multiply": Case(quaternion.multiply, paired(QUATERNIONS, OTHER)),
    "quaternion.conjugate": Case(quaternion.conjugate, single(QUATERNIONS)),
    "quaternion.normalize": Case(quaternion.normalize, single(QUATERNIONS)),
    "quaternion.to_matrix": Case(quaternion.to_matrix, single(QUATERNIONS)),
    "quaternion.from_matrix": Case(quaternion.from_matrix, single(ROTATIONS), jumps=True),
    "quaternion.exp": Case(quaternion.exp, single(VECTORS)),
    "quaternion.log": Case(quaternion.log, single(QUATERNIONS), jumps=True),
    "quaternion.rate": Case(quaternion.rate, paired(QUATERNIONS, RATE)),
    "quaternion.rotate": Case(quaternion.rotate, paired(QUATERNIONS, RATE)),
    "se2.exp": Case(se2.exp, single(FLAT)),
    "se2.log": Case(se2.log, single(FLAT), jumps=True),
    "se2.compose": Case(se2.compose, paired(FLAT, RATE)),
    "se2.inverse": Case(se2.inverse, single(FLAT)),
    "se2.to_pose": Case(se2.to_pose, single(FLAT)),
    "se2.from_pose": Case(se2.from_pose, single(POSES), jumps=True),
    "se2.rate": Case(se2.rate, paired(FLAT, RATE)),
    "se2.adjoint": Case(se2.adjoint, single(FLAT)),
    "se2.ad": Case(se2.ad, single(FLAT)),
    "se2.dexp_body": Case(se2.dexp_body, single(FLAT)),
    "se2.dexp_spatial": Case(se2.dexp_spatial, single(FLAT)),
    "se2.dexp_body_inverse": Case(se2.dexp_body_inverse, single(below_a_turn(FLAT))),
    "se2.dexp_spatial_inverse": Case(se2.dexp_spatial_inverse, single(below_a_turn(FLAT))),
    "se3.hat": Case(se3.hat, single(BODY)),
    "se3.vee": Case(se3.vee, single(POSES)),
    "se3.exp": Case(se3.exp, single(BODY)),
    "se3.log": Case(se3.log, single(POSES), jumps=True),
    "se3.inverse": Case(se3.inverse, single(POSES)),
    "se3.pose": Case(se3.pose, {name: [RATE, q] for name, q in QUATERNIONS.items()}),
    "se3.adjoint": Case(se3.adjoint, single(POSES)),
    "se3.ad": Case(se3.ad, single(BODY)),
    "se3.dexp_body": Case(se3.dexp_body, single(BODY)),
    "se3.dexp_spatial": Case(se3.dexp_spatial, single(BODY)),
    "se3.dexp_body_inverse": Case(se3.dexp_body_inverse, single(below_a_turn(BODY))),
    "se3.dexp_spatial_inverse": Case(se3.dexp_spatial_inverse, single(below_a_turn(BODY))),
    "se3.convert_twist": Case(
        functools.partial(se3.convert_twist, source="hybrid", target="spatial"),
        paired(POSES, TWISTS["general"]),
    ),
    "se3.convert_wrench": Case(
        functools.partial(se3.convert_wrench, source="hybrid", target="spatial"),
        paired(POSES, TWISTS["general"]),
    ),
    "se3.convert_inertia": Case(
        functools.partial(se3.convert_inertia, source="body", target="spatial"),
        paired(POSES, np.diag([2.0, 2.0, 2.0, 0.3, 0.4, 0.5])),
    ),
}


every_function = pytest.mark.parametrize("name", CASES)


@functools.cache
def derivatives(name: str) -> ca.Function:
    """Value, Jacobian, forward slope, reverse gradient and Hessian of one function."""
    case = CASES[name]
    example = next(iter(case.points.values()))
    symbols = [ca.SX.sym("x", *np.atleast_2d(a.T).T.shape) for a in example]
    x = ca.vertcat(*(ca.vec(symbol) for symbol in symbols))
    value = ca.vec(ca.densify(case.function(*symbols)))
    # One number that depends on every result, so that all adjoints are summed.
    scalar = ca.dot(np.cos(1 + np.arange(value.numel())), value)
    gradient = ca.gradient(scalar, x)
    slope = ca.jtimes(value, x, np.sin(1 + np.arange(x.numel())))
    hessian = ca.jacobian(gradient, x)
    results = [value, ca.jacobian(value, x), slope, gradient, hessian]
    graph = ca.Function("graph", symbols, results, {"cse": True})
    flat = ca.SX.sym("x", x.numel())
    parts = ca.vertsplit(flat, np.cumsum([0, *(s.numel() for s in symbols)]).tolist())
    inputs = [ca.reshape(p, s.shape) for p, s in zip(parts, symbols, strict=True)]
    return ca.Function(name.replace(".", "_"), [flat], [ca.densify(r) for r in graph.call(inputs)])


def flat_point(name: str, point: str) -> np.ndarray:
    return np.concatenate([a.ravel(order="F") for a in CASES[name].points[point]])


def covered(module) -> set[str]:
    short = module.__name__.rpartition(".")[2]
    return {
        f"{short}.{name}"
        for name, value in vars(module).items()
        if getattr(value, "__module__", None) == module.__name__ and not name.startswith("_")
    }


@pytest.mark.parametrize("module", [quaternion, se2, se3, so3])
def test_every_public_function_is_listed(module):
    assert covered(module)
    assert covered(module) <= set(CASES)


@every_function
def test_value_and_derivatives_are_finite(name):
    def check(point):
        for result in derivatives(name)(flat_point(name, point)):
            assert np.isfinite(np.array(result)).all()

    each(CASES[name].points, check)


@every_function
def test_forward_and_reverse_derivatives_agree(name):
    def check(point):
        x = flat_point(name, point)
        value, jacobian, slope, gradient, hessian = map(np.array, derivatives(name)(x))
        near(jacobian @ np.sin(1 + np.arange(len(x))), slope[:, 0])
        near(np.cos(1 + np.arange(len(value))) @ jacobian, gradient[:, 0])
        near(hessian, hessian.T)

    each(CASES[name].points, check)


@pytest.mark.by_default(15)
@every_function
def test_derivatives_agree_with_differences(name):
    function = derivatives(name)

    def value_and_gradient(y):
        value, _, _, gradient, _ = function(y)
        return np.concatenate([np.array(value), np.array(gradient)])[:, 0]

    def check(point):
        x = flat_point(name, point)
        _, jacobian, _, _, hessian = map(np.array, function(x))
        slopes = differences(value_and_gradient, x)
        near(slopes[: len(jacobian)], jacobian, 1e-9)
        near(slopes[len(jacobian) :], hessian, 1e-9)

    case = CASES[name]
    each([p for p in case.points if not (case.jumps and "half turn" in p)], check)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    names = [
        "se3.exp",
        "se3.log",
        "se3.dexp_spatial",
        "se3.dexp_spatial_inverse",
        "se2.log",
        "se2.dexp_spatial_inverse",
        "quaternion.exp",
        "quaternion.log",
    ]
    folder = tmp_path_factory.mktemp("generated")
    generator = ca.CodeGenerator("groups.c")
    for name in names:
        generator.add(derivatives(name))
    generator.generate(f"{folder}/")
    library = folder / "groups.so"
    command = ["cc", "-O0", "-fPIC", "-shared", str(folder / "groups.c"), "-o", str(library)]
    subprocess.run([*command, "-lm"], check=True, capture_output=True)
    return {name: ca.external(derivatives(name).name(), str(library)) for name in names}


@pytest.mark.extended
def test_generated_c_gives_the_same_finite_derivatives(compiled):
    for name, function in compiled.items():
        for point in CASES[name].points:
            x = flat_point(name, point)
            for result, expected in zip(function(x), derivatives(name)(x), strict=True):
                assert np.isfinite(np.array(result)).all(), (name, point)
                near(np.array(result), np.array(expected), 1e-13)
