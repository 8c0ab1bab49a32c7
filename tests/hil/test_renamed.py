"""Old names of the rig work on, with a warning that names the new ones."""

from types import SimpleNamespace

import pytest

import hil
import hil.session
from hil.errors import ArmError
from hil.quality import Quality


@pytest.mark.parametrize("module", [hil, hil.session])
def test_options_of_a_session_by_their_old_name(module):
    with pytest.warns(DeprecationWarning, match=r"use `hil\.SessionOptions`"):
        assert module.Wishes is hil.SessionOptions
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = module.no_such_name


def test_options_of_a_session_by_the_old_argument():
    rig = SimpleNamespace(name="rover", bus=SimpleNamespace(interface="virtual"))
    options = hil.SessionOptions(hil.Mode.DRIVE, heartbeat="auto")
    with (
        pytest.warns(DeprecationWarning, match="`wishes` is deprecated: use `options`") as caught,
        pytest.raises(ArmError, match="heartbeat"),
    ):
        hil.run_session(rig, wishes=options)
    assert caught[0].filename == __file__


def test_counter_of_repeated_reports_by_its_old_name():
    with pytest.warns(DeprecationWarning, match="`stale` is deprecated: use `repeated`"):
        quality = Quality(stale=3)
    with pytest.warns(DeprecationWarning, match="`stale` is deprecated: use `repeated`") as caught:
        assert quality.stale == 3
    assert caught[0].filename == __file__
    assert quality.repeated == 3
    assert ("repeated", "3") in quality.rows()
    assert quality.to_dict()["stale"] == 3.0  # as in recordings of before
    assert "repeated" not in quality.to_dict()
