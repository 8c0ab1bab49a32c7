"""Lengths of our graphs beside those of others' graphs of the same quantities.

They are the same on every machine. So those of libraries that are not installed come from a file,
which a report with these libraries has written.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

import casadi as ca

import concur as cc
from tests.benchmarks._inner import MissingError
from tests.benchmarks._optional_peers import adam, installed, urdf
from tests.benchmarks._pinocchio_graphs import pinocchio_graph
from tests.benchmarks._quantities import CASES, QUANTITIES, case, length
from tests.benchmarks._timing import progress

RECORD = Path(__file__).parents[1] / "data" / "graph_lengths.json"
COMMAND = 'python -m tests.benchmarks --only "Graphs" --report'
FIXED_ARM = "arm of 6 joints, base fixed"
"""The arm of the free-flyer on a base that stands still: all that urdf2casadi takes."""

Lengths = dict[str, dict[str, int]]
"""Instructions, by robot and quantity."""


@dataclass(frozen=True)
class Graphs:
    """Lengths of a library's graphs.

    Parameters
    ----------
    version, casadi : str
        Versions of the library, and of CasADi.
    date : str
        When they were counted.
    lengths : dict
        Instructions, by robot and quantity.
    """

    version: str
    casadi: str
    date: str
    lengths: Lengths


def shared(graph: ca.Function) -> ca.Function:
    """The graph of scalars, dense and with common parts shared, as ours are."""
    expanded = graph.expand()
    symbols = expanded.sx_in()
    results = [ca.densify(result) for result in expanded.call(symbols)]
    return ca.Function("shared", symbols, results, {"cse": True})


def of_pinocchio() -> Lengths:
    """Count Pinocchio's; the first time its headers are compiled for it."""
    return _counted(list(CASES), lambda name, q: pinocchio_graph(case(name), q))


def of_adam() -> Lengths:
    """Count adam's, of robots on a free base."""
    free = [name for name in CASES if isinstance(case(name).robot.base.joint, cc.joints.Free)]
    return _counted(free, lambda name, quantity: adam(name).functions[quantity])


def of_urdf2casadi() -> Lengths:
    """Count urdf2casadi's."""
    from urdf2casadi.urdfparser import URDFparser

    robot, parser = fixed_arm(), URDFparser()
    parser.from_string(urdf(robot))
    ends = robot.bodies[0].name, robot.bodies[-1].name
    made = {
        "mass_matrix": parser.get_inertia_matrix_crba(*ends),
        "bias": parser.get_coriolis_rnea(*ends),
    }
    return {FIXED_ARM: {name: shared(f).n_instructions() for name, f in made.items()}}


LIBRARIES: dict[str, tuple[str, Callable[[], Lengths]]] = {
    "pin": ("Pinocchio", of_pinocchio),
    "adam-robotics": ("adam", of_adam),
    "urdf2casadi": ("urdf2casadi", of_urdf2casadi),
}
"""Name and counting of each distribution."""


def fixed_arm() -> cc.Mechanism:
    """Build the arm of the free-flyer on a base that stands still."""
    base, *arm = cc.robots.free_flyer().bodies
    return cc.Mechanism("fixed_arm", [cc.Body(base.name, cc.joints.Fixed()), *arm])


def ours() -> Lengths:
    """Count ours."""
    robot = fixed_arm()
    q, v = ca.SX.sym("q", robot.nq), ca.SX.sym("v", robot.nv)
    arm = {
        "mass_matrix": ca.Function("mass_matrix", [q], [robot.mass_matrix(q)]),
        "bias": ca.Function("bias", [q, v], [robot.bias(q, v)]),
    }
    return {
        **{name: {q: length(case(name), q) for q in QUANTITIES} for name in CASES},
        FIXED_ARM: {name: shared(graph).n_instructions() for name, graph in arm.items()},
    }


def counted(name: str) -> Graphs | None:
    """Count the graphs of a library, if it is there."""
    if name not in ("pin", *installed()):
        return None
    progress(f"graphs, {name}")
    try:
        lengths = LIBRARIES[name][1]()
    except MissingError as error:
        progress(str(error))
        return None
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    return Graphs(version(name), ca.__version__, today, lengths)


def recorded(path: Path = RECORD) -> dict[str, Graphs]:
    """Read what was counted before."""
    libraries = json.loads(path.read_text(encoding="utf-8"))["libraries"]
    return {name: Graphs(**graphs) for name, graphs in libraries.items()}


def record(found: dict[str, Graphs], path: Path = RECORD) -> None:
    """Write what was counted, and keep the rest."""
    kept = {**recorded(path), **found}
    contents = {
        "note": "Provenance: instructions of CasADi graphs that other libraries make of the robots "
        "of tests/benchmarks/_quantities.py, expanded to scalars, dense, with common parts shared. "
        f"Written by `{COMMAND}` with the versions named.",
        "libraries": {name: asdict(kept[name]) for name in LIBRARIES if name in kept},
    }
    path.write_text(json.dumps(contents, indent=1) + "\n", encoding="utf-8")


def graphs_table(report: bool = False, path: Path = RECORD) -> str:
    """Lengths of all graphs as a Markdown table; a report keeps those that it counts."""
    found = {name: graphs for name in LIBRARIES if (graphs := counted(name)) is not None}
    if report and found:
        record(found, path)
    known = {**recorded(path), **found}
    told = [
        f"{title} {known[name].version} with CasADi {known[name].casadi}"
        + ("" if name in found else f" (not here: counted on {known[name].date})")
        for name, (title, _) in LIBRARIES.items()
    ]
    heads = ["robot", "function", "ours", *(title for title, _ in LIBRARIES.values())]
    lines = [
        f"Instructions. {'; '.join(told)}.",
        "",
        f"| {' | '.join(heads)} |",
        f"| --- | --- |{' ---: |' * (len(heads) - 2)}",
    ]
    for robot, own in ours().items():
        for quantity, mine in own.items():
            cells = [robot, QUANTITIES[quantity], str(mine)]
            for name in LIBRARIES:
                theirs = known[name].lengths.get(robot, {}).get(quantity)
                cells.append("" if theirs is None else f"{theirs} (**{mine / theirs:.2f}**)")
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _counted(names: list[str], graph: Callable[[str, str], ca.Function]) -> Lengths:
    return {
        name: {q: int(shared(graph(name, q)).n_instructions()) for q in QUANTITIES}
        for name in names
    }
