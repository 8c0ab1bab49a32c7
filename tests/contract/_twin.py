"""The same robot in Pinocchio, with the rows of its wheels and couplings: concur is not called.

Descriptions are read (bodies, joints, placements, inertias, wheels, mimics, motors, steering);
all computing is Pinocchio's and NumPy's. Joints that the library lacks become chains of its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin
from scipy.spatial.transform import Rotation

Array = np.ndarray


def _turned(normal: Array) -> Array:
    """Shortest rotation from z to a direction."""
    z = np.array([0.0, 0.0, 1.0])
    across, cosine = np.cross(z, normal), z @ normal
    sine = np.linalg.norm(across)
    if sine < 1e-12:
        return np.eye(3) if cosine > 0 else np.diag([1.0, -1.0, -1.0])
    return Rotation.from_rotvec(across / sine * np.arctan2(sine, cosine)).as_matrix()


def _pieces(joint: Any) -> tuple[list[tuple[Any, list[int], list[int]]], Array]:
    """Joints of the library with their places in the q and v of ours, and the rotation of both."""
    kind, along = type(joint).__name__, pin.JointModelPrismaticUnaligned
    if kind == "Fixed":
        return [], np.eye(3)
    if kind in ("Revolute", "Prismatic", "Cylindrical"):
        axis = np.array(joint.axis, dtype=float)
        turn = pin.JointModelRevoluteUnaligned(axis)
        whole = {"Revolute": [turn], "Prismatic": [along(axis)], "Cylindrical": [along(axis), turn]}
        return [(model, [k], [k]) for k, model in enumerate(whole[kind])], np.eye(3)
    if kind == "Helical":
        axis = np.array(joint.axis, dtype=float)
        return [(pin.JointModelHelicalUnaligned(axis, joint.pitch), [0], [0])], np.eye(3)
    if kind == "Sliding":
        frame = _turned(np.array(joint.normal, dtype=float))
        x, y, _ = np.eye(3)
        return [(along(x), [0], [0]), (along(y), [1], [1])], frame
    if kind == "Planar":
        frame = _turned(np.array(joint.normal, dtype=float))
        return [(pin.JointModelPlanar(), [0, 1, 2], [0, 1, 2])], frame
    if kind == "PlanarPrismatic":
        frame = _turned(np.array(joint.normal, dtype=float))
        rise, plane = (along(np.array([0.0, 0.0, 1.0])), [2], [2]), [0, 1, 3]
        return [rise, (pin.JointModelPlanar(), plane, plane)], frame
    whole = {
        "Spherical": (pin.JointModelSpherical(), 4, 3),
        "Cartesian": (pin.JointModelTranslation(), 3, 3),
        "Free": (pin.JointModelFreeFlyer(), 7, 6),
    }
    model, nq, nv = whole[kind]
    return [(model, list(range(nq)), list(range(nv)))], np.eye(3)


class Twin:
    """A robot in Pinocchio, in the coordinates of concur.

    Parameters
    ----------
    robot : Mechanism
        Its description is read; nothing of it is evaluated.
    """

    def __init__(self, robot: Any) -> None:
        self.robot = robot
        self.model = pin.Model()
        self.model.gravity = pin.Motion(np.array(robot.gravity, dtype=float), np.zeros(3))
        self._joint: dict[str, int] = {}
        self._offset: dict[str, pin.SE3] = {}
        self.start: dict[str, tuple[int, int]] = {}
        self.body = {body.name: body for body in robot.bodies}
        self.nq = self.nv = 0
        for body in robot.bodies:
            self.start[body.name] = self.nq, self.nv
            self.nq, self.nv = self.nq + body.joint.nq, self.nv + body.joint.nv
        self._qv: list[tuple[Any, list[int], list[int]]] = []
        children: dict[str | None, list[Any]] = {}
        for body in robot.bodies:
            children.setdefault(body.parent, []).append(body)
        waiting = list(reversed(children[None]))
        while waiting:  # depth first, as the library wants it
            body = waiting.pop()
            self._add(body)
            waiting.extend(reversed(children.get(body.name, [])))
        self.data = self.model.createData()
        self._columns = np.array([v for _, _, vs in self._qv for v in vs], dtype=int)

    def _add(self, body: Any) -> None:
        index = 0 if body.parent is None else self._joint[body.parent]
        before = pin.SE3.Identity() if body.parent is None else self._offset[body.parent]
        turn = Rotation.from_quat(body.placement.rotation).as_matrix()
        offset = before * pin.SE3(turn, np.array(body.placement.translation, dtype=float))
        pieces, frame = _pieces(body.joint)
        iq, iv = self.start[body.name]
        for k, (model, qs, vs) in enumerate(pieces):
            at = offset * pin.SE3(frame, np.zeros(3)) if k == 0 else pin.SE3.Identity()
            index = self.model.addJoint(index, model, at, f"{body.name} {k}")
            self._qv.append((model, [iq + x for x in qs], [iv + x for x in vs]))
        if pieces:
            offset = pin.SE3(frame.T, np.zeros(3))
        self._joint[body.name], self._offset[body.name] = index, offset
        moments = np.array(body.inertia.moments, dtype=float)
        tensor = np.diag(moments) if moments.ndim == 1 else moments
        com = np.array(body.inertia.com, dtype=float)
        if index:
            inertia = pin.Inertia(float(body.inertia.mass), com, tensor)
            self.model.appendBodyToJoint(index, inertia, offset)

    # --- coordinates ----------------------------------------------------------------------------

    def _q(self, q: Array) -> Array:
        parts = []
        for model, qs, _ in self._qv:
            own = np.asarray(q, dtype=float)[qs]
            if isinstance(model, pin.JointModelPlanar):
                own = np.array([own[0], own[1], np.cos(own[2]), np.sin(own[2])])
            parts.append(own)
        return np.concatenate(parts)

    def _v(self, v: Array) -> Array:
        return np.asarray(v, dtype=float)[self._columns]

    def _back(self, vector: Array) -> Array:
        ours = np.zeros(self.nv)
        ours[self._columns] = vector
        return ours

    def rate(self, q: Array, v: Array) -> Array:
        """Time derivative of the coordinates, written out joint by joint."""
        ours = np.zeros(self.nq)
        for model, qs, vs in self._qv:
            own, move = np.asarray(q, float)[qs], np.asarray(v, float)[vs]
            if isinstance(model, pin.JointModelPlanar):
                c, s = np.cos(own[2]), np.sin(own[2])
                ours[qs] = [c * move[0] - s * move[1], s * move[0] + c * move[1], move[2]]
            elif len(qs) > len(vs):
                turn, spin = own[-4:], move[-3:]
                rate = 0.5 * np.append(turn[3] * spin + np.cross(turn[:3], spin), -turn[:3] @ spin)
                ours[qs[-4:]] = rate
                if len(qs) == 7:
                    ours[qs[:3]] = Rotation.from_quat(turn).apply(move[:3])
            else:
                ours[qs] = move
        return ours

    # --- rigid-body quantities ------------------------------------------------------------------

    def mass_matrix(self, q: Array) -> Array:
        """Joint-space inertia M, shape (nv, nv)."""
        upper = np.triu(pin.crba(self.model, self.data, self._q(q)))
        ours = np.zeros((self.nv, self.nv))
        ours[np.ix_(self._columns, self._columns)] = upper + np.triu(upper, 1).T
        return ours

    def bias(self, q: Array, v: Array) -> Array:
        """Coriolis, centrifugal and gravity forces, shape (nv,)."""
        return self._back(pin.nonLinearEffects(self.model, self.data, self._q(q), self._v(v)))

    def momentum(self, q: Array, v: Array) -> Array:
        """Spatial momentum about the inertial origin, [linear; angular]."""
        pin.computeCentroidalMomentum(self.model, self.data, self._q(q), self._v(v))
        linear, angular = self.data.hg.linear, self.data.hg.angular
        return np.concatenate([linear, angular + np.cross(self.data.com[0], linear)])

    def momentum_rows(self, q: Array) -> Array:
        """Momentum per velocity, shape (6, nv)."""
        return np.array([self.momentum(q, e) for e in np.eye(self.nv)]).T

    def kinetic_energy(self, q: Array, v: Array) -> float:
        """Kinetic energy, J."""
        return float(pin.computeKineticEnergy(self.model, self.data, self._q(q), self._v(v)))

    def pose(self, q: Array, body: str) -> Array:
        """Pose of a body, shape (4, 4)."""
        pin.forwardKinematics(self.model, self.data, self._q(q))
        return np.asarray((self.data.oMi[self._joint[body]] * self._offset[body]).homogeneous)

    def jacobian(self, q: Array, body: str) -> Array:
        """Body twist per velocity, shape (6, nv)."""
        ours, joint = np.zeros((6, self.nv)), self._joint[body]
        if joint:
            own = pin.computeJointJacobian(self.model, self.data, self._q(q), joint)
            ours[:, self._columns] = self._offset[body].toActionMatrixInverse() @ own.reshape(6, -1)
        return ours

    def twist_rate(self, q: Array, v: Array, body: str, vdot: Array | None = None) -> Array:
        """Derivative of the body twist, shape (6,); without vdot at no joint acceleration."""
        move = np.zeros(self.nv) if vdot is None else vdot
        pin.forwardKinematics(self.model, self.data, self._q(q), self._v(v), self._v(move))
        return np.asarray(self._offset[body].actInv(self.data.a[self._joint[body]]).vector)

    # --- constraints ----------------------------------------------------------------------------

    def _grip(self, wheel: Any, q: Array) -> tuple[Array, Array, Any]:
        """Axis in the wheel's body, normal of its plane in the world, and the body of the plane."""
        axis = wheel.axis if wheel.axis is not None else self.body[wheel.body].joint.axis
        plane, name = self.body[wheel.body], None
        while name is None:  # the first planar joint below the base
            if type(plane.joint).__name__ in ("Planar", "Sliding"):
                name = plane.name
                found = plane
            if plane.parent is None:
                break
            plane = self.body[plane.parent]
        assert name is not None
        turn = Rotation.from_quat(found.placement.rotation).as_matrix()
        above = np.eye(3) if found.parent is None else self.pose(q, found.parent)[:3, :3]
        normal = above @ turn @ np.array(found.joint.normal, dtype=float)
        return np.array(axis, dtype=float), normal, found.parent

    def _moving(self, q: Array, v: Array, body: str, point: Array) -> tuple[Array, Array, Array]:
        """Velocity rows of a material point, its acceleration at vdot = 0, and the body's spin."""
        turn, jacobian = self.pose(q, body)[:3, :3], self.jacobian(q, body)
        twist, rate = jacobian @ v, self.twist_rate(q, v, body)
        skew = np.array(
            [[0, -point[2], point[1]], [point[2], 0, -point[0]], [-point[1], point[0], 0]]
        )
        rows = turn @ (jacobian[:3] - skew @ jacobian[3:])
        linear, spin = twist[:3] + np.cross(twist[3:], point), twist[3:]
        drift = rate[:3] + np.cross(rate[3:], point) + np.cross(spin, linear)
        return rows, turn @ drift, turn @ spin

    def constraints(self, q: Array, v: Array) -> tuple[Array, Array]:
        """All rows C, dependent ones too, and Cdot v, for wheels, mimics and steering."""
        rows: list[Array] = []
        drifts: list[float] = []
        for wheel in self.robot.wheels:
            self._roll(wheel, q, v, rows, drifts)
        for mimic in self.robot.mimics:
            row = np.zeros(self.nv)
            row[self.start[mimic.body][1]] = 1.0
            row[self.start[mimic.of][1]] = -mimic.multiplier
            rows.append(row)
            drifts.append(0.0)
        for steering in self.robot.steering:
            self._steer(steering, q, v, rows, drifts)
        return np.array(rows).reshape(-1, self.nv), np.array(drifts)

    def _roll(self, wheel: Any, q: Array, v: Array, rows: list[Array], drifts: list[float]) -> None:
        """The velocity of the wheel's lowest point against the plane, along what it grips."""
        axis, normal, ground = self._grip(wheel, q)
        turn = self.pose(q, wheel.body)[:3, :3]
        center = np.array(wheel.center, dtype=float)
        down = -wheel.radius * normal  # wheels here stand upright: the axle is in the plane
        point = center + turn.T @ down
        assert abs(turn @ axis @ normal) < 1e-9
        own, drift, spin = self._moving(q, v, wheel.body, point)
        # The contact moves along the wheel, which turns beneath it: the offset is fixed in the
        # plane, not in the wheel, and so its part of the acceleration is alpha x offset alone.
        contact = np.cross(spin, down)
        drift = drift - np.cross(spin, contact)
        base_spin = np.zeros(3)
        if ground is not None:
            # The plane is that of a moving body: subtract the velocity of its own point there.
            there = self.pose(q, wheel.body) @ np.append(point, 1.0)
            frame = self.pose(q, ground)
            local = frame[:3, :3].T @ (there[:3] - frame[:3, 3])
            carried, carried_drift, base_spin = self._moving(q, v, ground, local)
            drift = drift + np.cross(spin, np.cross(base_spin, down))
            # That point travels over the plane with the wheel's centre, relative to the plane.
            sliding = (own - carried) @ v - (np.cross(spin, down) - np.cross(base_spin, down))
            drift = drift - carried_drift - np.cross(base_spin, sliding)
            own = own - carried
        along = turn @ axis
        # The axle turns with the vehicle: its own rate is that of the wheel's spin across it.
        ahead, turning = np.cross(along, normal), np.cross(spin, along)
        ahead_rate = np.cross(turning, normal) + np.cross(along, np.cross(base_spin, normal))
        across = (along, turning)
        if wheel.kind == "disk":
            directions = [across, (ahead, ahead_rate)]
        elif wheel.kind == "slider":
            directions = [across]
        else:
            angle = np.pi / 2 if wheel.kind == "omni" else wheel.roller_angle
            c, s = np.cos(angle), np.sin(angle)
            directions = [(c * along + s * ahead, c * turning + s * ahead_rate)]
        slip = own @ v
        for direction, rate in directions:
            rows.append(direction @ own)
            drifts.append(float(direction @ drift + rate @ slip))

    def _axle(self, wheel: str, q: Array) -> tuple[Array, Array, int | None]:
        """Line of an axle in the chassis, its derivative by the steering angle, and its place."""
        body = self.body[wheel]
        carrier = self.body[body.parent]
        place, angle, column = np.zeros(2), 0.0, None
        steered = carrier.parent is not None
        if steered:  # fork between chassis and wheel
            iq, column = self.start[carrier.name]
            angle = q[iq] * float(carrier.joint.axis[2])
            place = place + np.array(carrier.placement.translation)[:2]
        c, s = np.cos(angle), np.sin(angle)
        turn = np.array([[c, -s], [s, c]])
        place = place + turn @ np.array(body.placement.translation)[:2]

        def line(along: Array) -> Array:
            across = np.array([-along[1], along[0]])
            return np.append(across, -across @ place)

        axle = turn @ np.array(body.joint.axis, dtype=float)[:2]
        sign = float(carrier.joint.axis[2]) if steered else 0.0
        return line(axle), sign * line(np.array([-axle[1], axle[0]])), column

    def _steer(
        self, steering: Any, q: Array, v: Array, rows: list[Array], drifts: list[float]
    ) -> None:
        """Three axles meet in one point: the determinant of their lines is zero, and so its rate.

        Wheels here have vertical steering axes through their centres.
        """
        lines, slopes, columns = zip(
            *(self._axle(name, q) for name in (*steering.guides, steering.wheel)), strict=True
        )
        assert abs(np.linalg.det(lines)) < 1e-9
        row, drift = np.zeros(self.nv), 0.0
        for i in range(3):
            if columns[i] is None:
                continue
            turned = [slopes[k] if k == i else lines[k] for k in range(3)]
            row[columns[i]] = np.linalg.det(turned)
            drift -= np.linalg.det(lines) * v[columns[i]] ** 2  # lines turn: l'' = -l
            for j in range(3):
                if j != i and columns[j] is not None:
                    both = [slopes[k] if k in (i, j) else lines[k] for k in range(3)]
                    drift += np.linalg.det(both) * v[columns[i]] * v[columns[j]]
        rows.append(row)
        drifts.append(drift)

    # --- the constrained system -----------------------------------------------------------------

    def actuation(self) -> Array:
        """Columns of the controls on v: joints, gears and mimics are read, shape (nv, nu)."""
        columns = []
        for name in self.robot.actuated:
            first, size = self.start[name][1], self.body[name].joint.nv
            columns += list(np.eye(self.nv)[first : first + size])
        for motor in self.robot.motors:
            column = np.zeros(self.nv)
            for name, ratio in motor.ratios.items():
                column[self.start[name][1]] = ratio
            columns.append(column)
        return np.array(columns).reshape(-1, self.nv).T

    def acceleration(self, q: Array, v: Array, u: Array) -> Array:
        """Acceleration (nv,) under controls, by the KKT system with all multipliers.

        Dependent rows are allowed: the acceleration is unique, the multipliers are the least.
        """
        rows, drift = self.constraints(q, v)
        f = len(rows)
        matrix = np.block([[self.mass_matrix(q), rows.T], [rows, np.zeros((f, f))]])
        right = np.concatenate([self.actuation() @ u - self.bias(q, v), -drift])
        solution, *_ = np.linalg.lstsq(matrix, right, rcond=1e-13)
        np.testing.assert_allclose(matrix @ solution, right, atol=1e-7 * (1 + np.abs(right).max()))
        return np.asarray(solution[: self.nv])
