"""Hold and delay of torques: exact limits against eigenvalues, bounds against simulations."""

from math import radians

import numpy as np
import pytest
from scipy.linalg import expm

from concur import robots
from concur.certify._channels import split
from concur.certify._decay import Decay
from concur.certify._disturbance import Disturbance
from concur.certify._robust import tube, tubes
from concur.certify._sampling import (
    disturbance_margin,
    hold_disturbance,
    largest_period,
    output_jerk,
    period_ahead,
    sample_limits,
)
from concur.certify._status import Status
from concur.control import ErrorDynamics, Servo
from concur.errors import NonFiniteError, OutputError, ShapeError
from concur.outputs import Output
from concur.outputs.groups import Product, Vector
from concur.reduction import reduce
from concur.simulation import Integrator, simulate
from tests.certify._thesis_cases import channel, pose, positive
from tests.certify.test_robust import linear, reference
from tests.control._cases import Q0, case_study
from tests.control._floating_cases import (
    CHECK_A_Q0,
    CHECK_A_V0,
    Chain,
    bend,
    steady,
    swing,
)
from tests.oracles import Pinocchio


def held_tube(decay, jerk, time, start=0.0):
    """Bound of |z|_P of a channel whose torques are held and late; infinite without one."""
    room = 1.0 - time * decay.damping_gain
    growth = decay.push * time * decay.feedback_rate
    if decay.rate * room <= growth:
        return np.inf
    return max(start, decay.push * time * jerk / (decay.rate * room - growth))


def held_radius(period, stiffness, damping):
    """Spectral radius of a period of xddot = -KP x - KD xdot with the right side held."""
    n = len(stiffness)
    one = np.eye(n)
    flow = np.zeros((3 * n, 3 * n))
    flow[:n, n : 2 * n], flow[n : 2 * n, 2 * n :] = one, one
    step = expm(period * flow)[: 2 * n]
    law = np.hstack([-stiffness, -damping])
    closed = step[:, : 2 * n] + step[:, 2 * n :] @ law
    return np.abs(np.linalg.eigvals(closed)).max()


def test_reference_limits():
    found = sample_limits(pose("B"))
    assert found.period == pytest.approx(0.7143, abs=5e-5)
    assert found.crossover == pytest.approx(3.086, abs=5e-4)
    assert np.degrees(found.phase_margin) == pytest.approx(65.2, abs=0.05)
    assert found.delay == pytest.approx(0.3686, abs=5e-5)
    assert found.advised == pytest.approx(0.03686, abs=5e-6)
    text = str(found)
    assert "0.7143 s" in text
    assert "0.3686 s" in text


@pytest.mark.parametrize("seed", range(8))
def test_held_limit_is_where_eigenvalues_leave_the_circle(seed):
    rng = np.random.default_rng(seed)
    inertia = positive(rng, 3)
    root = np.linalg.cholesky(inertia)
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    kp, kd = rng.uniform(0.5, 20.0, 3), rng.uniform(0.5, 9.0, 3)
    stiffness, damping = (root @ turn @ np.diag(g) @ turn.T @ root.T for g in (kp, kd))
    own = channel(Vector("xyz"), (stiffness + stiffness.T) / 2, (damping + damping.T) / 2, inertia)
    found = sample_limits(own)
    gains = [np.linalg.solve(inertia, g) for g in (stiffness, damping)]
    assert held_radius(0.999 * found.period, *gains) < 1.0
    assert held_radius(1.001 * found.period, *gains) > 1.0
    for share in (0.1, 0.5, 0.9):
        assert held_radius(share * found.period, *gains) < 1.0


@pytest.mark.parametrize(("kp", "kd"), [(4.0, 2.8), (9.0, 6.0), (1.0, 0.2), (30.0, 3.0)])
def test_at_the_delay_a_root_is_on_the_axis(kp, kd):
    found = sample_limits(channel(Vector("x"), np.array([[kp]]), np.array([[kd]])))
    s = 1j * found.crossover
    residual = s**2 + np.exp(-s * found.delay) * (kd * s + kp)
    assert abs(residual) < 1e-12 * kp * (1 + kd)
    # For shorter delays no root is on the axis: gain one is met at one frequency only.
    assert found.allows(0.0, 0.99 * found.delay)
    assert not found.allows(0.0, 1.01 * found.delay)
    assert not found.allows(found.period)
    assert not found.allows(0.5 * found.delay, 0.8 * found.delay)


def test_gains_without_common_modes_are_refused():
    rng = np.random.default_rng(0)
    own = channel(Vector("xyz"), positive(rng, 3), positive(rng, 3))
    with pytest.raises(OutputError, match="common modes"):
        sample_limits(own)
    with pytest.raises(OutputError):
        sample_limits(channel(Vector("x"), np.array([[4.0]]), np.array([[-1.0]])))


def test_bound_of_a_hold():
    rates = np.array([[0.1, -0.4], [-0.2, 0.3]])
    once = hold_disturbance(rates, 0.05)
    assert once.components == pytest.approx([0.01, 0.02])
    late = hold_disturbance(rates, 0.05, delay_periods=2)
    assert late.components == pytest.approx([0.03, 0.06])
    assert once.sampled
    assert "2 periods late" in late.source
    decay = linear(np.diag([4.0, 4.0]), np.diag([2.8, 2.8]))
    assert tube(decay, once).status is Status.UNDECIDED


def test_rates_along_a_motion():
    servo = case_study()
    times = np.linspace(0.0, 0.1, 11)
    slope = np.array([1.0, -2.0, 0.5, 0.3, -0.1])
    u = times[:, None] * slope
    found = output_jerk(servo, times, np.tile(Q0, (11, 1)), u)
    effect = servo.decoupling(Q0) @ np.linalg.inv(servo.model.mass_matrix(Q0))
    assert found.shape == (10, 5)
    assert found == pytest.approx(np.tile(effect @ slope, (10, 1)), rel=1e-9)


def test_largest_period_fills_the_domain():
    decay = reference()
    rates = np.array([[0.0, 1.0, 0.0, 0.5, 0.0, 2.0], [0.3, 0.0, 1.5, 0.0, 0.0, 0.0]])
    found = largest_period([decay], rates)
    block = decay.P[6:, 6:]
    rate = np.sqrt(max(r @ block @ r for r in rates))
    assert found == pytest.approx(decay.limit * decay.rate / rate, rel=1e-9)
    assert tube(decay, hold_disturbance(rates, found)).fits
    assert not tube(decay, hold_disturbance(rates, 1.001 * found)).fits
    late = largest_period([decay], rates, delay_periods=1)
    assert late == pytest.approx(found / 2, rel=1e-9)
    # Further disturbances and starts shorten the period; large ones make it zero.
    friction = Disturbance(np.full(6, 0.1), "friction")
    assert 0 < largest_period([decay], rates, friction) < found
    assert largest_period([decay], rates, Disturbance(np.ones(6))) == 0.0
    assert largest_period([decay], rates, starts=[0.6]) == 0.0
    assert largest_period([decay], rates, starts=[0.3]) == pytest.approx(found, rel=1e-9)
    # Slowly varying torques yield the limit of the linearised loop.
    assert largest_period([decay], 1e-3 * rates) == sample_limits(decay.channel).period


def test_largest_period_of_a_loop_is_that_of_its_channels():
    first = reference()
    group = Product([first.channel.group, Vector("x")])
    gains = [np.diag([g] * 6 + [h]) for g, h in ((4.0, 9.0), (2.8, 5.0), (1.0, 1.0))]
    parts = split(ErrorDynamics(group, *gains))
    second = linear(np.array([[9.0]]), np.array([[5.0]]))
    decays = [
        Decay(parts[0], first.P, first.rate, radians(60), 0.5),
        Decay(parts[1], second.P, second.rate),
    ]
    rates = np.array([[0.0, 1.0, 0.0, 0.5, 0.0, 2.0, 30.0]])
    found = largest_period(decays, rates)
    alone = largest_period([first], rates[:, :6])
    assert found == pytest.approx(min(alone, sample_limits(parts[1]).period), rel=1e-9)
    both = tubes(decays, hold_disturbance(rates, found))
    assert all(one.fits for one in both)


def rate_of_feedback(decay, x, ve, push):
    """By differences along the disturbed error dynamics."""
    dynamics = decay.channel.dynamics
    back = np.linalg.inv(dynamics.inertia)

    def along(step):
        slope_x, slope_v = dynamics.rate(x, ve)
        moved = x + step * slope_x, ve + step * (slope_v + push)
        return back @ dynamics.feedback(*moved)

    return (along(1e-5) - along(-1e-5)) / 2e-5


def test_feedback_changes_no_faster_than_is_said():
    """Along errors of the domain, with metres over the length; nearly reached by some."""
    rng = np.random.default_rng(4)
    for decay in (reference(), linear(np.diag([4.0, 9.0]), np.array([[3.0, 0.5], [0.5, 5.0]]))):
        n, shares = decay.channel.size, []
        scale = decay.channel.scales
        for k in range(400):
            x = rng.normal(size=n)
            x *= 0.4 * rng.uniform() / np.linalg.norm(x)
            ve, push = rng.normal(size=n), rng.normal(size=n) * (k % 2)
            length = np.sqrt(np.concatenate([x, ve]) @ decay.P @ np.concatenate([x, ve]))
            most = decay.feedback_rate * length
            most += decay.damping_gain * np.linalg.norm(scale * push)
            found = np.linalg.norm(scale * rate_of_feedback(decay, x, ve, push))
            shares.append(found / most)
        assert max(shares) <= 1.0
        assert max(shares) > 0.5


def test_a_period_ahead_is_below_the_exact_limit_and_holds():
    """Held torques of a spring: simulated exactly, period by period, while the reference jerks."""
    stiffness, damping, jerk = 4.0, 2.8, 0.7
    decay = linear(np.array([[stiffness]]), np.array([[damping]]))
    still = period_ahead([decay], np.zeros((1, 1)))
    limit = sample_limits(decay.channel).period
    assert 0.05 * limit < still < limit
    # Without boundary the reference's jerks do not matter.
    assert period_ahead([decay], np.full((1, 1), jerk)) == still
    assert period_ahead([decay], np.zeros((1, 1)), delay_periods=1) == pytest.approx(
        still / 2, rel=1e-9
    )
    period = 0.5 * still
    bound = held_tube(decay, jerk, period)
    # Rates of (x, ve, command); the remaining error is jerk times the age, with either sign.
    flow = np.zeros((3, 3))
    flow[0, 1] = -1.0
    flow[1, 2] = 1.0
    step = expm(period * flow)[:2]
    ramp = np.array([-(period**3) / 6, period**2 / 2]) * jerk
    state, worst = np.zeros(2), 0.0
    rng = np.random.default_rng(0)
    for _ in range(2000):
        feedback = stiffness * state[0] - damping * state[1]
        growth = decay.P[1] @ state
        sign = np.sign(growth) or rng.choice([-1.0, 1.0])
        state = step[:, :2] @ state + step[:, 2] * feedback + sign * ramp
        worst = max(worst, float(np.sqrt(state @ decay.P @ state)))
    assert 0.1 * bound < worst < bound
    assert held_tube(decay, jerk, 1.01 * still) == np.inf


def test_a_bounded_domain_shortens_the_period_ahead():
    decay = reference()
    jerks = np.array([[0.0, 1.0, 0.0, 0.5, 0.0, 2.0], [0.3, 0.0, 1.5, 0.0, 0.0, 0.0]])
    length = np.linalg.norm(jerks * decay.channel.scales, axis=1).max()
    found = period_ahead([decay], jerks)
    assert held_tube(decay, length, found) == pytest.approx(decay.limit, rel=1e-6)
    assert held_tube(decay, length, found) < decay.limit
    # The error itself costs room: less is left than where the jerks of all the motion are known.
    assert 0.0 < found < largest_period([decay], jerks)
    assert period_ahead([decay], jerks, starts=[decay.limit]) == 0.0
    assert period_ahead([decay], jerks, starts=[0.9 * decay.limit]) == found
    assert period_ahead([decay], 0 * jerks) > found
    with pytest.raises(ShapeError, match="jerks"):
        period_ahead([decay], jerks[:, :5])
    with pytest.raises(ShapeError, match="starts"):
        period_ahead([decay], jerks, starts=[0.0, 0.0])
    with pytest.raises(OutputError, match="delay_periods"):
        period_ahead([decay], jerks, delay_periods=-1)


@pytest.mark.extended
def test_the_disturbance_margin_fills_the_domain():
    decay = reference()
    push = Disturbance(np.full(6, 0.05))
    factor = disturbance_margin([decay], push)
    assert tube(decay, factor * push.components).fits
    assert not tube(decay, 1.000001 * factor * push.components).fits
    # A disturbance of all components is that many times the one of their size.
    assert disturbance_margin([decay], Disturbance(np.full(6, 0.1))) == pytest.approx(factor / 2)
    assert disturbance_margin([decay], push, starts=[decay.limit]) == 0.0
    assert disturbance_margin([decay], Disturbance(np.zeros(6))) == np.inf
    # What grows with the feedback ends where the small gain does, even without other disturbance.
    wrong = Disturbance(np.zeros(6), "inertias", True, feedback=np.array([0.1 * np.eye(6)]))
    most = decay.rate / (0.1 * decay.push * decay.feedback_gain)
    assert disturbance_margin([decay], wrong) == pytest.approx(most, rel=1e-6)
    # Without a boundary every given disturbance is tolerated.
    free = linear(np.array([[4.0]]), np.array([[2.8]]))
    assert disturbance_margin([free], Disturbance(np.ones(1))) == np.inf


@pytest.mark.extended
def test_held_torques_of_an_arm_stay_in_the_tube():
    """An arm on a satellite with momentum: the error by the hold, and its bound."""
    robot = robots.free_flyer()
    plant = Pinocchio(robot)
    momentum = plant.momentum(CHECK_A_Q0, CHECK_A_V0)
    outputs = [Output("hand", "tool", "SE3")]
    servo = Servo(reduce(robot, momentum=momentum), outputs, 4.0, 2.8)
    drift = np.array([*momentum[:3] / robot.total_mass, 0.0, 0.0, 0.0])
    demand = Chain(
        [
            (drift, steady),
            plant.pose(CHECK_A_Q0, "tool"),
            (np.array([0.0, 0.0, 0.0, 0.1, 0.05, -0.08]), swing(0.8)),
            (np.array([0.03, -0.03, 0.02, 0.0, 0.0, 0.0]), bend),
        ],
        "SE3",
    )
    still, _ = servo.motion(CHECK_A_Q0, servo.velocity(CHECK_A_Q0, np.zeros(6)))
    s0 = np.linalg.solve(servo.decoupling(CHECK_A_Q0), demand(0.0).twist - still)
    decay = reference()
    worst = {}
    for period, error, bound in ((0.05, 3.8e-4, 1.9e-3), (0.02, 1.5e-4, 7.2e-4)):
        integrator = Integrator(dt=0.01, control_period=period)
        run = simulate(robot, servo, demand, 3.0, CHECK_A_Q0, s0, dt=integrator)
        every = slice(None, None, round(period / 0.01))
        rates = output_jerk(servo, run.t[every], run.q[every], run.u[every])
        found = tube(decay, hold_disturbance(rates, period))
        worst[period] = np.linalg.norm(run.error, axis=1).max()
        assert worst[period] == pytest.approx(error, rel=0.02)
        length = np.linalg.norm(rates, axis=1).max()
        assert tube(decay, period * length).size == pytest.approx(bound, rel=0.03)
        assert worst[period] < found.size <= tube(decay, period * length).size
        assert found.status is Status.UNDECIDED
    assert worst[0.05] / worst[0.02] == pytest.approx(2.5, rel=0.02)


def test_wrong_input_is_refused():
    for bad in (-0.1, np.nan, np.inf):
        with pytest.raises(OutputError, match="period"):
            hold_disturbance([[1.0]], bad)
    for late in (-1, 0.5):
        with pytest.raises(OutputError, match="delay_periods"):
            hold_disturbance([[1.0]], 0.1, late)
    with pytest.raises(ShapeError):
        hold_disturbance([1.0], 0.1)
    with pytest.raises(NonFiniteError):
        hold_disturbance([[np.nan]], 0.1)
    servo = case_study()
    q, u = np.tile(Q0, (3, 1)), np.ones((3, 5))
    with pytest.raises(OutputError, match="ascending"):
        output_jerk(servo, [0.0, 0.1, 0.1], q, u)
    with pytest.raises(ShapeError):
        output_jerk(servo, [0.0], q[:1], u[:1])
    with pytest.raises(ShapeError):
        output_jerk(servo, [0.0, 0.1], q, u)
    with pytest.raises(NonFiniteError):
        output_jerk(servo, [0.0, 0.1, 0.2], q, np.nan * u)
