"""Errors of the package: place, expected and received value, and remedy.

Every error a user can cause is a `ConcurError`. The four sentences are also
attributes, so that a program can act on them.
"""

from __future__ import annotations

import json
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from concur._version import DISTRIBUTION

__all__ = [
    "ConcurError",
    "DescriptionError",
    "InertiaError",
    "InfeasibleReferenceError",
    "NonFiniteError",
    "OutputError",
    "ReductionError",
    "ShapeError",
    "SimulationError",
    "SingularConfigurationError",
    "UnknownNameError",
    "WheelError",
]

T = TypeVar("T")

LONGEST = 2000
"""Characters of a message: what a file or a caller gave is cut in the middle beyond them."""


def install_command(extra: str) -> str:
    """Command that installs the package with an extra, from where it was installed.

    Parameters
    ----------
    extra : str
        Name of the extra.

    Returns
    -------
    str
        For a shell. It names the folder or the file from which the package was installed, or the
        folder of the source tree; if neither exists any more, the folder of the repository is
        the current one.
    """
    source = _source()
    if source is None or source.is_dir():
        target = f"{source or '.'}[{extra}]"
    else:
        target = f"{DISTRIBUTION}[{extra}] @ {source.as_uri()}"
    return f'python -m pip install "{target}"'


@cache
def _source() -> Path | None:
    """Folder of the source tree, or the wheel, from which the package was installed."""
    tree = Path(__file__).resolve().parents[1]
    if (tree / "pyproject.toml").is_file():
        return tree
    from importlib.metadata import PackageNotFoundError, distribution  # slow, and rarely needed
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    with suppress(PackageNotFoundError, ValueError, TypeError, AttributeError):
        stated = json.loads(distribution(DISTRIBUTION).read_text("direct_url.json") or "{}")
        address = urlsplit(stated.get("url", ""))
        path = Path(url2pathname(address.path))
        if address.scheme == "file" and path.exists():
            return path
    return None


def printable(text: str) -> str:
    """Make a text safe to print: no control characters, and not beyond `LONGEST`.

    Parameters
    ----------
    text : str
        Any text, with names that a file or a caller gave.

    Returns
    -------
    str
        The same in one line, with escapes for what a terminal would obey.
    """
    if len(text) > LONGEST:
        text = f"{text[: LONGEST // 2]} ... {text[-LONGEST // 2 :]}"
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def shown(value: object, length: int = 60) -> str:
    """Show any value in a message, shortened.

    Parameters
    ----------
    value : object
        The value; a text is shown as it is.
    length : int
        Characters that are shown.

    Returns
    -------
    str
        The text itself, or how Python shows the value.
    """
    try:
        text = value if isinstance(value, str) else repr(value)
    except Exception:  # whole numbers of thousands of digits, and objects that cannot be shown
        text = f"a value of type {type(value).__name__} that cannot be shown"
    return printable(text if len(text) <= length else f"{text[:length]}...")


def entries(value: object, kind: type[T]) -> tuple[T, ...] | None:
    """Entries of a list whose entries all are of a kind.

    Parameters
    ----------
    value : object
        What came.
    kind : type
        What each entry should be.

    Returns
    -------
    tuple or None
        The entries; None if it is no list of such.
    """
    try:
        found: tuple[Any, ...] = tuple(value)  # type: ignore[arg-type]
    except TypeError:  # also arrays without axes, which have an iterator and do not iterate
        return None
    return found if all(isinstance(entry, kind) for entry in found) else None


class ConcurError(Exception):
    """Base of all errors raised on a user's input.

    Parameters
    ----------
    where : str
        Place of the fault: file, table, body, joint, argument or time.
    expected : str
        Values that are accepted.
    came : str
        The received value.
    cure : str
        The remedy.
    **data
        Further facts, kept as attributes (numbers, names, arrays).

    Examples
    --------
    >>> import concur as cc
    >>> try:
    ...     cc.load("missing.toml")
    ... except cc.errors.ConcurError as error:
    ...     print(error.came)
    no file of this name
    """

    def __init__(self, where: str, *, expected: str, came: str, cure: str, **data: Any) -> None:
        self.where = where
        self.expected = expected
        self.came = came
        self.cure = cure
        self.data = data
        super().__init__(printable(f"{where}: expected {expected}, got {came}. {cure}"))

    @property
    def got(self) -> str:
        """The received value: another name of `came`."""
        return self.came

    @property
    def hint(self) -> str:
        """The remedy: another name of `cure`."""
        return self.cure

    def __getattr__(self, name: str) -> Any:
        data = self.__dict__.get("data", {})
        if name in data:
            return data[name]
        raise AttributeError(name)

    def __reduce__(self) -> Any:
        return _rebuild, (
            type(self),
            self.where,
            self.expected,
            self.came,
            self.cure,
            self.data,
        )


def _rebuild(
    kind: type[ConcurError],
    where: str,
    expected: str,
    came: str,
    cure: str,
    data: dict[str, Any],
) -> ConcurError:
    return kind(where, expected=expected, came=came, cure=cure, **data)


class ShapeError(ConcurError):
    """An array has the wrong shape or contains other things than numbers.

    Examples
    --------
    >>> import concur as cc
    >>> robot = cc.robots.rover_arm()
    >>> model = cc.reduce(robot)
    >>> try:
    ...     model.lift([0.0, 1.0])
    ... except cc.errors.ShapeError as error:
    ...     print(error.came)
    shape (2,)
    """


class NonFiniteError(ConcurError):
    """A NaN or an infinity where a finite number is needed.

    Examples
    --------
    >>> import concur as cc
    >>> robot = cc.robots.rover_arm()
    >>> model = cc.reduce(robot)
    >>> try:
    ...     model.lift([float("nan")] * 8)
    ... except cc.errors.NonFiniteError as error:
    ...     print(error.came)
    [0] = nan, [1] = nan, [2] = nan, [3] = nan, [4] = nan, [5] = nan
    """


class DescriptionError(ConcurError):
    """A robot or task description that cannot be read or does not fit together.

    Examples
    --------
    >>> import concur as cc
    >>> try:
    ...     cc.load("missing.toml")
    ... except cc.errors.DescriptionError as error:
    ...     print(error.came)
    no file of this name
    """


class UnknownNameError(DescriptionError):
    """A body, joint, output, group or option that does not exist.

    Examples
    --------
    >>> import concur as cc
    >>> try:
    ...     cc.Output("hand", "tool", "R4")
    ... except cc.errors.UnknownNameError as error:
    ...     print(error.came)
    'R4'
    """


class InertiaError(ConcurError):
    """A mass or inertia tensor that no rigid body can have.

    Examples
    --------
    >>> import concur as cc
    >>> try:
    ...     cc.Inertia(-1.0)
    ... except cc.errors.InertiaError as error:
    ...     print(error.came)
    -1 kg
    """


class WheelError(ConcurError):
    """A wheel that does not fit its plane, or rolling constraints that are not regular.

    Examples
    --------
    >>> import concur as cc
    >>> try:
    ...     cc.Wheel("left", -0.1)
    ... except cc.errors.WheelError as error:
    ...     print(error.came)
    -0.1 m
    """


class ReductionError(ConcurError):
    """A robot that cannot be reduced in the way asked for.

    Examples
    --------
    >>> import concur as cc
    >>> try:
    ...     cc.reduce(cc.robots.rover_arm(), momentum=[0, 0, 0, 0, 0, 1])
    ... except cc.errors.ReductionError as error:
    ...     print(error.where)
    robot `rover_arm`, `momentum`
    """


class OutputError(ConcurError):
    """Outputs that do not fit the robot or its controls.

    Examples
    --------
    >>> import concur as cc
    >>> robot = cc.robots.rover_arm()
    >>> model = cc.reduce(robot)
    >>> try:
    ...     cc.Servo(model, [cc.Output("axle", "chassis", "R2")], 4, 4)
    ... except cc.errors.OutputError as error:
    ...     print(error.where)
    servo of `rover_arm`, `outputs`
    """


class SingularConfigurationError(ConcurError):
    """The decoupling matrix cannot be solved here: no torque exists for the demand.

    Examples
    --------
    >>> import concur as cc
    >>> robot = cc.robots.planar_floater()
    >>> model = cc.reduce(robot)
    >>> hand = cc.Output("hand", "forearm", "R2", point=(1.0, 0, 0))
    >>> servo = cc.Servo(model, [hand], stiffness=4, damping=4)
    >>> try:
    ...     servo.torque(robot.neutral(), [0] * servo.nw, cc.references.hold([1.0, 0.0])(0.0))
    ... except cc.errors.SingularConfigurationError as error:
    ...     print(error.expected)
    a decoupling matrix with margin above 0.001
    """


class InfeasibleReferenceError(ConcurError):
    """A reference that the robot cannot follow.

    Examples
    --------
    >>> import concur as cc
    >>> rover = cc.reduce(cc.robots.rover_arm())
    >>> try:
    ...     cc.planning.plan_loop(rover, [0, 0, 0.5])
    ... except cc.errors.InfeasibleReferenceError as error:
    ...     print(type(error).__name__)
    InfeasibleReferenceError
    """


class SimulationError(ConcurError):
    """A simulation that had to stop; the part computed so far is in the attribute `run`.

    Examples
    --------
    >>> import concur as cc
    >>> robot = cc.robots.rover_arm()
    >>> hand = cc.Output("hand", "forearm", "R3", point=(0, 0.2, 0))
    >>> servo = cc.Servo(cc.reduce(robot), [hand], stiffness=4, damping=4)
    >>> goal = cc.references.hold([0.5, 0.0, 0.5])
    >>> try:
    ...     cc.simulate(robot, servo, goal, 0.1, robot.neutral(), [0] * 5, dt=0.03)
    ... except cc.errors.SimulationError as error:
    ...     print(error.expected)
    a whole number of steps of dt = 0.03 s
    """


def needed(
    package: str, extra: str, where: str, error: type[ConcurError] = ConcurError
) -> ModuleType:
    """Import a package that only an extra installs.

    Parameters
    ----------
    package : str
        Name of the package, or of a module in it.
    extra : str
        Name of the extra.
    where : str
        Place named in the error.
    error : type
        Class of the error.

    Returns
    -------
    module
        The package.

    Raises
    ------
    ConcurError
        If it is not installed; the error has the command that does it.
    """
    try:
        return import_module(package)
    except ImportError:
        raise error(
            where,
            expected=f"the package {package.partition('.')[0]}",
            came="an environment without it",
            cure=f"Install the extra: {install_command(extra)}.",
        ) from None
