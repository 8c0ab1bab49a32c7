"""Answers of the commands: exit status and values, by a key map that alone may be edited."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract._answers import CASES, NEEDS, QUICK, differences, look_up, prepare, run
from tests.contract._frozen import frozen


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the commands run, with the files that they name."""
    path = tmp_path_factory.mktemp("answers")
    prepare(path)
    return path


@pytest.mark.by_default(len(QUICK))
@pytest.mark.parametrize("name", CASES)
def test_command_answers_as_it_did(name: str, folder: Path) -> None:
    needed = NEEDS.get(name)
    if needed and not (folder / CASES[needed][-1]).exists():
        run(needed, folder)
    status, values = run(name, folder)
    wanted = frozen("answers")[name]
    assert status == wanted["exit"]
    assert not differences(values, wanted["values"])


def test_every_key_is_of_a_command_and_finds_something() -> None:
    answers = frozen("answers")
    for command, keys in frozen("keys").items():
        cases = [name for name, words in CASES.items() if words[0] == command]
        assert cases, f"no case of `{command}`"
        for key in keys:
            assert any(answers[name]["values"].get(key) is not None for name in cases), key


def test_paths_of_the_key_map() -> None:
    answer = {"rows": [{"label": "a", "n": 1}, {"label": "b", "n": 2}, {"label": "b", "n": 3}]}
    assert look_up(answer, "rows/label=b/n") == 2
    assert look_up(answer, "rows/label==b/n") == [2, 3]
    assert look_up(answer, "rows/*/n") == [1, 2, 3]
    assert look_up(answer, "rows/#") == 3
    assert look_up(answer, "rows/1/n") == 2
    assert look_up(answer, "rows/label=c/n") is None
    assert look_up(answer, "rows/5/n") is None
    assert look_up(answer, "ghost/n") is None


def test_values_are_compared_to_a_millionth_and_words_exactly() -> None:
    assert not differences({"a": [1.0, "x"], "b": None}, {"a": [1.0 + 9e-7, "x"], "b": None})
    for found in (
        {"a": [1.0 + 2e-6, "x"], "b": None},
        {"a": [1.0, "y"], "b": None},
        {"a": [1.0], "b": None},
        {"a": [1.0, "x"]} | {"b": 0.0},
        {"a": [1.0, "x"], "b": None, "c": 1},
    ):
        assert differences(found, {"a": [1.0, "x"], "b": None})
    assert differences({"a": True}, {"a": 1})
