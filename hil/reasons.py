"""States of the rig and reasons of its stops: the numbers in records, each with a sentence."""

from __future__ import annotations

from enum import IntEnum


class Sentences(IntEnum):
    """Numbers for records, each with the attribute `sentence` for people."""

    sentence: str

    def __new__(cls, value: int, sentence: str) -> Sentences:
        member = int.__new__(cls, value)
        member._value_ = value
        member.sentence = sentence
        return member


class State(Sentences):
    """State of the rig; the attribute `sentence` describes it.

    Examples
    --------
    >>> import hil
    >>> [state.name for state in hil.State]
    ['DISARMED', 'ARMED', 'RUN', 'STOP']
    """

    DISARMED = 0, "the drives are without power, and no cycle requests torque"
    ARMED = 1, "the drives are under power, and the cycles request zero torque"
    RUN = 2, "the law's torques are sent to the drives after the guard has checked them"
    STOP = 3, "the rig has stopped, and remains stopped until a reset"


class Reason(Sentences):
    """Reason of a stop; the attribute `sentence` describes it.

    Examples
    --------
    >>> import hil
    >>> hil.Reason.END.sentence
    'the task is done'
    """

    NONE = 0, "there is no reason to stop"
    NOT_FINITE = 1, "a torque, position or speed is not a finite number"
    WRONG_SHAPE = 2, "a vector does not have one number for each axis"
    STALE = 3, "the last report of an axis is too old, or stamped in the future"
    OVERSPEED = 4, "a motor is faster than its speed limit and margin"
    OUT_OF_RANGE = 5, "a joint is outside its position limits and margin"
    TICK_REFUSED = 6, "the law gave no torque"
    DRIVE_FAULT = 7, "a drive reports a fault"
    DRIVE_OFF = 8, "a drive no longer applies commanded torque"
    LOST = 9, "an axis sent no report for longer than the policy allows"
    STUCK = 10, "an axis reports the same position although it must move"
    LATE = 11, "cycles were late for longer than the policy allows"
    CLOCK = 12, "the clock stood still or went back, or the machine was suspended"
    OPERATOR = 13, "the operator requested a stop"
    DEADMAN = 14, "the operator's heartbeat is missing"
    POSE_LOST = 15, "the required external pose is missing or contradicts the estimate"
    BUS_OFF = 16, "the bus no longer accepts frames"
    SIGNAL = 17, "the process received a signal to end"
    END = 18, "the task is done"
    ERROR = 19, "the loop failed with an error"
    RECORDER = 20, "the record can no longer be written"
    START_ERROR = 21, "the robot is too far from the start of its task"
    TRACKING = 22, "the robot is too far from the reference of its task"
    FOREIGN = 23, "another host on the bus commands the drives"
    OVERHEATED = 24, "a motor is hotter than it bears for any time"
    WRONG_SIGN = 25, "an axis moves against its torque: the sign of torque or encoder is wrong"
    TORQUE_SCALE = 26, "a drive applies a multiple of the torque that was sent"
    COUNT_SCALE = 27, "an encoder reports a multiple of the motion of its axis"
    IGNORED = 28, "a drive accepts torques and does not apply them"
    CONTACT = 29, "an unexpected force acts on an axis"
    JUMP = 30, "the positions of an axis jump further than it can move"
    POWER_LOST = 31, "all drives fell silent or off at once: emergency stop, supply or bus"
    DELAYED = 32, "torques act later than they were sent"
