"""Viewer of a robot: sliders of its joints, poses of its outputs, margin and limits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from concur.robot import Body, Mechanism
from concur.show._drawing import on_bodies
from concur.show.style import ARM, COM, Floats
from concur.show.viewer._scene import Scene, frame_of
from concur.show.viewer._viewer import Viewer

NEAR = 10.0
"""A configuration is near a singular one if its margin is below this factor times the least."""

BEYOND = 0.1
"""Part of the range of a joint by which its slider exceeds both limits."""


class RobotViewer(Viewer):
    """Page with a robot whose joints are moved by sliders.

    Parameters
    ----------
    robot : Mechanism
        The robot.
    q : ndarray, shape (nq,)
        First configuration.
    outputs : sequence of Output
        Outputs whose poses are shown.
    servo : TrackingLaw, optional
        Law whose decoupling margin is shown.
    port : int
        Port of this machine; 0: any free port.
    browser : bool
        Whether to open the page in a browser.
    """

    def __init__(
        self,
        robot: Mechanism,
        q: Floats,
        outputs: Sequence[Any] = (),
        servo: Any = None,
        port: int = 0,
        browser: bool = True,
    ) -> None:
        self.robot, self.outputs, self.servo = robot, on_bodies(outputs), servo
        self._start = np.array(q, dtype=float)
        super().__init__(robot.name, port, browser)

    def build(self) -> None:
        gui = self.server.gui
        self.scene = Scene(self.server, self.robot, self.outputs, self._start)
        self.scene.follow = self.scene.grows = False
        self.text = gui.add_markdown("")
        gui.add_button("Reset").on_click(lambda _: self.show(self._start))
        with gui.add_folder("Show"):
            self.frames = gui.add_checkbox("Frames", False)
            self.com = gui.add_checkbox("Centre of mass", False)
        following = self.robot.following
        self._moved = [b for b in self.robot.bodies if b.joint.nv and b.name not in following]
        self.sliders: dict[str, Any] = {}
        with gui.add_folder("Joints (m, rad)"):
            for body in self._moved:
                self._add_sliders(body)
        self._state: tuple[Any, ...] = ()

    def _add_sliders(self, body: Body) -> None:
        joint, at = body.joint, body.joint.quaternion_at
        units, names = joint.coordinate_units, joint.coordinate_names
        if at is not None:  # a rotation vector for the quaternion
            units, names = (*units[:at], *["rad"] * 3), (*names[:at], "rx", "ry", "rz")
        values = _parameters(joint, self._start[self.robot.q_slice(body.name)])
        for k, (name, unit, value) in enumerate(zip(names, units, values, strict=True)):
            low, high = body.limits[k] if at is None else (-np.inf, np.inf)
            reach = np.pi if unit == "rad" else self.scene.size
            bounds = [x for x in (low, high) if np.isfinite(x)]
            first = low if np.isfinite(low) else min(value, *bounds, 0.0) - reach
            last = high if np.isfinite(high) else max(value, *bounds, 0.0) + reach
            if unit == "rad" and not bounds and abs(value) <= np.pi:
                first, last = -np.pi, np.pi
            beyond = BEYOND * (last - first) if bounds else 0.0
            label = body.joint_label if len(names) == 1 else f"{body.joint_label}.{name}"
            self.sliders[label] = self.server.gui.add_slider(
                label,
                round(min(first - beyond, value), 3),
                round(max(last + beyond, value), 3),
                0.001,
                round(float(value), 3),
                marks=tuple((round(float(x), 3), f"{x:.3g}") for x in bounds) or None,
            )

    def show(self, q: Floats) -> None:
        """Move the sliders to a configuration.

        Parameters
        ----------
        q : ndarray, shape (nq,)
            The configuration; joints that follow others are ignored.
        """
        values = [
            value
            for body in self._moved
            for value in _parameters(body.joint, q[self.robot.q_slice(body.name)])
        ]
        for slider, value in zip(self.sliders.values(), values, strict=True):
            slider.value = float(value)

    @property
    def q(self) -> Floats:
        """Configuration of the sliders, shape (nq,)."""
        q, values = self._start.copy(), iter(s.value for s in self.sliders.values())
        for body in self._moved:
            own = np.array([next(values) for _ in range(body.joint.nv)])
            q[self.robot.q_slice(body.name)] = _coordinates(body.joint, own)
        return np.asarray(self.robot.coupled(q))

    def update(self) -> None:
        state = tuple(s.value for s in (*self.sliders.values(), self.frames, self.com))
        if state == self._state:
            return
        self._state = state
        q = self.q
        self.scene.show(bool(self.com.value), bool(self.frames.value))
        self.scene.update(q, np.full(sum(o.pose_size for o in self.outputs), np.nan))
        warnings = self.warnings(q)
        self.scene.paint(COM if warnings else ARM)
        self.text.content = "\n\n".join([*(f"**⚠ {line}**" for line in warnings), *self._words(q)])

    def warnings(self, q: Floats) -> list[str]:
        """Joints outside their limits, and a decoupling margin near zero.

        Parameters
        ----------
        q : ndarray, shape (nq,)
            Configuration.

        Returns
        -------
        list of str
            One sentence each; empty for a regular configuration within limits.
        """
        found = []
        for body in self.robot.bodies:
            units, names = body.joint.coordinate_units, body.joint.coordinate_names
            own = q[self.robot.q_slice(body.name)]
            for value, (low, high), unit, name in zip(own, body.limits, units, names, strict=True):
                if not low <= value <= high:
                    label = body.joint_label if len(own) == 1 else f"{body.joint_label}.{name}"
                    found.append(
                        f"{label} {value:.3f} {unit} is outside [{low:.3f}, {high:.3f}] {unit}"
                    )
        if self.servo is not None and (margin := self.servo.margin(q)) < self.near:
            least = self.servo.margins.refused_below
            state = "singular" if margin < least else "near a singular configuration"
            found.append(f"{state}: margin {margin:.2g}, no torque below {least:.2g}")
        return found

    @property
    def near(self) -> float:
        """Decoupling margin below which a warning is shown."""
        return float(
            max(NEAR * self.servo.margins.refused_below, self.servo.damping_threshold or 0.0)
        )

    def _words(self, q: Floats) -> list[str]:
        lines = []
        for output in self.outputs:
            pose = np.asarray(self.robot.pose(q, output.body)) @ frame_of(output)
            whose = output.name
            if output.relative_to is not None:
                pose = np.linalg.solve(np.asarray(self.robot.pose(q, output.relative_to)), pose)
                whose += f" relative to {output.relative_to}"
            place, turn = pose[:3, 3], Rotation.from_matrix(pose[:3, :3]).as_rotvec()
            lines.append(
                f"**{whose}**: position ({_listed(place)}) m, rotation vector ({_listed(turn)}) rad"
            )
        if self.servo is not None:
            lines.append(f"**Decoupling margin**: {self.servo.margin(q):.3g}")
        return lines


def _listed(values: Floats) -> str:
    return ", ".join(f"{value:.3f}" for value in values)


def _parameters(joint: Any, q: Floats) -> Floats:
    """Values of a joint's sliders for its coordinates."""
    at = joint.quaternion_at
    return q if at is None else np.concatenate([q[:at], Rotation.from_quat(q[at:]).as_rotvec()])


def _coordinates(joint: Any, values: Floats) -> Floats:
    """Coordinates of a joint for the values of its sliders."""
    at = joint.quaternion_at
    if at is None:
        return values
    return np.concatenate([values[:at], Rotation.from_rotvec(values[at:]).as_quat()])
