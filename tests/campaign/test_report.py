"""Report of a campaign: page and JSON have the same verdict, and call nothing proved."""

import json
import re

import numpy as np
import pytest
from scipy.stats import uniform

from concur.campaign import (
    CampaignReport,
    CampaignResult,
    CurveBound,
    SampledCurves,
    WorstFound,
    paired_comparisons,
    sobol_indices,
)
from concur.worlds import Quantity, Uncertainty

WORLDS = Uncertainty(
    (
        Quantity("radius", "left_wheel", uniform(-0.01, 0.02), unit="m"),
        Quantity("mass", "hand", uniform(-0.1, 0.2), unit="kg"),
    )
)


def values_of(worlds):
    return np.stack([0.008 - np.abs(worlds[:, 0]), 0.2 - worlds[:, 1]], axis=1)


def campaign(n=200, offset=(0.0, 0.0), **own):
    worlds = WORLDS.draw(range(n), 1)
    given = {
        "quantities": [(entry.label, entry.unit) for entry in WORLDS.quantities],
        "columns": [("settle tool", "m"), ("torque <turret>", "N m")],
        "numbers": np.arange(n),
        "worlds": worlds,
        "values": values_of(worlds) + offset,
        "stopped": np.full(n, 5.0),
        "duration": 5.0,
        "method": "independent",
        "seed": 1,
        "key": "0123abc",
        "signals": [("torque turret", "N m")],
        "extremes": worlds[:, 1:] + 1.0,
        "limits": {"torque turret": (-np.inf, 1.2)},
    }
    return CampaignResult(**given | own)


def found(value):
    return WorstFound("settle tool", "m", value, np.array([0.01, 0.0]), 3, 0.001, 40, (value,))


@pytest.mark.extended
def test_the_page_leads_with_what_fails_and_names_its_cause(tmp_path):
    result = campaign(crashes={4: "killed its <worker>"})
    t = np.linspace(0.0, 1.0, 9)
    required = CurveBound("required", 1.5)
    tube = CurveBound("tube", 0.5, "the disturbance is small", [False])
    report = CampaignReport(
        result,
        "rover_arm",
        found=[found(-0.002)],
        sobol=sobol_indices(lambda n, w: values_of(w), WORLDS, ["a", "b"], 32, resamples=5),
        comparisons=paired_comparisons(campaign(offset=(0.003, 0.0), crashes={4: ""}), result),
        curves=[SampledCurves("error", "m", t, np.exp(-t)[None], bounds=[required, tube])],
        files={"settle tool": "worst_settle_tool.toml"},
        facts={"Executor": "serial"},
    )
    page = report.write(tmp_path / "out").read_text(encoding="utf-8")
    failed = int((~result.passed).sum())
    assert f"<strong>{failed} of 200 sampled worlds break a requirement</strong>" in page
    assert re.search(r"settle tool: \d+ of 200 worlds fail; a larger \|radius.left_wheel\|", page)
    assert "sampled, not proved" in page
    assert "worst_settle_tool.toml" in page
    assert "killed its &lt;worker&gt;" in page
    assert "torque &lt;turret&gt;" in page
    names = re.findall(r'<figure id="figure-([\w-]+)"', page)
    assert names == ["robustness", "worst-0", "worst-1", "influences", "curves", "extremes"]
    assert all(
        src.startswith("data:image/png;base64,") for src in re.findall(r'src="([^"]+)', page)
    )
    assert not re.search(r'href=|<script|src="(?!data:)', page)
    # The run is outside the tube, and outside its assumption.
    cells = ["tube", "the disturbance is small", "1", "1", "0"]
    assert "".join(f"<td>{cell}</td>" for cell in cells) in re.sub(r"<td [^>]*>", "<td>", page)
    assert "runs that leave them may exceed its bound" in page
    # Only bounds of certificates are called proved.
    words = re.sub(r'base64,[^"]+', "", page)
    assert len(re.findall("proved", words)) == len(re.findall("not proved", words))


def test_json_has_the_same_verdict_and_no_infinite_number():
    lost = campaign(crashes={4: "lost"}, values=values_of(WORLDS.draw(range(200), 1)) - [[0, 9]])
    for result, passed in [(campaign(), False), (campaign(offset=(0.01, 0)), True), (lost, False)]:
        report = CampaignReport(result)
        content = json.loads(json.dumps(report.details, allow_nan=False))
        assert report.passed is passed is (content["rates"][0]["passed"] == 200)
        assert content["samples"] == 200
        assert content["rates"][0]["low"] <= content["rates"][0]["rate"] <= 1.0
        assert content["note"].startswith("These results are sampled, not proved")
        assert bool(report.problems) is not passed
    assert content["crashed"] == [{"reason": "lost", "worlds": 1, "numbers": [4]}]
    assert content["requirements"][0]["lowest"] is None
    assert report.problems[0].startswith("torque <turret>: 200 of 200")
    assert content["signals"][0]["limits"] == [None, 1.2]


def test_crashes_are_grouped_by_their_cause():
    crashes = {n: f"world {n}, mass {n / 7}" for n in range(1, 7)} | {0: "killed"}
    report = CampaignReport(campaign(crashes=crashes))
    assert report.details["crashed"] == [
        {"reason": f"world 1, mass {1 / 7}", "worlds": 6, "numbers": [1, 2, 3, 4, 5]},
        {"reason": "killed", "worlds": 1, "numbers": [0]},
    ]
    assert report.crashes == (
        f"worlds 1, 2, 3, 4, 5 and 1 more: world 1, mass {1 / 7}",
        "world 0: killed",
    )
    del crashes[6]
    assert "worlds 1, 2, 3, 4, 5: " in CampaignReport(campaign(crashes=crashes)).crashes[0]


def test_a_campaign_passes_only_if_samples_and_search_pass():
    sound = campaign(offset=(0.01, 0.0))
    for given, passed, status in [
        ({"result": sound}, True, "all 200 sampled worlds keep all requirements"),
        ({"result": sound, "found": [found(0.001)]}, True, "all 200 sampled"),
        ({"result": sound, "found": [found(0.0)]}, False, "the search found a world that breaks"),
        ({"result": campaign(0)}, False, "no world was evaluated"),
        ({"result": campaign(columns=[], values=np.zeros((200, 0)))}, False, "no requirement"),
        ({"result": campaign(offset=(0.01, 0.0), crashes={0: "x"})}, False, "1 of 200 sampled"),
    ]:
        report = CampaignReport(**given)
        assert report.passed is passed
        assert report.sentence.startswith(status)
        json.dumps(report.details, allow_nan=False)
    assert CampaignReport(sound, found=[found(-1.0)]).problems[0].startswith("settle tool: lowest")


@pytest.mark.extended
def test_small_campaigns_have_a_page(tmp_path):
    for k, result in enumerate(
        [campaign(0), campaign(1), campaign(3, columns=[], values=np.zeros((3, 0)))]
    ):
        page = CampaignReport(result).write(tmp_path / str(k)).read_text(encoding="utf-8")
        assert "Campaign" in page
