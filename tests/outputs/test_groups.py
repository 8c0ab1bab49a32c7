"""Error geometry of each output group against matrix exponentials, logarithms and differences."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import casadi as ca
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import solve_ivp
from scipy.linalg import block_diag, expm, logm
from scipy.spatial.transform import Rotation

from concur.control import ErrorDynamics
from concur.outputs import Output
from tests.control._cases import PoseCurve
from tests.groups.oracles import bracket, conjugation, integral, twist_matrix, twist_of
from tests.oracles import assert_close, difference_quotient

PLANE, TURN = [0, 1, 5], [3, 4, 5]
OUTPUTS = {
    "R": Output("o", "b", "R", (0.2, -0.1, 0.3), axes="z"),
    "R2": Output("o", "b", "R2", (0.2, -0.1, 0.3)),
    "R2 xz": Output("o", "b", "R2", (0.2, -0.1, 0.3), axes="xz"),
    "R3": Output("o", "b", "R3", (0.2, -0.1, 0.3)),
    "R3 zxy": Output("o", "b", "R3", (0.2, -0.1, 0.3), axes="zxy"),
    "SO2": Output("o", "b", "SO2", (0.2, -0.1, 0.3)),
    "SE2": Output("o", "b", "SE2", (0.2, -0.1, 0.3)),
    "SO3": Output("o", "b", "SO3", (0.2, -0.1, 0.3)),
    "SE3": Output("o", "b", "SE3", (0.2, -0.1, 0.3)),
    "R3xSO3": Output("o", "b", "R3xSO3", (0.2, -0.1, 0.3)),
}
TURNED = tuple(Rotation.from_rotvec([0.7, -1.1, 0.4]).as_quat())
TOOLS = {
    group: Output("tool", "b", group, (0.2, -0.1, 0.3), orientation=TURNED)
    for group in ("SE3", "R3xSO3", "SO3")
}
groups = pytest.mark.parametrize("name", OUTPUTS)
moving = pytest.mark.parametrize("output", [*OUTPUTS.values(), *TOOLS.values()])
curved = pytest.mark.parametrize("name", ["SE2", "SO3", "SE3", "R3xSO3"])

MOVES = {
    True: (np.array([0.4, -0.3, 0, 0, 0, 0.9]), np.array([-0.2, 0.5, 0, 0, 0, 0.7])),
    False: (np.array([0.4, -0.3, 0.2, 0.5, -0.7, 0.9]), np.array([-0.2, 0.5, 0.1, 0.3, 0.8, -0.4])),
}


def body_motion(output: Output) -> PoseCurve:
    """Motion of a body: in the plane for groups of the plane."""
    a, b = MOVES[output.lie.planar]
    start = expm(twist_matrix(np.array([1.0, 2.0, 0.0, 0.0, 0.0, 0.6])))
    if not output.lie.planar:
        start = start @ expm(twist_matrix(np.array([0.3, -0.2, 0.5, 0.8, -0.6, 0.2])))
    return PoseCurve(start, a, b)


def numeric(function: Callable[..., ca.SX], *sizes: tuple[int, ...]) -> Callable[..., np.ndarray]:
    """Make a function over SX into one over arrays."""
    symbols = [ca.SX.sym(f"x{k}", *size) for k, size in enumerate(sizes)]
    graph = ca.Function("f", symbols, [ca.densify(function(*symbols))])

    def call(*arrays: np.ndarray) -> np.ndarray:
        result = np.array(graph(*arrays))
        return result[:, 0] if result.shape[1] == 1 else result

    return call


def coordinates(output: Output) -> Callable[[np.ndarray], np.ndarray]:
    of = numeric(lambda r, p: output.lie.coordinates(output.placed((r, p))), (3, 3), (3,))
    return lambda pose: of(pose[:3, :3], pose[:3, 3])


def velocity(output: Output) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    of = numeric(
        lambda r, p, t: output.lie.velocity(output.placed((r, p)), output.moved((t[:3], t[3:]))),
        (3, 3),
        (3,),
        (6,),
    )
    return lambda pose, twist: of(pose[:3, :3], pose[:3, 3], twist)


def acceleration(output: Output) -> Callable[..., np.ndarray]:
    of = numeric(
        lambda r, p, t, a: output.lie.acceleration(
            output.placed((r, p)), output.moved((t[:3], t[3:])), output.moved((a[:3], a[3:]))
        ),
        (3, 3),
        (3,),
        (6,),
        (6,),
    )
    return lambda pose, twist, rate: of(pose[:3, :3], pose[:3, 3], twist, rate)


def left_trivialised(name: str, flat: np.ndarray, rate: np.ndarray) -> np.ndarray:
    """gamma^-1 gammadot from flat coordinates and their rates, by hand."""
    if (name[0] == "R" and name != "R3xSO3") or name == "SO2":
        return rate
    if name == "SE2":
        cos, sin = np.cos(flat[2]), np.sin(flat[2])
        return np.array([cos * rate[0] + sin * rate[1], cos * rate[1] - sin * rate[0], rate[2]])
    x, y, z, w = flat[-4:]
    matrix = np.array([[w, z, -y, -x], [-z, w, x, -y], [y, -x, w, -z]])
    turning = 2 * matrix @ rate[-4:]
    if name == "SO3":
        return turning
    if name == "R3xSO3":
        return np.concatenate([rate[:3], turning])
    return np.concatenate([Rotation.from_quat(flat[3:]).as_matrix().T @ rate[:3], turning])


@groups
def test_coordinates_are_those_of_the_moved_point(name: str) -> None:
    output = OUTPUTS[name]
    pose = body_motion(output).motion(np.array([0.4]))[0][0]
    place = pose[:3, :3] @ output.point + pose[:3, 3]
    attitude = Rotation.from_matrix(pose[:3, :3])
    heading = np.arctan2(pose[1, 0], pose[0, 0])
    q = attitude.as_quat(canonical=True)
    expected = {
        "R": place[2:],
        "R2": place[:2],
        "R2 xz": place[[0, 2]],
        "R3": place,
        "R3 zxy": place[[2, 0, 1]],
        "SO2": [heading],
        "SE2": [*place[:2], heading],
        "SO3": q,
        "SE3": [*place, *q],
        "R3xSO3": [*place, *q],
    }
    found = coordinates(output)(pose)
    if q.size and name in ("SO3", "SE3", "R3xSO3") and found[-1] < 0:
        found[-4:] = -found[-4:]
    assert_allclose(found, expected[name], rtol=0, atol=1e-14)


@moving
def test_velocity_and_acceleration_are_rates_of_the_coordinates(output: Output) -> None:
    curve, place = body_motion(output), coordinates(output)

    def flat(t: float) -> np.ndarray:
        return place(curve.motion(np.array([t]))[0][0])

    def rate(t: float) -> np.ndarray:
        slope = difference_quotient(lambda h: flat(t + h), 2e-3)
        return left_trivialised(output.group, flat(t), slope)

    for t in (0.0, 0.3, 0.7, 1.1):
        (pose,), (twist,), (change,) = curve.motion(np.array([t]))
        assert_close(velocity(output)(pose, twist), rate(t), 1e-10)
        expected = difference_quotient(lambda h, t=t: rate(t + h), 2e-2)
        assert np.abs(expected).max() > 0.1
        assert_close(acceleration(output)(pose, twist, change), expected, 1e-6)


def matrices(name: str, rng: np.random.Generator, angle: float) -> tuple[np.ndarray, np.ndarray]:
    """A random pose and an error twist of a given angle, in SE(3), for a group of poses."""
    pose = expm(twist_matrix(rng.uniform(-1.0, 1.0, 6)))
    error = np.zeros(6)
    direction = rng.normal(size=3)
    error[3:] = angle * direction / np.linalg.norm(direction)
    error[:3] = rng.uniform(-0.5, 0.5, 3)
    if name == "SE2":
        pose = expm(twist_matrix(np.array([0.3, -0.4, 0, 0, 0, rng.uniform(-2, 2)])))
        error[2:5], error[5] = 0.0, angle * rng.choice([-1.0, 1.0])
    return pose, error


def as_coordinates(name: str, pose: np.ndarray) -> np.ndarray:
    if name == "SE2":
        return np.array([*pose[:2, 3], np.arctan2(pose[1, 0], pose[0, 0])])
    q = Rotation.from_matrix(pose[:3, :3]).as_quat()
    return q if name == "SO3" else np.array([*pose[:3, 3], *q])


def restrict(name: str, operator: np.ndarray) -> np.ndarray:
    """Part of an operator on se(3) that belongs to a group."""
    if name == "R3xSO3":
        return block_diag(np.eye(3), operator[3:, 3:])
    keep = {"SE2": PLANE, "SO3": TURN, "SE3": range(6)}[name]
    return operator[np.ix_(list(keep), list(keep))]


def error_of(name: str, actual: np.ndarray, desired: np.ndarray) -> np.ndarray:
    """log(r^-1 gamma) by SciPy."""
    relative = np.linalg.inv(actual) @ desired
    turn = Rotation.from_matrix(relative[:3, :3]).as_rotvec()
    if name == "SO3":
        return turn
    if name == "R3xSO3":
        return np.concatenate([desired[:3, 3] - actual[:3, 3], turn])
    twist = twist_of(logm(relative).real)
    return twist[PLANE] if name == "SE2" else twist


ANGLES = [1e-9, 0.3, 2.0, np.pi - 1e-4]
angles = pytest.mark.parametrize("angle", ANGLES)


@curved
@angles
def test_error_is_the_logarithm(name: str, angle: float) -> None:
    lie, rng = OUTPUTS[name].lie, np.random.default_rng(1)
    error = numeric(lie.error, (lie.pose_size,), (lie.pose_size,))
    for _ in range(5):
        pose, x = matrices(name, rng, angle)
        desired = pose @ expm(twist_matrix(x))
        found = error(as_coordinates(name, pose), as_coordinates(name, desired))
        expected = error_of(name, pose, desired)
        # Near half a turn the logarithm of a matrix loses half of the digits; the twist that
        # was exponentiated is exact.
        if name in ("SE2", "SE3"):
            keep = PLANE if name == "SE2" else range(6)
            assert_close(found, x[list(keep)], 1e-10)
            assert_close(found, expected, 1e-6 if angle > 3 else 1e-10)
        else:
            assert_close(found, expected, 1e-10)


def test_quaternions_of_either_sign_are_the_same_rotation() -> None:
    lie = OUTPUTS["SO3"].lie
    error = numeric(lie.error, (4,), (4,))
    rng = np.random.default_rng(2)
    for _ in range(5):
        a, b = Rotation.random(2, rng=rng)
        expected = (a.inv() * b).as_rotvec()
        for sign in (1, -1):
            assert_close(error(sign * a.as_quat(), b.as_quat()), expected, 1e-12)


@pytest.mark.parametrize("name", ["R", "R2", "R3", "SO2"])
def test_error_of_abelian_groups(name: str) -> None:
    lie = OUTPUTS[name].lie
    n = lie.dim
    error = numeric(lie.error, (n,), (n,))
    rng = np.random.default_rng(3)
    for _ in range(10):
        a, b = rng.uniform(-9.0, 9.0, (2, n))
        expected = b - a
        if name == "SO2":
            expected = (expected + np.pi) % (2 * np.pi) - np.pi
        assert_allclose(error(a, b), expected, rtol=0, atol=1e-13)
    assert lie.abelian
    x = rng.normal(size=n)
    assert_allclose(np.array(ca.DM(lie.transport(ca.SX(x)))), np.eye(n))
    assert_allclose(np.array(ca.DM(lie.error_map(ca.SX(x)))), np.eye(n))
    assert_allclose(np.array(ca.DM(lie.ad(ca.SX(x)))), np.zeros((n, n)))


def as_twist(name: str, x: np.ndarray) -> np.ndarray:
    twist = np.zeros(6)
    twist[{"SE2": PLANE, "SO3": TURN}.get(name, list(range(6)))] = x
    if name == "R3xSO3":
        twist[:3] = 0.0
    return twist


def algebra_element(name: str, rng: np.random.Generator, angle: float) -> np.ndarray:
    _, x = matrices(name, rng, angle)
    return x[{"SE2": PLANE, "SO3": TURN}.get(name, list(range(6)))]


@curved
@angles
def test_transport_bracket_and_error_map_are_series(name: str, angle: float) -> None:
    # B(x) = (int_0^1 exp(s ad_x) ds)^-1, transport = exp(ad_x).
    lie, rng = OUTPUTS[name].lie, np.random.default_rng(4)
    n = lie.dim
    transport, ad = numeric(lie.transport, (n,)), numeric(lie.ad, (n,))
    error_map = numeric(lie.error_map, (n,))
    for _ in range(3):
        x = algebra_element(name, rng, angle)
        twist = as_twist(name, x)
        assert_close(transport(x), restrict(name, conjugation(expm(twist_matrix(twist)))), 1e-12)
        expected = bracket(twist)
        if name == "R3xSO3":
            expected[:3] = 0.0
            assert_close(ad(x), expected, 1e-14)
        else:
            assert_close(ad(x), restrict(name, expected), 1e-14)
        operator = restrict(name, integral(bracket(twist)))
        assert_close(error_map(x), np.linalg.inv(operator), 1e-11)


@curved
@angles
def test_identities_of_the_error_map(name: str, angle: float) -> None:
    """Thesis: Proposition 5.2.6, (5.2.18)."""
    # P1: B(x) x = x, B(-x) = B(x) Ad, and Theta^-1 Ad_(re^-1) = B(x) with
    # Theta = int_0^1 Ad_exp(-s x) ds.
    lie, rng = OUTPUTS[name].lie, np.random.default_rng(5)
    n = lie.dim
    error_map, transport = numeric(lie.error_map, (n,)), numeric(lie.transport, (n,))
    for _ in range(3):
        x = algebra_element(name, rng, angle)
        assert_close(error_map(x) @ x, x, 1e-12)
        assert_close(error_map(-x), error_map(x) @ transport(x), 1e-11)
        theta = restrict(name, integral(-bracket(as_twist(name, x))))
        assert_close(np.linalg.solve(theta, transport(-x)), error_map(x), 1e-11)


def two_curves(name: str) -> tuple[PoseCurve, PoseCurve]:
    if name == "SE2":
        a, b = MOVES[True]
        actual = PoseCurve(expm(twist_matrix(np.array([1.0, 2, 0, 0, 0, 0.6]))), a, b)
        return actual, PoseCurve(expm(twist_matrix(np.array([1.2, 1.7, 0, 0, 0, 2.0]))), b, a)
    a, b = MOVES[False]
    actual = PoseCurve(expm(twist_matrix(np.array([0.3, -0.2, 0.5, 0.8, -0.6, 0.2]))), a, b)
    return actual, PoseCurve(expm(twist_matrix(np.array([0.1, 0.2, 0.4, -0.5, 0.7, 0.6]))), b, a)


def in_group(name: str, curve: PoseCurve, t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pose in SE(3), output velocity and its rate."""
    (pose,), (twist,), (rate,) = curve.motion(np.array([t]))
    if name == "R3xSO3":
        turn, w = pose[:3, :3], twist[3:]
        linear = turn @ twist[:3], turn @ (rate[:3] + np.cross(w, twist[:3]))
        return pose, np.array([*linear[0], *w]), np.array([*linear[1], *rate[3:]])
    keep = {"SE2": PLANE, "SO3": TURN}.get(name, list(range(6)))
    return pose, twist[keep], rate[keep]


@curved
def test_error_moves_as_the_error_map_says(name: str) -> None:
    """Thesis: Corollary 5.2.5, (5.2.19)."""
    # xdot = -B(x) ve with ve = xi_r - Ad xi_g.
    lie, (actual, desired) = OUTPUTS[name].lie, two_curves(name)
    n = lie.dim
    error_map, transport = numeric(lie.error_map, (n,)), numeric(lie.transport, (n,))
    for t in (0.1, 0.5, 0.9):

        def x(h: float, t: float = t) -> np.ndarray:
            return error_of(
                name, in_group(name, actual, t + h)[0], in_group(name, desired, t + h)[0]
            )

        _, xi_r, _ = in_group(name, actual, t)
        _, xi_g, _ = in_group(name, desired, t)
        ve = xi_r - transport(x(0.0)) @ xi_g
        assert_close(-error_map(x(0.0)) @ ve, difference_quotient(x), 1e-8)


@curved
def test_feed_forward_is_the_rate_of_the_carried_velocity(name: str) -> None:
    """Thesis: (5.2.16), (5.2.17), (5.4.33), (5.4.34)."""
    # P3: d/dt (Ad xi_g) = Ad d/dt xi_g - ad_(xi_r) Ad xi_g. With a plus it would be wrong.
    lie, (actual, desired) = OUTPUTS[name].lie, two_curves(name)
    n = lie.dim
    transport, ad = numeric(lie.transport, (n,)), numeric(lie.ad, (n,))
    for t in (0.1, 0.5, 0.9):

        def carried(h: float, t: float = t) -> np.ndarray:
            pose, _, _ = in_group(name, actual, t + h)
            wanted, xi_g, _ = in_group(name, desired, t + h)
            relative = np.linalg.inv(pose) @ wanted
            return restrict(name, conjugation(relative)) @ xi_g

        pose, xi_r, _ = in_group(name, actual, t)
        wanted, xi_g, xi_g_rate = in_group(name, desired, t)
        carry = transport(error_of(name, pose, wanted))
        assert_close(carry @ xi_g, carried(0.0), 1e-11)
        expected = difference_quotient(carried)
        turning = ad(xi_r) @ carry @ xi_g
        assert_close(carry @ xi_g_rate - turning, expected, 1e-9)
        assert np.abs(carry @ xi_g_rate + turning - expected).max() > 1e-2


def error_function(name: str, stiffness: np.ndarray):  # type: ignore[no-untyped-def]
    def value(actual: np.ndarray, desired: np.ndarray) -> float:
        x = error_of(name, actual, desired)
        return float(x @ stiffness @ x) / 2

    return value


def spd(n: int, rng: np.random.Generator) -> np.ndarray:
    root = rng.normal(size=(n, n))
    return root @ root.T + np.eye(n)


def moved(name: str, pose: np.ndarray, direction: np.ndarray, h: float) -> np.ndarray:
    """Pose after a left-trivialised displacement."""
    if name == "R3xSO3":
        turned = pose @ expm(twist_matrix(np.array([0, 0, 0, *(h * direction[3:])])))
        turned[:3, 3] += h * direction[:3]
        return turned
    return pose @ expm(twist_matrix(h * as_twist(name, direction)))


def _swapped(function, second, first):  # type: ignore[no-untyped-def]
    return function(first, second)


def slopes(name: str, function: Callable[[np.ndarray], float], pose: np.ndarray) -> np.ndarray:
    """Left-trivialised differential of a function of a pose."""
    return np.array(
        [
            difference_quotient(lambda h, e=e: function(moved(name, pose, e, h)))
            for e in np.eye(OUTPUTS[name].dim)
        ]
    )


@curved
def test_feedback_is_minus_the_slope_of_the_error_function(name: str) -> None:
    """Thesis: (5.2.13)-(5.2.15)."""
    # P2: T*L_r d1 Er = -B(x)^T KP x and T*L_gamma d2 Er = B(-x)^T KP x.
    lie, rng = OUTPUTS[name].lie, np.random.default_rng(7)
    n = lie.dim
    error_map = numeric(lie.error_map, (n,))
    for angle in (0.2, 1.0, 2.0, 2.8):
        pose, twist = matrices(name, rng, angle)
        desired = pose @ expm(twist_matrix(twist))
        stiffness = spd(n, rng)
        value = error_function(name, stiffness)
        x = error_of(name, pose, desired)
        first = slopes(name, partial(_swapped, value, desired), pose)
        second = slopes(name, partial(value, pose), desired)
        assert_close(-error_map(x).T @ stiffness @ x, first, 1e-7)
        assert_close(error_map(-x).T @ stiffness @ x, second, 1e-7)
        dynamics = ErrorDynamics(lie, stiffness, np.eye(n), inertia := spd(n, rng))
        zero = np.zeros(n)
        assert_close(dynamics.feedback(x, zero), -np.linalg.solve(inertia, first), 1e-7)


@groups
def test_solution_is_that_of_another_integration(name: str) -> None:
    lie, rng = OUTPUTS[name].lie, np.random.default_rng(8)
    n = lie.dim
    stiffness, damping, inertia = (spd(n, rng) for _ in range(3))
    dynamics = ErrorDynamics(lie, stiffness, damping, inertia)
    x0, ve0 = 0.7 * rng.normal(size=n) / np.sqrt(n), 0.5 * rng.normal(size=n)

    def inverse_map(x: np.ndarray) -> np.ndarray:
        if lie.abelian:
            return np.eye(n)
        return np.linalg.inv(restrict(name, integral(bracket(as_twist(name, x)))))

    def slope(_: float, z: np.ndarray) -> np.ndarray:
        x, ve = z[:n], z[n:]
        mapped = inverse_map(x)
        force = mapped.T @ stiffness @ x - damping @ ve
        return np.concatenate([-mapped @ ve, np.linalg.solve(inertia, force)])

    times = np.array([0.0, 0.3, 0.35, 1.0])
    other = solve_ivp(slope, (0, 1), [*x0, *ve0], "DOP853", t_eval=times, rtol=1e-10, atol=1e-12)
    found = dynamics.solve(x0, ve0, times)
    assert dynamics.linear == lie.abelian
    assert_allclose(found, other.y[:n].T, rtol=0, atol=1e-9)
    z = np.concatenate([x0, ve0])
    assert_close(np.concatenate(dynamics.rate(x0, ve0)), slope(0, z), 1e-11)
    assert dynamics.lyapunov(x0, ve0) == pytest.approx(
        (x0 @ stiffness @ x0 + ve0 @ inertia @ ve0) / 2, rel=1e-13
    )


def test_error_of_a_rotation_falls_at_half_the_damping() -> None:
    # P10: V = (kp |x|^2 - kd x.ve + |ve|^2)/2 has Vdot = -kd V - (kd/2)(|ve|^2 - ve B ve).
    lie, rng = OUTPUTS["SO3"].lie, np.random.default_rng(9)
    kp, kd = 4.0, 2.8
    dynamics = ErrorDynamics(lie, kp * np.eye(3), kd * np.eye(3), np.eye(3))
    error_map = numeric(lie.error_map, (3,))
    for angle in (0.1, 1.0, 2.0, 3.0):
        x, ve = algebra_element("SO3", rng, angle), rng.normal(size=3)
        xdot, vedot = dynamics.rate(x, ve)
        value = (kp * x @ x - kd * x @ ve + ve @ ve) / 2
        rate = kp * x @ xdot - kd / 2 * (xdot @ ve + x @ vedot) + ve @ vedot
        rest = kd / 2 * (ve @ ve - ve @ error_map(x) @ ve)
        assert rate == pytest.approx(-kd * value - rest, abs=1e-11)
        assert rest > -1e-12


@groups
def test_group_is_closed_and_its_tables_fit(name: str) -> None:
    output = OUTPUTS[name]
    assert output.closure_residual() < 1e-15
    assert output.dim == len(output.coordinate_names) == len(output.coordinate_units)
    assert output.pose_size == coordinates(output)(np.eye(4)).size
    assert output.lie.basis.shape == (6, output.dim)


def test_span_that_is_no_algebra_is_found_out() -> None:
    """Thesis: CON6."""

    class Tilting(type(OUTPUTS["SO2"].lie)):  # type: ignore[misc]
        """Turns about x and y: their bracket is a turn about z."""

        basis = np.eye(6)[:, 3:5]

    assert Tilting().closure_residual() == pytest.approx(1.0)
