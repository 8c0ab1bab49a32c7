"""Commands without their pictures, which take ten times as long as a short run."""

import pytest


@pytest.fixture
def undrawn(monkeypatch):
    """Leave out the figures of `concur track`; the extended tests draw them."""
    monkeypatch.setattr("concur.show.save_figures", lambda *_: {})
