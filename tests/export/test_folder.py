"""Folders for exported files: an invalid or unwritable one gives a one-line error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from concur import robots
from concur.codegen import CompilerWarning
from concur.errors import ConcurError
from concur.reduction import reduce
from concur.simulation import Plant
from tests.control._cases import refused
from tests.export._export import servo

Export = Callable[[Any], object]


@pytest.fixture(params=["c", "servo fmu", "plant fmu"])
def export(request: pytest.FixtureRequest) -> Export:
    if request.param == "plant fmu":
        robot = robots.rover_arm()
        return lambda folder: Plant(robot).export(folder, reduce(robot))
    target = request.param.split()[-1]
    return lambda folder: servo("rover").export(folder, target=target)


@pytest.mark.parametrize("name", ["taken", "taken/new", "no\0folder"], ids=repr)
def test_a_folder_that_cannot_be_written(export: Export, tmp_path: Path, name: str) -> None:
    (tmp_path / "taken").write_text("")
    refused(
        ConcurError,
        lambda: export(tmp_path / name),
        where=str(tmp_path / name),
        expected="a folder that can be written",
    )


def test_an_archive_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "rover_arm_plant.fmu").mkdir()
    with pytest.warns(CompilerWarning, match="sources only"):
        refused(
            ConcurError,
            lambda: Plant(robots.rover_arm()).export(tmp_path),
            where=str(tmp_path),
            expected="a folder that can be written",
            came="Is a directory",
        )


@pytest.mark.parametrize("none", [None, 3], ids=str)
def test_what_is_no_path(export: Export, none: object) -> None:
    refused(ConcurError, lambda: export(none), where="`directory`", came=str(none))
