"""Rig files with several buses: which axis is on which, errors, and the load of each."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from hil.drives import make_drives
from hil.errors import BusLoadError
from hil.rig import Rig, load_rig
from hil.rig.busload import bus_loads, refuse_overload
from tests.hil.rig.test_rig import both, put, refused, saved, whole
from tests.hil.spine.twelve import made

ARM, BASE = (
    {"name": name, "interface": "virtual", "channel": name, "largest_load": 0.9}
    for name in ("arm", "base")
)
ON = ("base", "base", "arm", "arm", "arm")


def divided(data: dict[str, Any]) -> None:
    """Wheels on one bus, arm on another; nodes count anew on each."""
    data["bus"] = [dict(ARM), dict(BASE)]
    for number, (axis, bus) in enumerate(zip(data["axes"], ON, strict=True)):
        axis["bus"], axis["node"] = bus, 1 + number % 2 + 2 * (number == 4)


def of_file(tmp_path: Path, *edits: Any) -> Rig:
    table = whole()
    both(divided, *edits)(table)
    return load_rig(saved(table, tmp_path))


def test_axes_are_on_the_bus_that_they_name(tmp_path: Path) -> None:
    rig = of_file(tmp_path)
    assert [bus.name for bus in rig.buses] == ["arm", "base"]
    assert rig.bus_of == (1, 1, 0, 0, 0)
    assert [drive.axis.node for drive in make_drives(rig)] == [1, 2, 1, 2, 3]
    assert str(rig.buses[0]) == "bus `arm`, interface `virtual`, channel `arm`"
    one = load_rig(Path("examples/rover_rig/rig.toml"))
    assert one.bus_of == (0,) * 5
    assert str(one.buses[0]).startswith("bus `udp_multicast`, channel `")


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (put("bus.0.name", None), r"`name`: expected a name for each of several buses"),
        (put("bus.1.name", "arm"), r"got `arm` twice"),
        (put("axes.3.bus", None), r"`bus`: expected the bus of the drive: arm, base, got no value"),
        (put("axes.3.bus", "amr"), r"expected a bus of the rig.*got `amr`.*`arm`"),
        (put("bus.1.channel", "arm"), r"a channel that no other bus has, for bus `arm`"),
        (put("axes.3.node", 1), r"got 1, the number of `turret`"),
        (both(put("axes.0.bus", "arm"), put("axes.1.bus", "arm"), put("axes.1.node", 5),
              put("axes.0.node", 6)), r"got `base` without one"),
        (both(put("axes.4.drive", "mit"), put("axes.4.model", "AK80-9"),
              put("axes.4.rated_torque", None)), r"one protocol on a bus \(here arm\)"),
        (put("bus", []), r"1 to 16 buses, got 0"),
        (put("bus", [dict(ARM, name=f"b{k}", channel=f"b{k}") for k in range(17)]), r"got 17"),
    ],
)  # fmt: skip
def test_buses_and_axes_that_do_not_fit_are_refused(
    edit: Any, message: str, tmp_path: Path
) -> None:
    error = refused(both(divided, edit), tmp_path)
    assert re.search(message, str(error), re.S), str(error)


def test_drives_of_other_protocols_go_on_another_bus(tmp_path: Path) -> None:
    """Wheels with MIT drives beside an arm with CiA 402 drives."""
    edits = [
        edit
        for k in (0, 1)
        for edit in (
            put(f"axes.{k}.drive", "mit"),
            put(f"axes.{k}.model", "AK80-9"),
            put(f"axes.{k}.rated_torque", None),
        )
    ]
    edits += [put(f"robot.motors.{k}.torque", 10.0) for k in (0, 1)]
    rig = of_file(tmp_path, *edits)
    assert [axis.drive for axis in rig.axes] == ["mit"] * 2 + ["cia402"] * 3
    arm, base = bus_loads(rig, make_drives(rig))
    assert base.share == pytest.approx(250 * 4 * 135 * 1e-6)
    assert arm.share > 250 * (3 * (135 + 95) + 55 + 65) * 1e-6


def test_a_bus_carries_three_axes_at_one_kilohertz(tmp_path: Path) -> None:
    """By hand: 3 (135 + 95) + 55 + 65 = 810 bit a cycle, and queries of 3 drives."""
    rig = load_rig(made(tmp_path))
    loads = bus_loads(rig, make_drives(rig))
    queries = 3 * (2 / 0.05) * (65 + 2 * 135)
    assert [load.name for load in loads] == ["arm0", "arm1", "arm2", "arm3"]
    assert [load.share for load in loads] == pytest.approx([(810e3 + queries) * 1e-6] * 4)
    text = (tmp_path / "rig.toml").read_text(encoding="utf-8")
    crowded = text.replace('bus = "arm3"\nnode = 1\n', 'bus = "arm2"\nnode = 9\n')
    (tmp_path / "rig.toml").write_text(crowded, encoding="utf-8")
    with pytest.raises(BusLoadError) as caught:
        load_rig(tmp_path / "rig.toml")
    assert "bus `arm2`: 4 x 135 bit + 4 x 95 bit + 1 x 55 bit + 1 x 65 bit" in str(caught.value)
    assert "one carries 3 of these 4" in str(caught.value)
    assert caught.value.load.name == "arm2"
    # The other way round: what fits is not refused.
    assert refuse_overload(rig) == bus_loads(rig)
