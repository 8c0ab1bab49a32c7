"""The state of the robot from what its drives report, and from a pose source if there is one.

Joints: positions and velocities by tracking observers with a known delay, predicted to the
present (`hil.state._differentiation`). Base, and all joints without a motor: by reconstruction from
the lift, from increments of the encoders (`hil.state._reconstruction`): odometry on wheels; on a
floating robot at the momentum that the servo knows. An external pose source draws the base
gently to what it says; while it is silent or not to be believed, the lift goes on alone.

What is not estimated: the momentum of a floating robot. If it is another one than the servo
knows, the base drifts, and with a pose source it is held within the drift per
``1 / pose_gain``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.transform import Rotation

from concur.codegen import DRIFT, Evaluator
from concur.control import TrackingLaw
from hil.drives.feedback import Feedback
from hil.settings import PoseSettings, Rig
from hil.state._differentiation import Differentiator, velocity_delay
from hil.state._reconstruction import find_places, make_graphs
from hil.state.pose_source import PoseMeasurement

REMEMBERED = 512
"""Cycles for which poses of the base are kept, to compare old measurements with."""

LONGEST_GAP = 0.05
"""Time between poses, s, beyond which a later one counts no more than that."""

JUMPS = 10
"""Poses in a row, too far from the estimate, from which on the source is said to disagree."""

REPEATS = 5
"""Poses in a row that are the same to the bit, from which on the source may have frozen:"""

FROZEN = 0.02
"""that is, if the odometry has moved on by so much since, m or rad."""

AHEAD = 5e-3
"""Time by which a pose may seem to come from the future, s: clocks are not quite one."""

_ORIGIN: tuple[float, ...] = (0.0, 0.0, 0.0)
_UPRIGHT: tuple[float, ...] = (0.0, 0.0, 0.0, 1.0)
_LEFT = (*_ORIGIN, *_UPRIGHT)
_REASONS = ("old", "disordered", "invalid", "jump", "frozen", "drift")


class Estimator:
    """Configuration and velocities of a rig's robot.

    In each cycle: `update`, then `correct` for each pose that arrived; then `q` and `s` are ready
    for the law. Once before: `start`.

    Parameters
    ----------
    rig : Rig
        Axes, loop rate, settings of estimator and pose source.
    servo : TrackingLaw
        The law; its model gives the lift.
    compiled : bool
        Whether to make machine code where there is a compiler.
    use_reported : bool
        Whether velocities that drives report are used.

    Attributes
    ----------
    q : numpy.ndarray
        Configuration now, shape (nq,).
    s : numpy.ndarray
        Velocities that the law takes now, shape (nw,).
    v : numpy.ndarray
        All velocities of the robot, shape (nv,), by the lift.
    position, velocity : numpy.ndarray
        Of the axes now, rad and rad/s (m, m/s), shape (n,).
    age : numpy.ndarray
        Time since the sample that each axis rests on, s, shape (n,); infinite before the first.
    stuck : numpy.ndarray
        Axes whose reports cannot be true, shape (n,), bool: the position stays the same to the
        bit although the axis must have gone on; or all of the report does, although the torque
        given to `acceleration` changes. Slow axes are watched only while accelerations are
        given. An encoder that fails while its axis creeps cannot be told from one that rests.
    lost : numpy.ndarray
        Axes that reported implausible positions several times in a row, shape (n,), bool;
        until `start` nothing they report is taken.
    implausible, repeated : numpy.ndarray
        Reports refused since the estimator was made: jumps and numbers that are not finite;
        samples that were not newer. Shape (n,), int64.
    started : bool
        Whether `start` was called and each axis has reported.
    valid : bool
        Whether q and s may be used: started, no axis lost, and all numbers finite. Where the lift
        gives no finite numbers the last ones stay in place.
    poses : int
        External poses that were taken.
    poses_refused : dict of str to int
        External poses that were not, by reason: "old" (than the timeout or the memory), not
        after the one before ("disordered"), incomplete or of wrong numbers ("invalid"),
        further off than `largest_jump` ("jump"), the same to the bit while the odometry moves
        ("frozen"), or of a source that has drawn the base further away from the odometry than
        `largest_jump` and `largest_drift` allow ("drift").
    pose_error : tuple of float
        Distance (m) and angle (rad) between the last external pose and the estimate at its
        instant, as far as the base can move so; NaN without one.
    pose_age : float
        Time since the instant of the last external pose that was taken, s; NaN without one.
    velocity_delay : float
        Time by which velocities are late where nothing is known of the acceleration, s; counted
        from the sample, `age` before now.
    compiled : bool
        Whether machine code is used.

    Raises
    ------
    RigError
        If the motion of the robot does not follow from what is measured: a shape velocity
        without axis, an axis on a joint with several freedoms; or if the pose source sees
        nothing of the base's motion.
    """

    def __init__(
        self, rig: Rig, servo: TrackingLaw, compiled: bool = True, use_reported: bool = True
    ) -> None:
        self.rig, self.servo = rig, servo
        model = servo.model
        self._model = model
        self._floats = model.takes_momentum
        settings, self._pose = rig.estimator, rig.pose
        self._places = find_places(model, [axis.name for axis in rig.axes])
        gives = "" if self._pose is None else self._pose.gives
        self._graphs = make_graphs(model, self._places, servo.measured, gives)
        self.compiled = compiled and self._graphs.compile()
        self._joints = Differentiator(
            rig.axes, settings.bandwidth, settings.latency, use_reported, rig.loop.period
        )
        self.velocity_delay = velocity_delay(settings.bandwidth, rig.loop.period)

        joints, step = self._joints, self._graphs.step
        self.position, self.velocity, self.age = joints.position, joints.velocity, joints.age
        self.stuck, self.lost = joints.stuck, joints.lost
        self.implausible, self.repeated = joints.implausible, joints.repeated
        self.q, self.v, self.s = np.zeros(model.nq), np.zeros(model.nv), np.zeros(servo.nw)
        self._measured_q = np.array(self._places.q, dtype=np.intp)
        self._shape_axes = np.array(self._places.shape, dtype=np.intp)
        # Memories take vectors in a third of the time that arrays need.
        inputs: list[Any] = [memoryview(part[:, 0].data) for part in step.inputs]
        self._q_in, self._y_in, self._w_in, self._dt_in, self._anchor_in = inputs
        self._results = tuple(part[:, 0] for part in step.outputs)
        acting = self._graphs.acceleration
        self._acting = tuple(part[:, 0] for part in acting.inputs)
        self._accelerated: NDArray[np.float64] = acting.outputs[0][:, 0]

        self._anchor = np.array(_LEFT)
        self._times = np.full(REMEMBERED, -math.inf)
        self._history = np.zeros((REMEMBERED, 7))
        self.poses = 0
        self.poses_refused = dict.fromkeys(_REASONS, 0)
        self._forget(rig.task.q0)

    @property
    def reconstructed(self) -> tuple[str, ...]:
        """Bodies whose joints have no encoder and follow from the lift."""
        return self._places.reconstructed

    def start(self, feedback: Feedback, now: float, q0: ArrayLike | None = None) -> bool:
        """Begin anew: of the past nothing counts, of the drives only their last reports.

        Parameters
        ----------
        feedback : Feedback
            Last reports: the joints with an encoder are where these say. If some axis has not
            reported yet, `update` starts with its first report.
        now : float
            The present, s of the loop's clock.
        q0 : array_like, optional
            Configuration, shape (nq,), of which the base and the joints without an encoder are
            taken; default that at the start of the rig's task.

        Returns
        -------
        bool
            `started`.

        Raises
        ------
        ShapeError, NonFiniteError
            If `q0` is no configuration of the robot.
        """
        self._forget(self.rig.task.q0 if q0 is None else q0)
        self._asked = True
        self.update(feedback, now)
        return self.started

    def _forget(self, q0: ArrayLike) -> None:
        self.q[:] = self._model.robot.check_configuration(q0, "`q0`")
        self.v.fill(0.0)
        self.s.fill(0.0)
        self._joints.reset()
        self._torque: list[float] | None = None
        self._anchor[:] = _LEFT
        self._times.fill(-math.inf)
        self._newest, self._now = -1, math.nan
        self._pose_time, self.pose_age = -math.inf, math.nan
        self.pose_error = (math.nan, math.nan)
        self._jumps = 0
        self._said: tuple[object, ...] = ()  # by the source, last,
        self._repeats = 0  # so many times in a row,
        self._said_at = self._anchored = np.array(_LEFT)  # first with the odometry at this pose
        self._base = self._anchor.copy()  # anchor when a pose was adopted, or before any
        self._way = self._turn = 0.0  # of the odometry since, m and rad
        self._drifted = False
        self._asked = self.started = self.valid = False

    def update(
        self,
        feedback: Feedback,
        now: float,
        acceleration: NDArray[np.float64] | None = None,
    ) -> bool:
        """Take the reports of this cycle and bring the state to the present.

        Parameters
        ----------
        feedback : Feedback
            Last reports of all axes. They were sampled at `feedback.time`, when they arrived,
            less the rig's `estimator.latency`.
        now : float
            The present, s of the loop's clock: what `q` and `s` are for.
        acceleration : numpy.ndarray, optional
            Acceleration of the axes since the last cycle, as `acceleration` gives it, shape
            (n,): velocities are then late only for what it does not know.

        Returns
        -------
        bool
            `valid`.
        """
        joints = self._joints
        joints.update(feedback, now, acceleration, self._torque)
        if not self._asked or not joints.ready:
            self._now, self.valid = now, False
            return False
        if not self.started:
            # The first reports say where the joints are, not how they moved.
            self.q[self._measured_q] = joints.position
            self.started = True
        dt = now - self._now
        self._q_in[:] = self.q
        self._y_in[:] = joints.position
        self._w_in[:] = joints.velocity
        self._dt_in[0] = dt if dt > 0.0 else 0.0
        self._anchor_in[:] = self._anchor
        self._graphs.step.trigger()
        after, taken, v, anchored = self._results
        self._now = now
        if self._pose_time > -math.inf:
            self.pose_age = now - self._pose_time
        if not math.isfinite(sum(after.tolist()) + sum(v.tolist())):
            self.valid = False
            return False
        self.q[:] = after
        self.s[:] = taken
        self.v[:] = v
        self._newest = place = (self._newest + 1) % REMEMBERED
        self._times[place] = now
        self._history[place] = anchored
        self.valid = not any(joints.lost.tolist())
        return self.valid

    def acceleration(self, torque: ArrayLike) -> NDArray[np.float64]:
        """Acceleration of the axes by the model, at the last state under a torque.

        To be given to the next `update`. Friction and whatever else the model does not know
        is missing in it; velocities are late for that part only.

        Parameters
        ----------
        torque : array_like
            Torque of the axes, as sent or as reported, shape (n,), N m (N); remembered for
            `stuck`.

        Returns
        -------
        numpy.ndarray
            Shape (n,), rad/s^2 (m/s^2): a view that the next call overwrites. NaN, which
            `update` takes for nothing known, where the model gives no number.
        """
        q, s, u = self._acting
        q[:], u[:] = self.q, torque
        self._torque = u.tolist()
        self.velocity.take(self._shape_axes, out=s, mode="clip")
        self._graphs.acceleration.trigger()
        return self._accelerated

    @property
    def disagrees(self) -> bool:
        """Whether the external source has been too far from the estimate for a while.

        It is not followed then, since either may be wrong: stop, look, and `start` or `adopt`.
        """
        return self._jumps >= JUMPS or self._drifted or self._repeats < 0

    @property
    def source(self) -> str:
        """What the base's pose rests on now."""
        settings = self._pose
        if settings is None:
            return "lift"
        if self.disagrees:
            return f"lift (external {settings.gives} disagrees)"
        if self.pose_age <= settings.timeout:
            return f"lift + {settings.gives}"
        return f"lift (no external {settings.gives})"

    def correct(self, measurement: PoseMeasurement) -> bool:
        """Draw the base to an external pose, by a part that depends on the time between poses.

        The pose is compared with the estimate at its own instant. One that is further off than
        `largest_jump` is refused, and so are all that follow until one is near again.

        Parameters
        ----------
        measurement : PoseMeasurement
            What the source says.

        Returns
        -------
        bool
            Whether it was taken.
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
        """Whether the source repeats a pose although the odometry has moved on since."""
        said = (measurement.position, measurement.quaternion)
        here = self._history[self._newest]
        if said != self._said:
            self._said, self._repeats, self._said_at = said, 0, here.copy()
            return False
        self._repeats += self._repeats >= 0
        way, turn = _between(self._said_at, here)
        gives = "" if self._pose is None else self._pose.gives
        moved = max(0.0 if gives == "attitude" else way, 0.0 if gives == "position" else turn)
        if self._repeats >= REPEATS and moved > FROZEN:
            self._repeats = -1  # until it says something else
        return self._repeats < 0

    def _drifts(self, anchor: NDArray[np.float64], settings: PoseSettings) -> bool:
        """Whether a correction would leave the odometry behind by more than it may be wrong.

        The momentum of a floating robot may be another one than the servo knows: there the
        odometry may be wrong by any distance.
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
        """Put the base where an external pose says, near or far: before a run.

        Parameters
        ----------
        measurement : PoseMeasurement
            What the source says; compared, as by `correct`, with the estimate at its instant.

        Returns
        -------
        bool
            Whether it was taken: once started, and with a source.
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
        """Whether a pose of an instant is newer than the last one, and not too old."""
        if not time > self._pose_time:
            return self._refuse("disordered")
        if not -AHEAD <= self._now - time <= settings.timeout:
            return self._refuse("old")
        return True

    def _fill(self, graph: Evaluator, measurement: PoseMeasurement, time: float) -> bool:
        """Give a measurement to the graph, with the two remembered poses round its instant."""
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
        """Distance and angle of what was compared."""
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
    """A pose (position and quaternion (x, y, z, w)) in the frame in which an anchor stands."""
    turn, own = Rotation.from_quat(anchor[3:]), Rotation.from_quat(pose[3:])
    return np.concatenate([anchor[:3] + turn.apply(pose[:3]), (turn * own).as_quat()])


def _between(one: NDArray[np.float64], other: NDArray[np.float64]) -> tuple[float, float]:
    """Distance (m) and angle (rad) between two poses, positions and quaternions."""
    a, b, c = (one[:3] - other[:3]).tolist()
    cosine = abs(float(one[3:] @ other[3:]))
    return math.hypot(a, b, c), 2.0 * math.acos(min(cosine, 1.0))
