"""Every function of the groups against SciPy, at all delicate points, with its derivatives."""

from __future__ import annotations

import functools
import subprocess
from collections.abc import Callable
from typing import NamedTuple

import casadi as ca
import numpy as np
import pytest
from scipy.linalg import block_diag, expm
from scipy.spatial.transform import Rotation

from concur.errors import NonFiniteError, ShapeError
from concur.groups import quaternion, se2, se3, so3
from tests.oracles import each

from .oracles import (
    LONG_PLANAR_TWISTS,
    LONG_ROTATION_VECTORS,
    LONG_TWISTS,
    PLANAR_TWISTS,
    PLANE,
    QUATERNIONS,
    ROTATION_VECTORS,
    SLANTED,
    TWISTS,
    bracket,
    conjugation,
    cross_matrix,
    differences,
    integral,
    near,
    planar,
    pose_of,
    twist_matrix,
)

Points = dict[str, list[np.ndarray]]


def single(points: dict[str, np.ndarray]) -> Points:
    return {name: [point] for name, point in points.items()}


def paired(points: dict[str, np.ndarray], partner: np.ndarray) -> Points:
    return {name: [point, partner] for name, point in points.items()}


def below_a_turn(points: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Without a full turn, where the differential has no inverse."""
    return {name: point for name, point in points.items() if name != "turn"}


VECTORS = {**ROTATION_VECTORS, **LONG_ROTATION_VECTORS}
BODY = {**TWISTS, **LONG_TWISTS}
FLAT = {**PLANAR_TWISTS, **LONG_PLANAR_TWISTS}
ROTATIONS = {name: Rotation.from_rotvec(w).as_matrix() for name, w in VECTORS.items()}
POSES = {name: pose_of(twist) for name, twist in BODY.items()}
ANY_NORM = {
    **QUATERNIONS,
    "long": 3.0 * QUATERNIONS["negative"],
    "short": 0.01 * QUATERNIONS["small"],
}
RATE = np.array([0.3, -0.2, 0.5])
OTHER = np.array([0.1, -0.7, 0.5, 0.5])


def ad2(twist: np.ndarray) -> np.ndarray:
    return bracket(planar(twist))[np.ix_(PLANE, PLANE)]


def flat_pose(pose: np.ndarray) -> np.ndarray:
    """Matrix of planar coordinates (x, y, theta)."""
    matrix = pose_of(planar([0.0, 0.0, pose[2]]))
    matrix[:2, 3] = pose[:2]
    return matrix


def left(q: np.ndarray) -> np.ndarray:
    """Matrix of the product with a quaternion from the left."""
    x, y, z, w = q
    return np.array([[w, -z, y, x], [z, w, -x, y], [-y, x, w, z], [-x, -y, -z, w]])


def skew_part(matrix: np.ndarray) -> np.ndarray:
    rotation = (matrix[:3, :3] - matrix[:3, :3].T) / 2
    return np.array([rotation[2, 1], rotation[0, 2], rotation[1, 0]])


def placed(translation: np.ndarray, q: np.ndarray) -> np.ndarray:
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = Rotation.from_quat(q).as_matrix(), translation
    return pose


def aligned(pose: np.ndarray) -> np.ndarray:
    """Matrix (6, 6) of body to hybrid twists."""
    return block_diag(pose[:3, :3], pose[:3, :3])


def spatial(pose: np.ndarray) -> np.ndarray:
    """Matrix (6, 6) of hybrid to spatial twists."""
    return conjugation(pose) @ aligned(pose).T


def equals(oracle: Callable, tolerance: float = 1e-12) -> Callable:
    """Compare a value with that of another computation."""
    return lambda value, *given: near(value, oracle(*given), tolerance)


def logarithm(motion: Callable, given: Callable = lambda x: x) -> Callable:
    """Demand the shortest vector whose exponential, by another computation, is what was given."""

    def check(value: np.ndarray, x: np.ndarray) -> None:
        near(motion(value), given(x), 2e-13)
        angle = value[-1:] if motion is flat_exponential else value[-3:]
        assert np.linalg.norm(angle) <= np.pi + 1e-15

    return check


def flat_exponential(twist: np.ndarray) -> np.ndarray:
    return pose_of(planar(twist))


def one_sign(value: np.ndarray, rotation: np.ndarray) -> None:
    """Demand the unit quaternion of a rotation with a scalar part that is not negative."""
    assert value[3] >= 0.0
    assert np.linalg.norm(value) == pytest.approx(1.0, abs=1e-15)
    near(Rotation.from_quat(value).as_matrix(), rotation, 1e-14)


def rotation_of(w: np.ndarray) -> np.ndarray:
    return Rotation.from_rotvec(w).as_matrix()


def by_quaternion(q: np.ndarray) -> np.ndarray:
    return Rotation.from_quat(q).as_matrix()


def inverse_of(operator: Callable, sign: float) -> Callable:
    """Demand the inverse of the integral of the exponential of an operator."""

    def check(value: np.ndarray, x: np.ndarray) -> None:
        near(value @ integral(sign * operator(x)), np.eye(len(value)), 4e-12)

    return check


class Case(NamedTuple):
    function: Callable
    points: Points
    check: Callable
    jumps: bool = False  # at the angle pi


def differentials(module: object, name: str, operator: Callable, points: dict) -> dict[str, Case]:
    """Both differentials of the exponential, and their inverses."""
    cases = {}
    for side, sign in (("body", -1.0), ("spatial", 1.0)):
        forward = equals(lambda x, sign=sign: integral(sign * operator(x)))
        cases[f"{name}.dexp_{side}"] = Case(
            getattr(module, f"dexp_{side}"), single(points), forward
        )
        cases[f"{name}.dexp_{side}_inverse"] = Case(
            getattr(module, f"dexp_{side}_inverse"),
            single(below_a_turn(points)),
            inverse_of(operator, sign),
        )
    return cases


def converted(source: str, target: str, name: str) -> Callable:
    return functools.partial(getattr(se3, f"convert_{name}"), source=source, target=target)


CASES = {
    "so3.skew": Case(so3.skew, single(VECTORS), equals(cross_matrix, 0.0)),
    "so3.vee": Case(so3.vee, single(ROTATIONS), equals(skew_part, 1e-16)),
    "so3.exp": Case(so3.exp, single(VECTORS), equals(rotation_of, 2e-15)),
    "so3.log": Case(so3.log, single(ROTATIONS), logarithm(rotation_of), jumps=True),
    **differentials(so3, "so3", cross_matrix, VECTORS),
    "quaternion.multiply": Case(
        quaternion.multiply, paired(QUATERNIONS, OTHER), equals(lambda a, b: left(a) @ b, 1e-15)
    ),
    "quaternion.conjugate": Case(
        quaternion.conjugate,
        single(QUATERNIONS),
        equals(lambda q: q * [-1.0, -1.0, -1.0, 1.0], 0.0),
    ),
    "quaternion.normalize": Case(
        quaternion.normalize, single(ANY_NORM), equals(lambda q: q / np.linalg.norm(q), 1e-15)
    ),
    "quaternion.to_matrix": Case(
        quaternion.to_matrix, single(QUATERNIONS), equals(by_quaternion, 1e-14)
    ),
    "quaternion.from_matrix": Case(quaternion.from_matrix, single(ROTATIONS), one_sign, jumps=True),
    "quaternion.exp": Case(
        quaternion.exp,
        single(VECTORS),
        equals(
            lambda w: [
                *np.sinc(np.linalg.norm(w) / 2 / np.pi) * w / 2,
                np.cos(np.linalg.norm(w) / 2),
            ],
            1e-15,
        ),
    ),
    "quaternion.log": Case(
        quaternion.log, single(ANY_NORM), logarithm(rotation_of, by_quaternion), jumps=True
    ),
    "quaternion.rate": Case(
        quaternion.rate, paired(QUATERNIONS, RATE), equals(lambda q, w: left(q)[:, :3] @ w / 2)
    ),
    "quaternion.rotate": Case(
        quaternion.rotate, paired(QUATERNIONS, RATE), equals(lambda q, x: by_quaternion(q) @ x)
    ),
    "se2.exp": Case(
        se2.exp, single(FLAT), equals(lambda t: [*expm(twist_matrix(planar(t)))[:2, 3], t[2]])
    ),
    "se2.log": Case(se2.log, single(FLAT), logarithm(flat_exponential, flat_pose), jumps=True),
    "se2.compose": Case(
        se2.compose,
        paired(FLAT, RATE),
        equals(lambda a, b: [*(flat_pose(a) @ flat_pose(b))[:2, 3], a[2] + b[2]]),
    ),
    "se2.inverse": Case(
        se2.inverse,
        single(FLAT),
        equals(lambda a: [*np.linalg.inv(flat_pose(a))[:2, 3], -a[2]]),
    ),
    "se2.rate": Case(
        se2.rate,
        paired(FLAT, RATE),
        equals(lambda a, t: (flat_pose(a) @ twist_matrix(planar(t)))[:3, 3] + [0, 0, t[2]]),
    ),
    "se2.adjoint": Case(
        se2.adjoint,
        single(FLAT),
        equals(lambda a: conjugation(flat_pose(a))[np.ix_(PLANE, PLANE)]),
    ),
    "se2.ad": Case(se2.ad, single(FLAT), equals(ad2, 0.0)),
    **differentials(se2, "se2", ad2, FLAT),
    "se3.hat": Case(se3.hat, single(BODY), equals(twist_matrix, 0.0)),
    "se3.vee": Case(se3.vee, single(POSES), equals(lambda m: [*m[:3, 3], *skew_part(m)], 1e-16)),
    "se3.exp": Case(se3.exp, single(BODY), equals(lambda t: expm(twist_matrix(t)))),
    "se3.log": Case(se3.log, single(POSES), logarithm(pose_of), jumps=True),
    "se3.inverse": Case(se3.inverse, single(POSES), equals(np.linalg.inv)),
    "se3.pose": Case(
        se3.pose, {name: [RATE, q] for name, q in QUATERNIONS.items()}, equals(placed, 1e-14)
    ),
    "se3.adjoint": Case(se3.adjoint, single(POSES), equals(conjugation)),
    "se3.ad": Case(se3.ad, single(BODY), equals(bracket, 1e-14)),
    **differentials(se3, "se3", bracket, BODY),
    "se3.convert_twist": Case(
        converted("hybrid", "spatial", "twist"),
        paired(POSES, TWISTS["general"]),
        equals(lambda pose, twist: spatial(pose) @ twist),
    ),
    "se3.convert_wrench": Case(
        converted("hybrid", "spatial", "wrench"),
        paired(POSES, TWISTS["general"]),
        equals(lambda pose, wrench: np.linalg.solve(spatial(pose).T, wrench)),
    ),
    "se3.convert_inertia": Case(
        converted("body", "spatial", "inertia"),
        paired(POSES, np.diag([2.0, 2.0, 2.0, 0.3, 0.4, 0.5])),
        equals(
            lambda pose, inertia: (
                np.linalg.inv(conjugation(pose)).T @ inertia @ np.linalg.inv(conjugation(pose))
            )
        ),
    ),
}
every_function = pytest.mark.parametrize("name", CASES)


@functools.cache
def derivatives(name: str) -> ca.Function:
    """From flat arguments to value, Jacobian, slope, gradient, Hessian of a function."""
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


@pytest.mark.parametrize("module", [quaternion, se2, se3, so3])
def test_every_public_function_is_listed(module):
    short = module.__name__.rpartition(".")[2]
    public = {
        f"{short}.{name}"
        for name, value in vars(module).items()
        if getattr(value, "__module__", None) == module.__name__ and not name.startswith("_")
    }
    assert public
    assert public <= set(CASES)


@every_function
def test_values_and_derivatives(name):
    case = CASES[name]

    def check(point):
        number = case.function(*case.points[point])
        assert number.dtype == np.float64
        case.check(number, *case.points[point])
        x = flat_point(name, point)
        value, jacobian, slope, gradient, hessian = map(np.array, derivatives(name)(x))
        near(value[:, 0], number.ravel(order="F"), 1e-14)
        for result in (jacobian, slope, gradient, hessian):
            assert np.isfinite(result).all()
        near(jacobian @ np.sin(1 + np.arange(len(x))), slope[:, 0])
        near(np.cos(1 + np.arange(len(value))) @ jacobian, gradient[:, 0])
        near(hessian, hessian.T)

    each(case.points, check)


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


@every_function
def test_lists_are_taken_and_wrong_shapes_and_numbers_refused(name):
    function, points = CASES[name].function, CASES[name].points
    arrays = next(points[key] for key in ("general", "half", "small") if key in points)
    own, number = name.rpartition(".")[2], function(*arrays)
    np.testing.assert_array_equal(function(*(a.tolist() for a in arrays)), number)
    assert function(ca.SX(ca.DM(arrays[0])), *arrays[1:]).is_constant()
    for index, array in enumerate(arrays):
        wrong = [*arrays]
        wrong[index] = np.ones(len(array) + 1)
        for given in (wrong, [ca.SX.sym("x", *np.atleast_2d(a.T).T.shape) for a in wrong]):
            with pytest.raises(ShapeError, match=own):
                function(*given)
        for bad in (np.nan, np.inf, -np.inf):
            wrong[index] = array.copy()
            wrong[index].flat[0] = bad
            with pytest.raises(NonFiniteError, match=own) as caught:
                function(*wrong)
            assert caught.value.entries == (0,)


@pytest.mark.parametrize(
    ("expression", "nonzeros"),
    [
        (so3.skew(ca.SX.sym("w", 3)), 6),
        (se3.hat(ca.SX.sym("x", 6)), 9),
        (se3.exp(ca.SX.sym("x", 6)), 13),
        (se3.inverse(ca.SX.sym("H", 4, 4)), 13),
        (se3.adjoint(ca.SX.sym("H", 4, 4)), 27),
        (se3.dexp_spatial_inverse(ca.SX.sym("x", 6)), 27),
        (se2.dexp_body(ca.SX.sym("x", 3)), 7),
    ],
)
def test_structural_zeros_are_kept(expression, nonzeros):
    assert expression.nnz() == nonzeros


# --- accuracy of the logarithms ---------------------------------------------------------------


@pytest.mark.parametrize("gap", [1e-2, 1e-4, 1e-6, 1e-8, 1e-10])
def test_logarithms_are_accurate_near_the_half_turn(gap):
    w = (np.pi - gap) * SLANTED
    near(so3.log(so3.exp(w)), w, 1e-15)
    near(quaternion.log(quaternion.exp(w)), w, 1e-15)
    twist = np.array([1.0, 2.0, 3.0, *w])
    near(se3.log(se3.exp(twist)), twist, 5e-15)
    pose = np.array([1.0, 2.0, gap - np.pi])
    assert se2.log(pose)[2] == pytest.approx(pose[2], abs=1e-15)
    near(se2.exp(se2.log(pose)), pose, 1e-14)


@pytest.mark.parametrize("size", [1e-3, 1e-9, 1e-100, 1e-170, 1e-300])
def test_logarithm_is_accurate_relative_to_a_small_angle(size):
    np.testing.assert_allclose(so3.log(so3.exp(size * SLANTED)), size * SLANTED, rtol=1e-14)


@pytest.mark.parametrize(
    "axis", [*np.eye(3), *-np.eye(3), SLANTED, [0.6, 0.8, 0], [0, -0.6, 0.8], [1e-8, 0, 1]]
)
def test_logarithm_of_a_half_turn_is_one_of_two(axis):
    axis = np.array(axis) / np.linalg.norm(axis)
    w = so3.log(2 * np.outer(axis, axis) - np.eye(3))
    near(abs(w @ axis), np.pi, 1e-15)
    near(np.linalg.norm(w), np.pi, 1e-15)


@pytest.mark.parametrize("tangent", np.sqrt(0.05) * np.array([1 - 1e-9, 1 - 1e-15, 1 + 1e-9]))
def test_logarithm_on_both_sides_of_its_seam(tangent):
    near(quaternion.log([*tangent * SLANTED, 1.0]), 2 * np.arctan(tangent) * SLANTED, 5e-16)


@pytest.mark.parametrize("largest", range(4))
@pytest.mark.parametrize("other", [0.0, 1e-9, 0.3, -0.3])
def test_quaternion_of_a_matrix_whichever_entry_is_largest(largest, other):
    q = np.full(4, other)
    q[largest] = 1.0
    q /= np.linalg.norm(q)
    one_sign(quaternion.from_matrix(by_quaternion(q)), by_quaternion(q))


def test_planar_logarithm_takes_the_angle_modulo_a_turn():
    for turns in range(-5, 6):
        near(se2.log([0.5, -0.3, 0.7 + 2 * np.pi * turns]), se2.log([0.5, -0.3, 0.7]), 2e-14)


# --- generated code ---------------------------------------------------------------------------


@pytest.mark.extended
def test_generated_c_gives_the_same_finite_derivatives(tmp_path):
    names = ["se3.exp", "se3.log", "se3.dexp_spatial", "se3.dexp_spatial_inverse"]
    names += ["se2.log", "se2.dexp_spatial_inverse", "quaternion.exp", "quaternion.log"]
    generator, library = ca.CodeGenerator("groups.c"), tmp_path / "groups.so"
    for name in names:
        generator.add(derivatives(name))
    generator.generate(f"{tmp_path}/")
    command = ["cc", "-O0", "-fPIC", "-shared", str(tmp_path / "groups.c"), "-o", str(library)]
    subprocess.run([*command, "-lm"], check=True, capture_output=True)
    for name in names:
        function = ca.external(derivatives(name).name(), str(library))
        for point in CASES[name].points:
            x = flat_point(name, point)
            for result, expected in zip(function(x), derivatives(name)(x), strict=True):
                assert np.isfinite(np.array(result)).all(), (name, point)
                near(np.array(result), np.array(expected), 1e-13)
