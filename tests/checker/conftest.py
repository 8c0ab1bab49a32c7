"""Receipts of the tests stay in their own folder."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def receipts(monkeypatch, tmp_path):
    """Keep receipts of confirmed files in the folder of the test."""
    monkeypatch.setenv("CONCUR_CACHE", str(tmp_path / "receipts"))
