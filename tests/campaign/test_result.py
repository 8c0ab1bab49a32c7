"""Table of a campaign: one order, nothing twice, nothing that never passes counted as passed."""

import json

import h5py
import numpy as np
import pytest

from concur.campaign import CampaignResult
from concur.errors import ConcurError, DescriptionError, ShapeError, UnknownNameError


def table(**own):
    given = {
        "quantities": [("mass hand", "kg"), ("latency", "s")],
        "columns": [("settle", "m"), ("torque", "N m")],
        "numbers": [7, 2, 5],
        "worlds": [[0.7, 7.0], [0.2, 2.0], [0.5, 5.0]],
        "values": [[1.0, 1.0], [np.nan, 1.0], [-0.1, 0.0]],
        "stopped": [20.0, 3.0, 20.0],
        "duration": 20.0,
        "method": "independent",
        "seed": 3,
        "key": "abc",
        "signals": [("torque elbow", "N m")],
        "extremes": [[7.0], [2.0], [5.0]],
        "limits": {"torque elbow": (-np.inf, 6.0)},
    }
    return CampaignResult(**given | own)


def test_rows_are_sorted_together_and_read_only():
    found = table()
    assert found.numbers.tolist() == [2, 5, 7]
    assert found.worlds[:, 0].tolist() == [0.2, 0.5, 0.7]
    assert found.extremes[:, 0].tolist() == [2.0, 5.0, 7.0]
    assert found.stopped.tolist() == [3.0, 20.0, 20.0]
    with pytest.raises(ValueError, match="read-only"):
        found.values[0, 0] = 1.0


def test_zero_nan_and_crashed_worlds_do_not_pass():
    found = table()
    assert found.held.tolist() == [[False, True], [False, False], [True, True]]
    assert found.passed.tolist() == [False, False, True]
    lost = table(crashes={7: "killed its worker"})
    assert lost.passed.tolist() == [False, False, False]
    assert lost.crashed.tolist() == [False, False, True]
    assert not table(columns=[], values=np.zeros((3, 0))).passed.any()
    assert table(values=[[1.0, 1.0], [1e-300, 1.0], [-0.1, 0.0]]).passed.tolist() == [1, 0, 1]


def test_a_file_returns_the_same_table(tmp_path):
    found = table(crashes={5: "no answer within 60 s"})
    again = CampaignResult.load(found.save(tmp_path / "campaign.h5"))
    for name in ("numbers", "worlds", "values", "extremes", "stopped"):
        np.testing.assert_array_equal(getattr(again, name), getattr(found, name))
    for name in ("quantities", "columns", "signals", "crashes", "limits", "seed", "key", "method"):
        assert getattr(again, name) == getattr(found, name)
    text = (tmp_path / "campaign.h5").read_bytes()
    assert text.count(b'"looks": [3]') == 1
    for forged in (b'"looks": "3"', b'"loops": [3]', b'"looks": [-]'):
        (tmp_path / "forged.h5").write_bytes(text.replace(b'"looks": [3]', forged))
        with pytest.raises(DescriptionError, match="expected the table of a campaign"):
            CampaignResult.load(tmp_path / "forged.h5")
    (tmp_path / "other.h5").write_bytes(b"\x89HDF no")
    with pytest.raises(DescriptionError, match="expected the table of a campaign"):
        CampaignResult.load(tmp_path / "other.h5")


def test_tables_that_do_not_fit_are_refused():
    for error, own in [
        (ShapeError, {"worlds": [[1.0, 2.0]]}),
        (ShapeError, {"values": np.zeros((3, 3))}),
        (ShapeError, {"numbers": [[1, 2, 3]]}),
        (ShapeError, {"extremes": np.zeros((0, 0))}),
        (ConcurError, {"numbers": [7, 2, 7]}),
        (ConcurError, {"crashes": {8: "?"}}),
        (ConcurError, {"method": "grid"}),
        *((ConcurError, {"looks": looks}) for looks in (None, 3, "3", [1.5], [True], [-1])),
    ]:
        with pytest.raises(error, match="campaign, `"):
            table(**own)
    assert table().requirement("torque") == 1
    with pytest.raises(UnknownNameError, match="one of settle, torque"):
        table().requirement("speed")


@pytest.mark.parametrize(
    "forged", [{"duration": "x"}, {"duration": float("nan")}, {"seed": None}, {"seed": 1.5}]
)
def test_numbers_of_a_forged_file_are_checked(tmp_path, forged):
    path = tmp_path / "campaign.h5"
    made = CampaignResult(
        quantities=(), columns=(), numbers=[0], worlds=np.zeros((1, 0)), values=np.zeros((1, 0)),
        stopped=[1.0], duration=1.0, method="independent", seed=0, key="",
    )  # fmt: skip
    made.save(path)
    assert CampaignResult.load(path).seed == 0
    with h5py.File(path, "r+") as file:
        head = json.loads(file["campaign"][()]) | forged
        del file["campaign"]
        file["campaign"] = json.dumps(head)
    with pytest.raises(DescriptionError):
        CampaignResult.load(path)
