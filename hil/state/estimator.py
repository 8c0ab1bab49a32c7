"""Estimation of the robot's state from the reports of its drives, and from an optional pose source.

Joints: tracking observers with a known delay estimate positions and velocities and predict them to
the present (`hil.state._differentiation`). Base and unactuated joints: the affine lift maps
increments of the encoders to their motion (`hil.state._reconstruction`). This is odometry for
robots on wheels; a floating robot uses the momentum of the servo. An external pose source corrects
the base gradually; while it is silent or implausible, the lift alone determines the base.

The momentum of a floating robot is not estimated. If it differs from the momentum of the servo, the
base drifts; with a pose source the error stays within the drift during ``1 / pose_gain``.
"""

from __future__ import annotations

import math
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.transform import Rotation

from hil._concur import DRIFT, Evaluator, TrackingLaw
from hil._machine import coupled
from hil.drives.feedback import Feedback
from hil.settings import PoseSettings, Rig
from hil.state import _differentiation as differentiation
from hil.state._differentiation import Differentiator, velocity_delay
from hil.state._reconstruction import find_places, make_graphs
from hil.state.pose_source import PoseMeasurement

REMEMBERED = 512
"""Number of cycles for which poses of the base are stored, for comparison with old measurements."""

LONGEST_GAP = 0.05
"""Upper bound of the time between poses for the gain of a correction, s."""

JUMPS = 10
"""Consecutive poses too far from the estimate after which the source disagrees."""

REPEATS = 5
"""Consecutive equal poses after which the source may be frozen."""

FROZEN = 0.02
"""Motion of the odometry during equal poses above which the source is frozen, m or rad."""

AHEAD = 5e-3
"""Tolerated lead of a pose over the present, s: clocks differ slightly."""

_ORIGIN: tuple[float, ...] = (0.0, 0.0, 0.0)
_UPRIGHT: tuple[float, ...] = (0.0, 0.0, 0.0, 1.0)
_LEFT = (*_ORIGIN, *_UPRIGHT)
_REASONS = ("old", "disordered", "invalid", "jump", "frozen", "drift")


def observer_numbers(rig: Rig) -> tuple[dict[str, float], list[float]]:
    """Numbers of the observers of the motors, for code in C.

    Parameters
    ----------
    rig : Rig
        The rig.

    Returns
    -------
    numbers : dict of str to float
        Numbers of all axes by name.
    slack : list of float
        Tolerated difference of a report from its prediction, of each axis, rad (m).
    """
    settings = rig.estimator
    numbers = {
        "LATENCY": settings.latency,
        "BANDWIDTH_RATE": 2.0 * math.pi * settings.bandwidth,
        "SHARE": differentiation.SHARE,
        "LONGEST_WAIT": differentiation.LONGEST_WAIT,
        "IMPLAUSIBLE": differentiation.PATIENCE,
        "ABSURD": differentiation.ABSURD,
        "HORIZON": differentiation.HORIZON,
    }
    steps = [differentiation.encoder_step(axis) for axis in rig.axes]
    return numbers, [differentiation.SLACK * step for step in steps]


class Estimator:
    """Estimates configuration and velocities of a rig's robot.

    Call `start` once. In each cycle call `update`, then `correct` for each received pose; then `q`
    and `s` are ready for the law.

    Parameters
    ----------
    rig : Rig
        Axes, loop rate, settings of estimator and pose source.
    servo : TrackingLaw
        The control law; its model defines the lift.
    compiled : bool
        Whether to compile the functions, if there is a compiler.
    use_reported : bool
        Whether to use velocities that drives report.

    Attributes
    ----------
    q : numpy.ndarray
        Present configuration, shape (nq,).
    s : numpy.ndarray
        Present velocities for the law, shape (nw,).
    v : numpy.ndarray
        All velocities of the robot according to the lift, shape (nv,).
    position, velocity : numpy.ndarray
        Present positions and velocities of the motors, rad and rad/s (m, m/s), shape (n,): those
        that belong to the state, by least squares if motors share a joint.
    age : numpy.ndarray
        Age of the last sample of each axis, s, shape (n,); infinite before the first.
    lost : numpy.ndarray
        Axes with several consecutive implausible positions, shape (n,), bool. Their reports are
        rejected until `start`.
    implausible, repeated : numpy.ndarray
        Number of rejected reports since the estimator was made: jumps and non-finite numbers;
        samples that were not newer. Shape (n,), int64.
    started : bool
        Whether `start` was called and each axis has reported.
    valid : bool
        Whether q and s may be used: started, no axis lost, and all numbers finite. If the lift
        gives non-finite numbers, q and s keep their last values.
    poses : int
        Number of accepted external poses.
    poses_refused : dict of str to int
        Number of rejected external poses by reason. "old": older than the time-out or the stored
        poses. "disordered": not newer than the last one. "invalid": incomplete, or invalid numbers.
        "jump": further from the estimate than `largest_jump`. "frozen": equal to the bit while the
        odometry moves. "drift": the source has moved the base further from the odometry than
        `largest_jump` and `largest_drift` allow.
    pose_error : tuple of float
        Distance (m) and angle (rad) between the last external pose and the estimate at its
        instant, along possible motions of the base; NaN before the first pose.
    pose_age : float
        Age of the last accepted external pose, s; NaN before the first pose.
    accelerated : numpy.ndarray
        Accelerations of the last call of `acceleration`, shape (n,).
    inertia : numpy.ndarray
        Inertia of the motors then, shape (n, n).
    held : numpy.ndarray
        Torques of the motors that hold their velocities then, shape (n,).
    ease : numpy.ndarray
        Acceleration of each motor by a unit of each torque then, shape (n, n).
    velocity_delay : float
        Delay of the velocities if the acceleration is unknown, s; it counts from the sample, `age`
        before the present.
    compiled : bool
        Whether the functions are compiled.

    Raises
    ------
    RigError
        If the measurements do not determine the motion of the robot (a shape velocity without
        encoder), or if the pose source measures no motion of the base.

    Examples
    --------
    >>> import hil
    >>> rig = hil.load_rig("examples/rover_rig/rig.toml")
    >>> estimator = hil.Estimator(rig, rig.task.servo, compiled=False)
    >>> estimator.source, estimator.valid
    ('lift', False)
    """

    def __init__(
        self, rig: Rig, servo: TrackingLaw, compiled: bool = True, use_reported: bool = True
    ) -> None:
        self.rig, self.servo = rig, servo
        model = servo.model
        self._model = model
        self._floats = model.takes_momentum
        settings, self._pose = rig.estimator, rig.pose
        self._places = find_places(model, rig.transmission)
        gives = "" if self._pose is None else self._pose.gives
        self._graphs = make_graphs(model, self._places, servo.use_measured_velocity, gives)
        self.compiled = compiled and self._graphs.compile()
        self._joints = Differentiator(
            rig.axes, settings.bandwidth, settings.latency, use_reported, rig.loop.period
        )
        self.velocity_delay = velocity_delay(settings.bandwidth, rig.loop.period)

        joints, step = self._joints, self._graphs.step
        n, self._motors = len(rig.axes), rig.transmission.of_joints
        self.position, self.velocity, self.age = np.full(n, np.nan), np.zeros(n), joints.age
        self.lost = joints.lost
        self.implausible, self.repeated = joints.implausible, joints.repeated
        self.q, self.v, self.s = np.zeros(model.nq), np.zeros(model.nv), np.zeros(servo.nw)
        self._measured_q = np.array(self._places.q, dtype=np.intp)
        # Assignment to a memoryview takes a third of the time of assignment to an array.
        inputs: list[Any] = [memoryview(part[:, 0].data) for part in step.inputs]
        self._q_in, self._position_in, self._velocity_in, self._dt_in, self._anchor_in = inputs
        self._results = tuple(part[:, 0] for part in step.outputs)
        acting = self._graphs.acceleration
        self._acting = tuple(part[:, 0] for part in acting.inputs)
        self.accelerated: NDArray[np.float64] = acting.outputs[0][:, 0]
        self.inertia, self.held = acting.outputs[1], acting.outputs[2][:, 0]
        self.ease: NDArray[np.float64] = acting.outputs[3]
        self._shape = list(model.shape) if servo.use_measured_velocity else list(range(model.ns))

        self._anchor = np.array(_LEFT)
        self._times = np.full(REMEMBERED, -math.inf)
        self._history = np.zeros((REMEMBERED, 7))
        self.poses = 0
        self.poses_refused = dict.fromkeys(_REASONS, 0)
        self._forget(rig.task.q0)

    @property
    def functions(self) -> tuple[ca.Function, ca.Function]:
        """Graphs of the present state, and of the acceleration of the motors."""
        return self._graphs.step.function, self._graphs.acceleration.function

    @property
    def reconstructed(self) -> tuple[str, ...]:
        """Bodies whose joints have no encoder and follow from the lift."""
        return self._places.reconstructed

    def start(self, feedback: Feedback, now: float, q0: ArrayLike | None = None) -> bool:
        """Restart the estimator from the last reports of the drives.

        Parameters
        ----------
        feedback : Feedback
            Last reports, which determine the joints with an encoder. If an axis has not reported
            yet, `update` starts with its first report.
        now : float
            The present, s of the loop's clock.
        q0 : array_like, optional
            Configuration, shape (nq,), for the base and the joints without an encoder; default:
            that at the start of the rig's task.

        Returns
        -------
        bool
            `started`.

        Raises
        ------
        ShapeError, NonFiniteError
            If `q0` is not a configuration of the robot.
        """
        self._forget(self.rig.task.q0 if q0 is None else q0)
        self._asked = True
        self.update(feedback, now)
        return self.started

    def _forget(self, q0: ArrayLike) -> None:
        self.q[:] = self._model.system.check_configuration(q0, "`q0`")
        self.v.fill(0.0)
        self.s.fill(0.0)
        self._joints.reset()
        self._anchor[:] = _LEFT
        self._times.fill(-math.inf)
        self._newest, self._now = -1, math.nan
        self._pose_time, self.pose_age = -math.inf, math.nan
        self.pose_error = (math.nan, math.nan)
        self._jumps = 0
        self._last_pose: tuple[object, ...] = ()  # last measurement of the source
        self._repeats = 0  # number of its repetitions; -1: frozen
        self._last_pose_at = self._anchored = np.array(_LEFT)  # odometry at its first arrival
        self._base = self._anchor.copy()  # anchor at the start, or at the last `adopt`
        self._way = self._turn = 0.0  # path of the odometry since then, m and rad
        self._drifted = False
        self._asked = self.started = self.valid = False

    def update(
        self,
        feedback: Feedback,
        now: float,
        acceleration: NDArray[np.float64] | None = None,
    ) -> bool:
        """Process the reports of this cycle and predict the state to the present.

        Parameters
        ----------
        feedback : Feedback
            Last reports of all axes. The instant of a sample is `feedback.time`, its arrival, minus
            the rig's `estimator.latency`.
        now : float
            The present, s of the loop's clock: the instant of `q` and `s`.
        acceleration : numpy.ndarray, optional
            Acceleration of the axes since the last cycle, from `acceleration`, shape (n,). The
            delay of velocities then concerns only the part that it lacks.

        Returns
        -------
        bool
            `valid`.
        """
        joints = self._joints
        joints.update(feedback, now, acceleration)
        if not self._asked or not joints.ready:
            self._now, self.valid = now, False
            return False
        if not self.started:
            # The first reports contain positions, but no motion since the last cycle.
            self._move(0.0)
            self.q[self._measured_q] = self._results[0][self._measured_q]
            self.q[:] = coupled(self._model.system, self.q)
            self.started = True
        dt = now - self._now
        self._move(dt if dt > 0.0 else 0.0)
        after, s, v, anchored, rates = self._results
        # The guard judges motors by the state, from which a replay computes them too.
        self.position[:] = self._motors(after[self._measured_q])
        self.velocity[:] = self._motors(rates)
        self._now = now
        if self._pose_time > -math.inf:
            self.pose_age = now - self._pose_time
        if not math.isfinite(sum(after.tolist()) + sum(v.tolist())):
            self.valid = False
            return False
        self.q[:] = after
        self.s[:] = s
        self.v[:] = v
        self._newest = newest = (self._newest + 1) % REMEMBERED
        self._times[newest] = now
        self._history[newest] = anchored
        self.valid = not any(joints.lost.tolist())
        return self.valid

    def _move(self, dt: float) -> None:
        """Evaluate the configuration after a time, s, at the present positions of the motors."""
        self._q_in[:] = self.q
        self._position_in[:] = self._joints.position
        self._velocity_in[:] = self._joints.velocity
        self._dt_in[0] = dt
        self._anchor_in[:] = self._anchor
        self._graphs.step.trigger()

    def acceleration(self, torque: ArrayLike) -> NDArray[np.float64]:
        """Acceleration of the axes according to the model, at the last state, for a torque.

        Pass it to the next `update`. It lacks friction and other unmodelled forces; the delay of
        velocities concerns only this part.

        Parameters
        ----------
        torque : array_like
            Sent or reported torque of the axes, shape (n,), N m (N).

        Returns
        -------
        numpy.ndarray
            Shape (n,), rad/s^2 (m/s^2): a view that the next call overwrites. NaN, which `update`
            ignores, where the model has no finite value.
        """
        q, s, u = self._acting
        q[:], u[:] = self.q, torque
        s[:] = self.s[self._shape]
        self._graphs.acceleration.trigger()
        return self.accelerated

    @property
    def disagrees(self) -> bool:
        """Whether the external source contradicts the estimate.

        The source is then ignored, since either may be wrong: stop, find the cause, and call
        `start` or `adopt`.
        """
        return self._jumps >= JUMPS or self._drifted or self._repeats < 0

    @property
    def source(self) -> str:
        """Present sources of the base's pose, as text."""
        settings = self._pose
        if settings is None:
            return "lift"
        if self.disagrees:
            return f"lift (external {settings.gives} disagrees)"
        if self.pose_age <= settings.timeout:
            return f"lift + {settings.gives}"
        return f"lift (no external {settings.gives})"

    def correct(self, measurement: PoseMeasurement) -> bool:
        """Correct the base towards an external pose, by a fraction that grows with their interval.

        The pose is compared with the estimate at the instant of the measurement. A pose that is
        further away than `largest_jump` is rejected.

        Parameters
        ----------
        measurement : PoseMeasurement
            The measurement.

        Returns
        -------
        bool
            Whether it was accepted.
        """
        settings, graph = self._pose, self._graphs.correct
        if settings is None or graph is None or not self.started or self._newest < 0:
            return False
        time = measurement.time
        if not (self._is_news(time, settings) and self._fill(graph, measurement, time)):
            return False
        gap = min(time - self._pose_time, LONGEST_GAP)
        graph.inputs[7][0, 0] = 1.0 - math.exp(-self.rig.estimator.pose_gain * gap)
        graph.trigger()
        distance, angle = self.pose_error = self._found(graph)
        if not max(distance, angle) <= settings.largest_jump:
            self._jumps += 1
            return self._refuse("jump")
        if self._is_frozen(measurement):
            return self._refuse("frozen")
        if self._drifted or self._drifts(graph.outputs[1][:, 0], settings):
            self._drifted = True
            return self._refuse("drift")
        self._take(graph, time)
        return True

    def _is_frozen(self, measurement: PoseMeasurement) -> bool:
        """Whether the source repeats a pose although the odometry has moved since."""
        pose = (measurement.position, measurement.quaternion)
        here = self._history[self._newest]
        if pose != self._last_pose:
            self._last_pose, self._repeats, self._last_pose_at = pose, 0, here.copy()
            return False
        self._repeats += self._repeats >= 0
        way, turn = _between(self._last_pose_at, here)
        gives = "" if self._pose is None else self._pose.gives
        moved = max(0.0 if gives == "attitude" else way, 0.0 if gives == "position" else turn)
        if self._repeats >= REPEATS and moved > FROZEN:
            self._repeats = -1  # until a different measurement
        return self._repeats < 0

    def _drifts(self, anchor: NDArray[np.float64], settings: PoseSettings) -> bool:
        """Whether a correction would move the base further from the odometry than tolerated.

        There is no limit for floating robots: their momentum may differ from that of the servo, and
        then the error of the odometry is unbounded.
        """
        here = self._history[self._newest]
        way, turn = _between(self._anchored, here)
        self._anchored = here.copy()
        self._way += way
        self._turn += turn
        if self._floats:
            return False
        far, off = _between(_placed(anchor, here), _placed(self._base, here))
        jump, drift = settings.largest_jump, settings.largest_drift
        return far > jump + drift * self._way or off > jump + drift * self._turn

    def adopt(self, measurement: PoseMeasurement) -> bool:
        """Set the base to an external pose at any distance; for use before a run.

        Parameters
        ----------
        measurement : PoseMeasurement
            The measurement; as in `correct`, it is compared with the estimate at its instant.

        Returns
        -------
        bool
            Whether it was accepted; False before the start, and without a pose source.
        """
        settings, graph = self._pose, self._graphs.correct
        if settings is None or graph is None or not self.started or self._newest < 0:
            return False
        time = measurement.time
        if not (self._is_news(time, settings) and self._fill(graph, measurement, time)):
            return False
        graph.inputs[7][0, 0] = 1.0
        graph.trigger()
        if not math.isfinite(sum(self._found(graph))):
            return self._refuse("invalid")
        self._take(graph, time)
        self._base = self._anchor.copy()
        self._anchored = self._history[self._newest].copy()
        self._way = self._turn = 0.0
        self._drifted, self._repeats = False, 0
        return True

    def _is_news(self, time: float, settings: PoseSettings) -> bool:
        """Whether a measurement is newer than the last one, and not too old."""
        if not time > self._pose_time:
            return self._refuse("disordered")
        if not -AHEAD <= self._now - time <= settings.timeout:
            return self._refuse("old")
        return True

    def _fill(self, graph: Evaluator, measurement: PoseMeasurement, time: float) -> bool:
        """Write a measurement, and the two stored poses around its instant, to the graph."""
        assert self._pose is not None
        gives = self._pose.gives
        position = _ORIGIN if gives == "attitude" else measurement.position
        attitude = _UPRIGHT if gives == "position" else measurement.quaternion
        if position is None or attitude is None or (len(position), len(attitude)) != (3, 4):
            return self._refuse("invalid")
        length = math.hypot(*attitude)
        if not (math.isfinite(sum(position)) and abs(length - 1.0) <= DRIFT):
            return self._refuse("invalid")
        newer = place = self._newest
        times, share = self._times, 1.0
        for back in range(REMEMBERED):
            place = (self._newest - back) % REMEMBERED
            if times[place] <= time:
                break
            newer = place
        else:
            return self._refuse("old")
        if times[place] == -math.inf:
            return self._refuse("old")
        if newer != place:
            share = float((time - times[place]) / (times[newer] - times[place]))
        graph.inputs[0][:, 0] = self.q
        graph.inputs[1][:, 0] = self._anchor
        graph.inputs[2][:, 0] = self._history[place]
        graph.inputs[3][:, 0] = self._history[newer]
        graph.inputs[4][0, 0] = share
        graph.inputs[5][:, 0] = position
        graph.inputs[6][:, 0] = attitude
        return True

    def _found(self, graph: Evaluator) -> tuple[float, float]:
        """Distance and angle between measurement and estimate."""
        return float(graph.outputs[2][0, 0]), float(graph.outputs[3][0, 0])

    def _take(self, graph: Evaluator, time: float) -> None:
        self.q[:] = graph.outputs[0][:, 0]
        self._anchor[:] = graph.outputs[1][:, 0]
        self._jumps, self._pose_time = 0, time
        self.pose_age = self._now - time
        self.poses += 1

    def _refuse(self, reason: str) -> bool:
        self.poses_refused[reason] += 1
        return False


def _placed(anchor: NDArray[np.float64], pose: NDArray[np.float64]) -> NDArray[np.float64]:
    """A pose relative to an anchor, expressed in the parent frame of the anchor."""
    turn, own = Rotation.from_quat(anchor[3:]), Rotation.from_quat(pose[3:])
    return np.concatenate([anchor[:3] + turn.apply(pose[:3]), (turn * own).as_quat()])


def _between(one: NDArray[np.float64], other: NDArray[np.float64]) -> tuple[float, float]:
    """Distance (m) and angle (rad) between two poses, positions and quaternions."""
    a, b, c = (one[:3] - other[:3]).tolist()
    cosine = abs(float(one[3:] @ other[3:]))
    return math.hypot(a, b, c), 2.0 * math.acos(min(cosine, 1.0))
