"""Robot, outputs and law of a recorded run, from its file alone."""

from __future__ import annotations

import json
import tempfile
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from concur.control import Servo
from concur.errors import ConcurError, DescriptionError, shown
from concur.hdf5 import Hdf5File, hdf5_file
from concur.io._robot import load
from concur.outputs import Output
from concur.reduction import reduce
from concur.robot import Mechanism

OPTIONS = {"torque_limits"}
"""Options of a servo that a file contains."""


def recorded_robot(file: Hdf5File) -> tuple[Mechanism, tuple[Output, ...]]:
    """Robot and outputs of a recorded run.

    Parameters
    ----------
    file : Hdf5File
        Its open file.

    Returns
    -------
    robot : Mechanism
        The robot that was simulated.
    outputs : tuple of Output
        Outputs of its law on bodies.

    Raises
    ------
    DescriptionError
        If the file does not describe them.

    Examples
    --------
    >>> with hdf5_file("out/rover_arm/run.h5", "a run") as file:    # doctest: +SKIP
    ...     robot, outputs = recorded_robot(file)
    """
    if "robot" not in file and "system" in (facts := file.attributes()):
        file.refuse(
            f"a run of `{shown(facts.get('plant', 'a system'))}`, a system without bodies",
            expected="a run of a robot, whose file describes it",
            cure="Load it in Python with its law: Run.load(path, servo).view().",
        )
    robot, outputs = file.text("robot"), file.text("outputs")
    try:
        made = tuple(Output(**fields) for fields in json.loads(outputs))
    except (ValueError, TypeError, RecursionError) as problem:
        file.refuse(f"another file ({shown(str(problem), 100)})", "outputs")
    with tempfile.TemporaryDirectory() as folder:
        description = Path(folder) / "robot.toml"
        description.write_text(robot, encoding="utf-8", errors="replace")
        return load(description), made


def recorded_law(path: str | PathLike[str]) -> Servo:
    """Servo of a recorded run.

    Parameters
    ----------
    path : str or path-like
        File of a run, from `Run.save`.

    Returns
    -------
    Servo
        A servo with the robot, momentum, outputs, gains and torque limits of the file.

    Raises
    ------
    DescriptionError
        If the law of the run is no `Servo`, has options or outputs that its file does not contain,
        or its model was another robot than the simulated one.

    Examples
    --------
    >>> import concur as cc
    >>> cc.io.recorded_law("out/rover_arm/run.h5").outputs    # doctest: +SKIP
    """

    def refuse(came: str) -> NoReturn:
        raise DescriptionError(
            f"{path}, law of the run",
            expected="a Servo of the robot that was simulated, with outputs on bodies and no "
            f"options but {', '.join(sorted(OPTIONS))}",
            came=came,
            cure="Pass the law: Run.load(path, task.servo).",
            file=str(path),
        )

    expected = "the file of a run with its robot, as this version of concur writes it"
    with hdf5_file(Path(path), expected, "Save the run again, or pass its law.") as file:
        facts = file.attributes()
        robot, outputs = recorded_robot(file)
    if str(facts.get("law")) != "Servo":
        refuse(shown(facts.get("law", "a file without the name of its law")))
    if others := [name for name in _names(facts, "law_options") if name not in OPTIONS]:
        refuse(f"the option `{others[0]}`")
    if [output.name for output in outputs] != _names(facts, "outputs"):
        refuse("outputs that are functions")
    if differences := str(facts.get("model_differences", "")):
        refuse(f"a model that differs in {shown(differences)}")
    try:
        numbers: dict[str, Any] = {
            name: np.asarray(facts[name], dtype=float)
            for name in ("stiffness", "damping", "inertia", "torque_limits")
            if name in facts
        }
        model = reduce(robot, facts.get("model_momentum"))
        law = Servo(model, outputs, singular_margin=float(facts["singular_margin"]), **numbers)
    except (KeyError, ValueError, TypeError, ConcurError) as problem:
        refuse(shown(str(problem), 200))
    if list(model.shape_names) != _names(facts, "shape"):
        refuse("a model with other shape velocities")
    return law


def _names(facts: dict[str, Any], name: str) -> list[str]:
    return [str(entry) for entry in np.ravel(facts.get(name, []))]
