"""Kinds of drives, identifiers that may not meet, and a third kind by the documented recipe."""

from __future__ import annotations

import pytest

from hil.drives import (
    Cia402Drive,
    Drive,
    MitDrive,
    _registry,
    drive_kinds,
    make_drives,
    register_drive,
)
from hil.errors import RigFileError
from tests.hil._acme import forgotten
from tests.hil.drives._stations import (
    make_axis,
    make_mit_axis,
    make_rig,
)


@pytest.fixture
def kinds():
    """The registry, as it was afterwards."""
    with forgotten():
        yield


def test_drives_stand_in_the_order_of_the_axes():
    rig = make_rig(*(make_axis(name=f"joint {k}", node=9 - k) for k in range(4)))
    drives = make_drives(rig)
    assert [drive.axis.name for drive in drives] == [f"joint {k}" for k in range(4)]
    assert [drive.index for drive in drives] == [0, 1, 2, 3]
    assert all(type(drive) is Cia402Drive for drive in drives)
    assert type(make_drives(make_rig(make_mit_axis()))[0]) is MitDrive


def test_mit_drives_share_the_identifier_of_their_reports():
    rig = make_rig(*(make_mit_axis(name=f"joint {k}", node=k) for k in (1, 2, 3)))
    assert len(make_drives(rig)) == 3


@pytest.mark.parametrize(
    ("axes", "words"),
    [
        ([make_axis(drive="cia420")], "Did you mean `cia402`"),
        ([make_axis(drive="wheel of fortune")], "register_drive"),
        ([make_axis(node=127)], "1 to 126"),
        ([make_axis(node=0)], "1 to 126"),
        ([make_mit_axis(node=127)], "1 to 126"),
        ([make_axis(name="a"), make_axis(name="b")], "axis `a`"),
        ([make_mit_axis(name="a"), make_mit_axis(name="b")], "axis `a`"),
        # reports on 0x000 would be commands of network management to the other drive
        ([make_axis(name="a"), make_mit_axis(name="b")], "network management"),
        ([make_mit_axis(name="b"), make_axis(name="a")], "separate buses"),
    ],
)
def test_rigs_that_cannot_work_are_refused(axes, words):
    with pytest.raises(RigFileError, match=words) as caught:
        make_drives(make_rig(*axes))
    assert caught.value.where.startswith("bench.toml, axis `")


def test_a_name_is_registered_once(kinds):
    register_drive("mit", MitDrive)
    with pytest.raises(RigFileError, match="MitDrive"):
        register_drive("mit", Cia402Drive)
    register_drive("cia402 again", Cia402Drive)
    assert drive_kinds() == ("cia402", "mit", "cia402 again")


def test_what_is_no_whole_class_of_drives_is_not_registered(kinds):
    class Half(Drive):
        """Lacks most methods."""

    for none in (3, dict, MitDrive(make_mit_axis(), 0, make_rig(make_mit_axis()))):
        with pytest.raises(RigFileError, match=r"derived from `hil\.Drive`"):
            register_drive("none", none)
    with pytest.raises(RigFileError, match=r"got a class without command, .*release"):
        register_drive("half", Half)
    assert drive_kinds() == ("cia402", "mit")


def _register_two(drive):
    register_drive("other", drive)
    register_drive("mit", drive)


def test_registrations_are_removed_after_an_error(kinds):
    class Own(MitDrive):
        """A user's kind."""

    with _registry.registering() as heard:
        register_drive("own", Own)
        register_drive("mit", MitDrive)
    assert heard == ["own", "mit"]
    with pytest.raises(RigFileError), _registry.registering():
        _register_two(Own)
    register_drive("own", Own)
    assert drive_kinds() == ("cia402", "mit", "own")
    assert heard == ["own", "mit"]


def test_identifiers_of_a_third_kind_may_not_meet_those_of_others(kinds):
    class Loud(Cia402Drive):
        """Sends where node 5 sends its report."""

        @property
        def identifiers(self):
            return (0x185,)

    register_drive("loud", Loud)
    rig = make_rig(make_axis(name="a"), make_axis(name="b", node=6, drive="loud"))
    with pytest.raises(RigFileError, match="0x185, which belongs to axis `a`"):
        make_drives(rig)

    class Far(Loud):
        """Has no standard identifier."""

        @property
        def identifiers(self):
            return (0x800,)

    register_drive("far", Far)
    with pytest.raises(RigFileError, match="more than 11 bits"):
        make_drives(make_rig(make_axis(name="b", drive="far")))
