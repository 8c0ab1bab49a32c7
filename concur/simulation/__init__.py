"""Motions in time: closed loops on the full-order plant, and reduced models under torques."""

from concur.simulation._compare import LEAST as LEAST
from concur.simulation._compare import Comparison, ComparisonRow, RunRecord, compare
from concur.simulation._disturbances import GravityGradient, Wrench
from concur.simulation._driver import program_run
from concur.simulation._drives import check_friction
from concur.simulation._forced import MOTION_METHODS, forced_motion, reconstruct
from concur.simulation._friction import Friction
from concur.simulation._imperfections import KINDS, Imperfections, Kind
from concur.simulation._integrator import (
    FASTEST_START,
    LONGEST_RUN,
    METHODS,
    MOST_STEPS,
    SHORTEST_STEP,
    Integrator,
)
from concur.simulation._latency import Latency, encoder_count, encoder_reading
from concur.simulation._motion import Motion
from concur.simulation._motors import motor_numbers as motor_numbers
from concur.simulation._mujoco import ContactRun, mujoco_run
from concur.simulation._plant import Plant
from concur.simulation._program import Program, loop_program
from concur.simulation._record import recorded_run
from concur.simulation._run import Run
from concur.simulation._run_data import Tolerances
from concur.simulation._run_data import error_parts as error_parts
from concur.simulation._signals import ValidRange, first_invalid, run_signals, valid_ranges
from concur.simulation._simulate import RealPlant, simulate
from concur.simulation._slip import Slip
from concur.simulation._stored import coordinate_columns, velocity_columns, write_arrays

__all__ = [
    "FASTEST_START",
    "KINDS",
    "LONGEST_RUN",
    "METHODS",
    "MOST_STEPS",
    "MOTION_METHODS",
    "SHORTEST_STEP",
    "Comparison",
    "ComparisonRow",
    "ContactRun",
    "Friction",
    "GravityGradient",
    "Imperfections",
    "Integrator",
    "Kind",
    "Latency",
    "Motion",
    "Plant",
    "Program",
    "RealPlant",
    "Run",
    "RunRecord",
    "Slip",
    "Tolerances",
    "ValidRange",
    "Wrench",
    "check_friction",
    "compare",
    "coordinate_columns",
    "encoder_count",
    "encoder_reading",
    "first_invalid",
    "forced_motion",
    "loop_program",
    "mujoco_run",
    "program_run",
    "reconstruct",
    "recorded_run",
    "run_signals",
    "simulate",
    "valid_ranges",
    "velocity_columns",
    "write_arrays",
]
