"""The law of an operating box as saved: instructions that `recheck` evaluates independently."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import casadi as ca
import numpy as np

from concur.certify._operating_graph import Graph, regular
from concur.codegen import Array
from concur.control import Servo

_NAMES = {
    ca.OP_NEG: "neg",
    ca.OP_TWICE: "twice",
    ca.OP_SQ: "sq",
    ca.OP_INV: "inv",
    ca.OP_SQRT: "sqrt",
    ca.OP_SIN: "sin",
    ca.OP_COS: "cos",
    ca.OP_FABS: "fabs",
    ca.OP_NOT: "not",
    ca.OP_ADD: "add",
    ca.OP_SUB: "sub",
    ca.OP_MUL: "mul",
    ca.OP_DIV: "div",
    ca.OP_ATAN2: "atan2",
    ca.OP_FMIN: "fmin",
    ca.OP_FMAX: "fmax",
    ca.OP_AND: "and",
    ca.OP_OR: "or",
    ca.OP_IF_ELSE_ZERO: "if_else_zero",
    ca.OP_LT: "lt",
    ca.OP_LE: "le",
    ca.OP_EQ: "eq",
    ca.OP_NE: "ne",
}


def program(arguments: Sequence[Array], results: dict[str, Array]) -> dict[str, Any] | None:
    """Write a function as instructions that each make one value, as in `_recheck_program`.

    Returns None if that format lacks one of its instructions or constants.
    """
    parts = [ca.densify(ca.SX(part)) for part in results.values()]
    function = ca.Function("program", list(arguments), parts, {"cse": True})
    code: list[list[Any]] = []
    held: dict[int, int] = {}
    found = {
        name: [[0] * part.shape[1] for _ in range(part.shape[0])]
        for name, part in zip(results, parts, strict=True)
    }
    for k in range(function.n_instructions()):
        operation = function.instruction_id(k)
        source, into = function.instruction_input(k), function.instruction_output(k)
        if operation == ca.OP_OUTPUT:
            number, entry = into
            rows = list(found.values())[number]
            rows[entry % len(rows)][entry // len(rows)] = held[source[0]]
            continue
        if operation == ca.OP_ASSIGN:
            held[into[0]] = held[source[0]]
            continue
        if operation == ca.OP_CONST:
            value = function.instruction_constant(k)
            if not math.isfinite(value):
                return None
            step = ["const", value]
        elif operation == ca.OP_INPUT:
            step = ["input", *source]
        elif operation in _NAMES:
            step = [_NAMES[operation], *(held[place] for place in source)]
        else:
            return None
        held[into[0]] = len(code)
        code.append(step)
    return {"code": code, "results": found}


def law_document(
    servo: Servo, graph: Graph, stated: dict[str, Any], state: bool
) -> dict[str, Any] | None:
    """Write the law of an operating box, as in `_recheck_operating`; None if that is impossible."""
    x, w = ca.SX.sym("x", len(graph.coordinates)), ca.SX.sym("w", len(graph.speeds))
    placed = ca.SX(ca.DM(graph.neutral))
    placed[list(graph.coordinates)] = x
    names = ("decoupling", "mass", "actuation", "velocity", "products")
    values = graph.coefficients(placed, w)
    programs = {"matrices": program([x], dict(zip(names, values, strict=False)))}
    if graph.regularity is not None:
        value = regular(servo, placed)
        programs["regularity"] = program([x], {"regularity": value})
    if len(graph.speeds):
        group, size = servo.error_dynamics.group, servo.size
        e, ve, a, v = (ca.SX.sym(name, size) for name in ("x", "ve", "a", "v"))
        command = servo.error_dynamics.feedback(e, ve) + group.transport(e) @ a
        programs["command"] = program([e, ve, a], {"command": command})
        programs["carried"] = program([v, ve], {"carried": group.ad(v) @ ve})
    if state:
        given, parts = servo_equations(servo)
        programs["state"] = program(given, parts)
    if None in programs.values():
        return None
    return {
        **stated,
        "controls": list(servo.model.control_names),
        "units": list(servo.model.control_units),
        "shape": servo.ns,
        "size": servo.size,
        "w": graph.speeds.tolist(),
        "neutral": graph.neutral.tolist(),
        "scales": np.asarray(servo.margins.scales[0], dtype=float).tolist(),
        "mixing": graph.mixing.astype(int).tolist(),
        "programs": programs,
    }


def servo_equations(servo: Servo) -> tuple[list[Array], dict[str, Array]]:
    """Equations of the law at a state, and its errors, as functions of the state."""
    sizes = {"q": servo.nq, "s": servo.ns, "pose": servo.pose_size}
    sizes |= {"twist": servo.size, "acceleration": servo.size}
    q, s, pose, twist, acceleration = given = [ca.SX.sym(*one) for one in sizes.items()]
    model, group = servo.model, servo.error_dynamics.group
    x, ve = servo.errors(q, s, pose, twist)
    velocity, drift = servo.motion(q, servo.velocity(q, s))
    command = servo.error_dynamics.feedback(x, ve) + group.transport(x) @ acceleration
    command += group.ad(velocity) @ ve
    return given, {
        "decoupling": servo.decoupling(q),
        "residual": command - drift,
        "mass": model.mass_matrix(q),
        "forces": model.shape_forces(q, servo.velocity(q, s), ca.SX.zeros(servo.ns)),
        "actuation": model.input_matrix(q),
        "x": x,
        "ve": ve,
    }
