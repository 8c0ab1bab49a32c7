"""A servo as an FMU for co-simulation."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

import casadi as ca

from concur.codegen import FmuModel, FmuVariable, plain_text, write_fmu, zero_unless_finite
from concur.control._reference_tick import exported_tick
from concur.control._signals import input_signals, meaning, output_signals, state_signal
from concur.control._tick import KEPT, TickStatus
from concur.control._tracking_law import TrackingLaw
from concur.outputs.references import Reference


def export_fmu(
    servo: TrackingLaw,
    directory: str | PathLike[str],
    name: str | None = None,
    fmi: str = "3.0",
    reference: Reference | None = None,
) -> Path:
    """Write a law as an FMU for co-simulation, named after the robot, and return its path."""
    return write_fmu(servo_fmu(servo, name, reference), directory, fmi)


def servo_fmu(
    servo: TrackingLaw, name: str | None = None, reference: Reference | None = None
) -> FmuModel:
    """Describe a law as an FMU for co-simulation.

    It has no state but that of its law, such as an integral, z among its outputs, which each
    communication step advances by its length: the outputs follow from inputs and z at once, but for
    the status, which also compares a step with the one before. Inputs are q, s, pose, twist,
    acceleration and, where the model rests on one, momentum; with a reference inside, the time t in
    place of pose, twist and acceleration. Outputs are u, pivot, missed, scale, status, a
    `TickStatus`, and z.
    """
    said = "; ".join(f"{int(code)}: {meaning(servo, code)}" for code in TickStatus)
    status = FmuVariable(
        "status", "output", f"Unless zero, the controls are zero. {said}.", integer=True
    )
    inputs = input_signals(servo, timed=reference is not None)
    state = state_signal(servo)
    followed = ", ".join(f"{output.name} ({output.group})" for output in servo.outputs)
    return FmuModel(
        name=name or f"{servo.name}_servo",
        description=plain_text(
            f"Law of {servo.name}: controls that let {followed} follow a reference."
        ),
        variables=[
            *(FmuVariable.of(signal, "input") for signal in inputs if signal.name != "period"),
            *(FmuVariable.of(signal, "output") for signal in output_signals(servo)),
            status,
            *([] if state is None else [FmuVariable.of(state, "output")]),
        ],
        outputs=_function(exported_tick(servo, reference), servo.size),
        memory=KEPT + servo.nz,
        remembered="" if state is None else state.name,
        longest_step=servo.state_bounds.period if servo.nz else 0.0,
        messages=tuple(_sentence(meaning(servo, code)) for code in TickStatus),
    )


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _function(tick: ca.Function, size: int) -> ca.Function:
    """The tick, with zeros in place of non-finite values, which make other tools stop."""
    kind = ca.SX if tick.is_a("SXFunction") else ca.MX
    names = tick.name_in()
    inputs = [kind.sym(name, tick.size1_in(i)) for i, name in enumerate(names)]
    u, pivot, missed, scale, status, after = tick.call(inputs)
    told = _told(size).call([pivot, missed, scale])
    return ca.Function("outputs", inputs, [u, *told, status, after], names, tick.name_out())


def _told(size: int) -> ca.Function:
    inputs = [ca.SX.sym("pivot"), ca.SX.sym("missed", size), ca.SX.sym("scale")]
    told = [zero_unless_finite(x) for x in inputs]
    return ca.Function("told", inputs, told)
