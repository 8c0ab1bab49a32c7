"""States of the rig and reasons of its stops: numbers that records keep, with their sentences."""

from __future__ import annotations

from enum import IntEnum


class Sentences(IntEnum):
    """Numbers that are recorded, each with the sentence that is shown."""

    sentence: str

    def __new__(cls, value: int, sentence: str) -> Sentences:
        member = int.__new__(cls, value)
        member._value_ = value
        member.sentence = sentence
        return member


class State(Sentences):
    """What the rig may do; the attribute `sentence` says it."""

    DISARMED = 0, "the drives are without power, and no cycle asks for torque"
    ARMED = 1, "the drives are under power and asked for zero torque"
    RUN = 2, "the law's torques leave for the drives, once the guard has passed them"
    STOP = 3, "the rig has stopped, and stays so until it is reset"


class Reason(Sentences):
    """Why the rig stopped; the attribute `sentence` says it."""

    NONE = 0, "nothing asks for a stop"
    NOT_FINITE = 1, "a torque, position or speed is not a finite number"
    WRONG_SHAPE = 2, "a vector does not have one number for each axis"
    STALE = 3, "the last report of an axis is too old, or stamped in the future"
    OVERSPEED = 4, "a joint is faster than its speed limit and margin"
    OUT_OF_RANGE = 5, "a joint is outside its position limits and margin"
    TICK_REFUSED = 6, "the law gave no torque"
    DRIVE_FAULT = 7, "a drive reports a fault"
    DRIVE_OFF = 8, "a drive no longer turns commands into torque"
    LOST = 9, "reports of an axis stayed away for longer than the policy allows"
    STUCK = 10, "an encoder reports the same position although the joint must move"
    LATE = 11, "cycles were late for longer than the policy allows"
    CLOCK = 12, "the clock stood still or went back, or the machine slept"
    OPERATOR = 13, "the operator asked for a stop"
    DEADMAN = 14, "the operator's heartbeat stayed away"
    POSE_LOST = 15, "the external pose that the rig file requires stayed away"
    BUS_OFF = 16, "the bus no longer takes frames"
    SIGNAL = 17, "the process was asked to end"
    END = 18, "the task is done"
    ERROR = 19, "the loop failed with an error"
    RECORDER = 20, "the record can no longer be written"
    START_ERROR = 21, "the robot is too far from the start of its task"
    TRACKING = 22, "the robot is too far from the reference of its task"
    FOREIGN = 23, "somebody else on the bus commands the drives"
