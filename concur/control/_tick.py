"""The law as it is called in a loop: buffers in, buffers out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from concur.codegen import Array, Evaluator, as_floats, nonfinite_error, shape_error
from concur.control._law import law_function
from concur.control._sample import ReferenceSample
from concur.control._singularity import refusal

if TYPE_CHECKING:
    from concur.control._servo import Servo


@dataclass(frozen=True, eq=False)
class TickBuffers:
    """Arrays that the law reads and writes in place.

    Parameters
    ----------
    q, s, pose, twist, acceleration : numpy.ndarray
        Inputs: state and flat reference, to be filled before a call; s holds all velocities
        when the servo measures them.
    u : numpy.ndarray
        Output: control forces and torques, shape (nu,).
    pivot : numpy.ndarray
        Output: distance of the law from singular, shape (1,), without unit.
    missed : numpy.ndarray
        Output: output acceleration given up by damping or to torque limits, shape (size,).
    scale : numpy.ndarray
        Output: size to which torque limits scaled the demand, shape (1,); 1: not active,
        0: no room in its direction.
    """

    q: np.ndarray
    s: np.ndarray
    pose: np.ndarray
    twist: np.ndarray
    acceleration: np.ndarray
    u: np.ndarray
    pivot: np.ndarray
    missed: np.ndarray
    scale: np.ndarray


class Tick:
    """The whole law, called through buffers that are allocated once.

    Made by `Servo.compile`. One tick serves one thread at a time.

    Parameters
    ----------
    servo : Servo
        The servo.

    Attributes
    ----------
    buffers : TickBuffers
        The arrays in use: fill the inputs, call `update`, read `u`.
    """

    def __init__(self, servo: Servo) -> None:
        self.servo = servo
        self._evaluator = evaluator_of(servo)
        self._places = [f"tick of `{servo.name}`, argument `{name}`" for name in ("q", "s")]
        self.buffers = TickBuffers(
            *(view[:, 0] for view in (*self._evaluator.inputs, *self._evaluator.outputs))
        )

    def __reduce__(self) -> tuple[type[Tick], tuple[Servo]]:
        return Tick, (self.servo,)

    def update(self) -> bool:
        """Evaluate the law on the buffers.

        Returns
        -------
        bool
            Whether `buffers.u` may be used: the evaluation ran to its end, all its numbers are
            finite, and the distance from singular is not below the servo's `singular_margin`.
        """
        self._evaluator.trigger()
        buffers = self.buffers
        if not self._evaluator.succeeded:
            buffers.u[:] = np.nan
            return False
        return bool(np.isfinite(buffers.u).all() and buffers.pivot[0] >= self.servo.singular_margin)

    def __call__(self, q: Array, s: Array, sample: ReferenceSample) -> np.ndarray:
        """Control forces and torques for a state and a reference.

        Parameters
        ----------
        q, s : array_like
            Configuration and velocities that the law takes, shapes (nq,) and (nw,).
        sample : ReferenceSample
            Demanded pose, twist and acceleration of all outputs.

        Returns
        -------
        numpy.ndarray
            u, shape (nu,), N and N m: a view that the next call overwrites.

        Raises
        ------
        NonFiniteError
            If a number that came in is not finite, or no torque can meet the demand.
        SingularConfigurationError
            If the decoupling matrix is singular.
        """
        buffers = self.buffers
        self._fill(buffers.q, q, self._places[0])
        self._fill(buffers.s, s, self._places[1])
        buffers.pose[:], buffers.twist[:], buffers.acceleration[:] = self.servo.flat(sample)
        if not self.update():
            self._refuse()
        return buffers.u

    @staticmethod
    def _fill(buffer: np.ndarray, values: Array, where: str) -> None:
        array = as_floats(values, where)
        if array.shape != buffer.shape:
            raise shape_error(where, buffer.shape, array.shape)
        buffer[:] = array

    def _refuse(self) -> None:
        for name in ("q", "s"):
            values = getattr(self.buffers, name)
            if not np.isfinite(values).all():
                raise nonfinite_error(f"tick of `{self.servo.name}`, argument `{name}`", values)
        q = self.servo.model.robot.check_configuration(self.buffers.q, "argument `q`")
        raise refusal(self.servo, q, self.buffers.u, float(self.buffers.pivot[0]))


def evaluator_of(servo: Servo) -> Evaluator:
    """The law of a servo behind buffers of its own.

    Parameters
    ----------
    servo : Servo
        The servo.

    Returns
    -------
    Evaluator
        Inputs q, w, pose, twist, acceleration; outputs u, pivot, missed and scale.
    """
    shapes = [(servo.nu,), (), (servo.size,), ()]
    return Evaluator(law_function(servo), shapes, f"tick of `{servo.name}`")
