"""C sources of an FMU: the graphs, tables, and the functions of FMI."""

from __future__ import annotations

import json
from pathlib import Path

import casadi as ca

from concur.codegen._c_text import CText, c_text
from concur.codegen._fmu_model import LONGEST_STEP, STEP_SIZE, FmuModel, FmuVariable

TOKEN = "@TOKEN@"
"""Placeholder of the hash of the contents."""

_TEMPLATES = Path(__file__).with_name("fmu")
_SIGNATURE = "const double **arg, double **res, int *iw, double *w, double *more"


def variable_table(model: FmuModel, version: str) -> list[tuple[FmuVariable, int | None]]:
    """Variables of an FMU in the order of their references, from 1; 0 is the time.

    Pairs of a variable and the index of a number in it: in FMI 2.0 each number has its own entry;
    in 3.0 a vector is one entry with index None.
    """
    table: list[tuple[FmuVariable, int | None]] = []
    for variable in model.all_variables:
        if version == "3.0" or not variable.elements:
            table.append((variable, None))
        else:
            table += [(variable, k) for k in range(variable.size)]
    return table


def fmu_sources(model: FmuModel, version: str) -> dict[str, str]:
    """Texts of an FMU in C99, by file name; files that end with `.c` must be compiled."""
    texts = {name: c_text(f, "double") for name, f in model.functions().items()}
    interface = f"fmi{version[0]}.c"
    files = {
        name: (_TEMPLATES / name).read_text(encoding="utf-8") for name in (interface, "unit.h")
    }
    files["model.h"] = _tables(model, version, texts)
    for name, text in texts.items():
        files[f"{name}.c"] = (
            f"/* {model.identifier}: {name}. */\n\n#include <math.h>\n\ntypedef double real_t;\n\n"
            f"int {model.identifier}_{name}({_SIGNATURE});\n\n{text.text}\n"
            f"int {model.identifier}_{name}({_SIGNATURE}) {{\n"
            "  return law(arg, res, iw, w, more);\n}\n"
        )
    return files


def _tables(model: FmuModel, version: str, texts: dict[str, CText]) -> str:
    variables = model.all_variables
    offsets, count = dict[str, int](), 0
    # The state comes first among the outputs and is contiguous.
    ordered = sorted(variables, key=lambda v: v.causality == "output" and v.name not in model.state)
    ordered = [variable for variable in ordered if variable.name != model.remembered]
    for variable in ordered:
        offsets[variable.name] = count
        count += variable.size
    sizes = {variable.name: variable.size for variable in variables}
    states = sum(sizes[name] for name in model.state)
    values = count
    if model.memory:
        offsets |= {"before": count, "after": count + model.memory}
        if model.remembered:
            offsets[model.remembered] = offsets["after"] - sizes[model.remembered]
        count += 3 * model.memory
    if model.longest_step:
        offsets["period"] = count
        count += 1
    start = [value for variable in ordered for value in (variable.start or (0.0,) * variable.size)]
    start += [0.0] * (count - values)
    rows = ["  {TIME, 0, 1, 0},"]
    for variable, element in variable_table(model, version):
        place = offsets[variable.name] + (element or 0)
        size = variable.size if element is None else 1
        rows.append(
            f"  {{{variable.causality.upper()}, {place}, {size}, {int(variable.integer)}}},"
        )
    needs = {
        "ARG": max(text.arguments for text in texts.values()),
        "RES": max(text.results for text in texts.values()),
        "IW": max(text.integers for text in texts.values()),
        "W": max(text.numbers for text in texts.values()),
        "MORE": max(text.further for text in texts.values()),
    }
    lines = [
        f"/* {model.identifier}: sizes, variables and functions. */",
        "",
        f'#define MODEL_TOKEN "{TOKEN}"',
        f"#define MODEL_VALUES {count}",
        f"#define MODEL_VARIABLES {len(rows)}",
        f"#define MODEL_STATES {states}",
    ]
    if model.state:
        lines += [
            f"#define MODEL_STATE {offsets[model.state[0]]}",
            f"#define MODEL_STEP_SIZE {offsets[STEP_SIZE]}",
            f"#define MODEL_UNSOUND {json.dumps(model.unsound)}",
        ]
    if model.memory:
        lines += [
            f"#define MODEL_MEMORY {model.memory}",
            f"#define MODEL_BEFORE {offsets['before']}",
            f"#define MODEL_AFTER {offsets['after']}",
            f"#define MODEL_HELD {offsets['after'] + model.memory}",
        ]
    if model.longest_step:
        lines += [
            f"#define MODEL_PERIOD {offsets['period']}",
            f"#define MODEL_LONGEST_STEP {offsets[LONGEST_STEP]}",
            f"#define MODEL_ADVANCED {offsets[model.remembered]}",
            f"#define MODEL_ADVANCING {sizes[model.remembered]}",
        ]
    if model.messages:
        lines += [
            f"#define MODEL_STATUS {offsets['status']}",
            "",
            "static const char *const model_status[] = {",
            *(f"  {json.dumps(message)}," for message in model.messages),
            "};",
        ]
    lines += [
        "",
        "typedef enum { TIME, INPUT, PARAMETER, OUTPUT } causality_t;",
        "",
        "typedef struct {",
        "  causality_t causality;",
        "  size_t offset, size;",
        "  int integer;",
        "} variable_t;",
        "",
        "static const variable_t model_variables[MODEL_VARIABLES] = {",
        *rows,
        "};",
        "",
        "static const double model_start[MODEL_VALUES] = {",
        *(f"  {value!r}," for value in map(float, start)),
        "};",
        "",
        "typedef struct {",
        f"  const double *arg[{needs['ARG']}];",
        f"  double *res[{needs['RES']}], w[{needs['W']}], more[{needs['MORE']}];",
        f"  int iw[{needs['IW']}];",
        "} memory_t;",
        "",
        *(f"int {model.identifier}_{name}({_SIGNATURE});" for name in texts),
        "",
        *_call(model, "outputs", "double *x", offsets, offsets),
    ]
    if model.state:
        places, place = dict[str, int](), 0
        for name in model.state:
            places[name] = place
            place += sizes[name]
        lines += _call(model, "initial", "double *x", offsets, offsets)
        lines += _call(model, "move", "const double *x, double h, double *state", offsets, places)
    return "\n".join(lines) + "\n"


def _call(
    model: FmuModel, name: str, arguments: str, inputs: dict[str, int], results: dict[str, int]
) -> list[str]:
    """A C function through which a graph reads and writes the variables in place."""
    function: ca.Function = model.functions()[name]
    lines = [f"static int model_{name}(memory_t *memory, {arguments}) {{"]
    target = "moved" if name == "move" else "x"
    if name == "initial":
        lines.append("  double sound = 0;")
    if name == "move":
        lines.append("  double moved[MODEL_STATES];")
    for i, taken in enumerate(function.name_in()):
        where = f"x + {inputs[taken]}" if taken in inputs else "&h"
        if name == "move" and taken in results:
            where = f"state + {results[taken]}"
        lines.append(f"  memory->arg[{i}] = {where};")
    for i, given in enumerate(function.name_out()):
        where = "&sound" if given == "sound" else f"{target} + {results[given]}"
        lines.append(f"  memory->res[{i}] = {where};")
    lines.append(
        f"  {model.identifier}_{name}(memory->arg, memory->res, memory->iw, memory->w, "
        "memory->more);"
    )
    if name == "move":
        lines.append("  memcpy(state, moved, sizeof moved);")
    lines.append(f"  return {'sound != 0' if name == 'initial' else '1'};")
    return [*lines, "}", ""]
