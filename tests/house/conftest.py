"""Folders for code of the manual."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def beside_examples(tmp_path, monkeypatch):
    """A scratch directory from which the examples are found as from the root."""
    (tmp_path / "examples").symlink_to(ROOT / "examples", target_is_directory=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path
