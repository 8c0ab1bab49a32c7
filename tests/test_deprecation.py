"""Old names lead to the new ones, with a warning that names them."""

import warnings
from dataclasses import fields, is_dataclass, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import concur as cc
from concur.certify import (
    Certificate,
    ChannelCertificate,
    OperatingCertificate,
    Proof,
    ThesisConstants,
    hold_disturbance,
    largest_period,
    operating_bounds,
    period_ahead,
    search,
    split,
)
from concur.control import TickBuffers, TickStatus, TrackingLaw
from concur.deprecation import renamed_arguments
from concur.errors import ConcurError, DescriptionError
from concur.reduction import ConstantOfMotion, ConstantsOfMotion, ReducedModel
from concur.simulation import Tolerances
from tests.certify.test_robust import linear

EXAMPLES = Path(__file__).parents[1] / "examples"


@cache
def task():
    return cc.load_task(EXAMPLES / "rover_arm.toml")


@cache
def servo():
    return task().servo


@cache
def decays():
    return [linear(np.array([[4.0]]), np.array([[2.8]]))]


# --- names of modules -------------------------------------------------------------------------

MOVED = {
    "concur.certify.PushedMotions": ("concur.plotting.DisturbedMotions", "DisturbedMotions"),
    "concur.certify.largest_factor": ("concur.certify.disturbance_margin", "disturbance_margin"),
    "concur.certify.pushed_motions": ("concur.plotting.disturbed_motions", "disturbed_motions"),
    "concur.control.fitting": ("concur.control.reference_for", "reference_for"),
    "concur.control.TickStatus.NO_ATTITUDE": (
        "concur.control.TickStatus.INVALID_QUATERNION",
        r"`TickStatus\.NO_ATTITUDE` is deprecated: use `TickStatus\.INVALID_QUATERNION`",
    ),
}
"""Old names: where the object is now, and what the warning says to use."""


def found(path):
    module, _, name = path.rpartition(".")
    if module.endswith("TickStatus"):
        return getattr(TickStatus, name)
    return getattr(import_module(module), name)


@pytest.mark.parametrize("old", MOVED)
def test_old_name_works_with_a_warning(old):
    new, instead = MOVED[old]
    with pytest.warns(DeprecationWarning, match=instead) as caught:
        value = found(old)
    assert value is found(new)
    assert caught[0].filename == __file__


def test_other_names_are_refused():
    with pytest.raises(AttributeError, match="no_such_name"):
        found("concur.certify.no_such_name")
    with pytest.raises(AttributeError, match="NO_SUCH_STATUS"):
        found("concur.control.TickStatus.NO_SUCH_STATUS")


def test_an_old_status_is_no_status_of_its_own():
    assert [status.name for status in TickStatus if status == 2] == ["INVALID_QUATERNION"]
    assert len(TickStatus.__members__) == len(TickStatus) == 7


# --- arguments and fields ---------------------------------------------------------------------

RATES = np.array([[0.7]])
TOO_LOW = {
    name: (low, low + 0.1) for name, low in (("turret", 0), ("upper_arm", 1), ("forearm", -1))
}

ARGUMENTS = {
    "Servo: damped_below": ("damping_threshold", 0.1, lambda **o: replace(servo(), **o)),
    "Servo: measured": ("use_measured_velocity", True, lambda **o: replace(servo(), **o)),
    "Redundancy: importance": ("base_weight", 3.0, lambda **o: cc.control.Redundancy(**o)),
    "Tolerances: settling_time": ("evaluate_after", 3.0, lambda **o: Tolerances(**o)),
    "Task: hold": ("control_period", 0.5, lambda **o: replace(task(), **o)),
    "TickBuffers: pivot": (
        "margin_bound",
        3.0,
        lambda **o: TickBuffers(*range(8), acceleration_residual=0, scale=0, status=0, **o),
    ),
    "TickBuffers: missed": (
        "acceleration_residual",
        3.0,
        lambda **o: TickBuffers(*range(8), margin_bound=0, scale=0, status=0, **o),
    ),
    "audit: working_set": ("configurations", np.zeros(3), lambda **o: servo().model.audit(**o)),
    "certify: share": ("rate_fraction", 2.0, lambda **o: cc.certify(servo(), 1.0, **o)),
    "search: share": (
        "rate_fraction",
        2.0,
        lambda **o: search(split(servo().error_dynamics)[0], 1.0, **o),
    ),
    "operating_bounds: least": (
        "required_margin",
        -1.0,
        lambda **o: operating_bounds(servo(), TOO_LOW, **o),
    ),
    "hold_disturbance: late": (
        "delay_periods",
        2,
        lambda **o: hold_disturbance(RATES, 0.1, **o).source,
    ),
    "largest_period: late": ("delay_periods", 2, lambda **o: largest_period(decays(), RATES, **o)),
    "period_ahead: late": ("delay_periods", 2, lambda **o: period_ahead(decays(), RATES, **o)),
}
"""By old name: the new one, a value, and a function that takes it."""


def outcome(function, **option):
    try:
        return function(**option)
    except ConcurError as error:
        return str(error)


@pytest.mark.parametrize("case", ARGUMENTS)
def test_old_argument_works_with_a_warning(case):
    new, value, function = ARGUMENTS[case]
    old = case.split()[1]
    with pytest.warns(DeprecationWarning, match=f"`{old}` is deprecated: use `{new}`"):
        mine = outcome(function, **{old: value})
    theirs = outcome(function, **{new: value})
    if not is_dataclass(mine):
        assert mine == theirs
        return
    with pytest.warns(DeprecationWarning, match=f"`{old}` is deprecated: use `{new}`") as caught:
        assert getattr(mine, old) == value
    assert caught[0].filename == __file__
    assert getattr(mine, new) == getattr(theirs, new) == value


def test_an_argument_by_both_names_is_refused():
    with pytest.raises(TypeError, match=r"got `delay_periods` and its old name `late`"):
        largest_period(decays(), RATES, late=1, delay_periods=2)


def test_a_warning_names_the_line_that_calls():
    @renamed_arguments({"old": "new"})
    def function(new):
        return new

    with pytest.warns(DeprecationWarning, match="use `new`") as caught:
        assert function(old=3) == 3
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert function(3) == function(new=3) == 3


# --- attributes -------------------------------------------------------------------------------

ATTRIBUTES = [
    (TrackingLaw, "taken", "law_velocities"),
    (cc.Run, "missed", "acceleration_residual"),
    (cc.Run, "hold", "control_period"),
    (ReducedModel, "centre_velocity", "com_velocity"),
    (ConstantOfMotion, "twist", "two_form_defect"),
    (ConstantsOfMotion, "twist", "two_form_defect"),
    (Certificate, "overshoot", "transient_bound"),
    (Certificate, "calmer", "low_transient"),
    (ChannelCertificate, "overshoot", "transient_bound"),
    (ThesisConstants, "overshoot", "transient_bound"),
    (OperatingCertificate, "least", "required_margin"),
    (OperatingCertificate, "left", "undecided_boxes"),
    (Proof, "left", "undecided_boxes"),
]


@pytest.mark.parametrize(("kind", "old", "new"), ATTRIBUTES)
def test_old_attribute_works_with_a_warning(kind, old, new):
    assert hasattr(kind, new) or new in {field.name for field in fields(kind)}
    with pytest.warns(DeprecationWarning, match=f"`{old}` is deprecated: use `{new}`"):
        assert getattr(kind, old).fget(SimpleNamespace(**{new: 1.5})) == 1.5


# --- files ------------------------------------------------------------------------------------

FIELDS = {
    "servo.damped_below": ("damping_threshold", "0.1"),
    "servo.measured": ("use_measured_velocity", "true"),
    "servo.redundancy.importance": ("base_weight", "3.0"),
    "simulation.hold": ("control_period", "0.004"),
    "tolerances.settling_time": ("evaluate_after", "11.0"),
    "operating.least": ("required_margin", "0.2"),
}
"""By old field of a task: the new one, and a value."""


def saved(path, table, entry):
    text = (EXAMPLES / "rover_arm.toml").read_text(encoding="utf-8")
    text = text.replace("evaluate_after = 12.0", "")
    if f"[{table}]" not in text:
        # Above the subtables of [operating], the only ones of these in the file.
        text = text.replace("[simulation]", f"[{table}]\n[simulation]")
    path.write_text(text.replace(f"[{table}]\n", f"[{table}]\n{entry}\n"), encoding="utf-8")
    return path


def known(found):
    rule = found.servo_options["redundancy"]
    weight = rule and rule.base_weight
    options = found.servo_options | {"redundancy": weight}
    return options, found.control_period, found.tolerances, found.operating


@pytest.mark.parametrize("place", FIELDS)
def test_old_field_of_a_task_is_read_with_a_warning(tmp_path, place):
    new, value = FIELDS[place]
    table, _, old = place.rpartition(".")
    path = tmp_path / "task.toml"
    with pytest.warns(DeprecationWarning, match=f"field `{old}` is deprecated: write `{new}`"):
        mine = cc.load_task(saved(path, table, f"{old} = {value}"))
    theirs = cc.load_task(saved(path, table, f"{new} = {value}"))
    assert known(mine) == known(theirs) != known(task())
    with pytest.raises(DescriptionError, match=f"unknown field `{old}`"):
        cc.load_task(saved(path, table, f"{old} = {value}\n{new} = {value}"))


# --- files of results -------------------------------------------------------------------------


def test_files_of_results_keep_their_names(tmp_path):
    import h5py

    found = replace(task(), duration=0.01)
    run = found.simulate(servo())
    with h5py.File(run.save(tmp_path / "run.h5")) as file:
        assert "missed" in file
        assert file.attrs["hold"] == 0.0
        np.testing.assert_array_equal(file["missed"], run.acceleration_residual)


# --- a task's servo and shape velocities --------------------------------------------------------


def test_servo_and_start_of_a_task_are_properties_and_their_old_forms_work():
    fresh = cc.load_task(EXAMPLES / "rover_arm.toml")
    assert fresh.servo is fresh.servo
    np.testing.assert_array_equal(fresh.s0, fresh.shape_velocities(fresh.servo))
    assert fresh.s0.shape == (fresh.servo.ns,)
    with pytest.raises(ValueError, match="read-only"):
        fresh.s0[0] = 1.0
    with pytest.warns(
        DeprecationWarning, match=r"`task.servo\(\)` is deprecated: use `task.servo`"
    ):
        assert fresh.servo() is fresh.servo
    with pytest.warns(DeprecationWarning, match=r"use `task.initial_velocities\['left_wheel'\]`"):
        assert fresh.s0["left_wheel"] == 2.0
    with pytest.warns(DeprecationWarning, match="`s0` is deprecated: use `initial_velocities`"):
        slower = replace(fresh, s0={"left_wheel": 1.0})
    np.testing.assert_array_equal(slower.s0, [1.0, 0.0, 0.0, 0.0, 0.0])
    # What was computed is not stored with the task.
    assert not {"servo", "s0"} & set(fresh.__getstate__())
