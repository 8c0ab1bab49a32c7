"""Commands of the rig without their pictures, which take longer than a short run."""

import pytest

from hil.cli import _replay, _run


@pytest.fixture
def unreported(monkeypatch):
    """Leave out report and figures; one run and one replay of test_cli.py have them."""
    for module in (_run, _replay):
        monkeypatch.setattr(module, "write_report", lambda _, folder, **__: folder / "report.html")
