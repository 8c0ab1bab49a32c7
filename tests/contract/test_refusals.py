"""What was refused is refused: broken files and wrong calls, with class and place of the error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import concur as cc
from tests.contract import _calls, _files

FILES = dict(_files.cases())
CALLS = dict(_calls.cases())


def same_class(found: str, frozen: str) -> bool:
    """Whether an error is of the frozen class, or of one that is derived from it."""
    if found == frozen:
        return True
    classes = [getattr(module, found, None) for module in (cc.errors, _errors_of_rig())]
    return any(
        frozen in (base.__name__ for base in kind.__mro__) for kind in classes if kind is not None
    )


def _errors_of_rig() -> Any:
    import hil

    return hil.errors


def check(found: tuple[str, list[str]] | None, row: dict[str, Any]) -> None:
    """Demand the frozen class, and all names of the frozen place."""
    assert found is not None, "it is accepted now"
    kind, place = found
    assert same_class(kind, row["error"]), f"{kind}, expected {row['error']}"
    missing = [name for name in row["place"] if name not in place]
    assert not missing, f"{place} lacks {missing}"


@pytest.mark.parametrize("name", FILES)
def test_broken_file_is_refused_with_its_place(name: str, tmp_path: Path) -> None:
    check(_files.outcome(FILES[name], tmp_path), FILES[name])


@pytest.mark.parametrize("name", CALLS)
def test_wrong_call_is_refused_with_its_place(name: str) -> None:
    check(_calls.outcome(CALLS[name]), CALLS[name])


def test_a_case_that_is_accepted_or_refused_elsewhere_fails() -> None:
    row = {"error": "ShapeError", "place": ["a.toml", "`x`"]}
    check(("ShapeError", ["a.toml", "`x`", "`y`"]), row)
    check(("NonFiniteError", ["`x`"]), {"error": "ConcurError", "place": ["`x`"]})
    for found in (None, ("OutputError", ["a.toml", "`x`"]), ("ShapeError", ["a.toml"])):
        with pytest.raises(AssertionError):
            check(found, row)


def test_sound_files_and_calls_are_accepted(tmp_path: Path) -> None:
    for call in _calls.SOUND:
        assert _calls.outcome({"call": call, "changes": {}}) is None, call
    shipped = Path(cc.__file__).parent / "robots" / "rover_arm.toml"
    row = {"kind": "robot", "name": "rover_arm.toml", "files": {}}
    (tmp_path / "rover_arm.toml").write_bytes(shipped.read_bytes())
    assert _files.outcome(row, tmp_path) is None
