"""The table of certificates is made of proofs, and the thesis's rates are those of the spec."""

import numpy as np
import pytest

from concur import Status
from concur.certify import split
from tests.benchmarks._certificates import (
    LIMITS,
    certificate_cases,
    certificate_table,
    prove_all,
)
from tests.benchmarks._report import END, PAGE, with_section
from tests.benchmarks._thesis_grid import thesis_rate


@pytest.mark.extended
def test_table_has_a_row_for_every_case_and_names_what_was_proved():
    cases = [c for c in certificate_cases(angles=(60,)) if c.group.startswith(("SO", "R3"))]
    cases = [c for c in cases if c.group != "SO(3), anisotropic"]
    assert len(cases) == 4
    found = prove_all(iter(cases))
    rows = certificate_table(found).splitlines()[4:]
    assert len(rows) == len(cases)
    for row, one in zip(rows, found, strict=True):
        assert one.certificate.status is Status.PROVED
        assert "| PROVED |" in row
        assert 0.0 < one.thesis < one.certificate.rate < one.certificate.true_rate


def test_every_group_of_the_table_has_its_longest_time():
    groups = {case.group for case in certificate_cases()}
    assert groups == set(LIMITS)


def test_one_section_of_the_page_is_rewritten_and_the_others_stay():
    page = PAGE.read_text(encoding="utf-8")
    titles = [line for line in page.splitlines() if line.startswith("## ")]
    new = with_section(page, "Inverse kinematics", "| a table |")
    assert [line for line in new.splitlines() if line.startswith("## ")] == titles
    before, _, rest = page.partition("## Inverse kinematics\n")
    start, _, after = new.partition("## Inverse kinematics\n")
    assert start == before
    assert after.startswith("\n| a table |\n")
    assert after.endswith(rest[rest.index(END) :])
    added = with_section(page, "Never seen", "| b |")
    assert added.replace("\n## Never seen\n\n| b |\n", "") == page


@pytest.mark.parametrize(
    ("gains", "degrees", "ratio"), [("A", 30, 0.236), ("B", 90, 0.046), ("C", 60, 0.0039)]
)
def test_rates_of_the_thesis_are_those_of_the_reference_table(gains, degrees, ratio):
    case = next(
        c
        for c in certificate_cases()
        if c.group == "SE(3)" and c.gains.startswith(gains) and c.degrees == degrees
    )
    (channel,) = split(case.dynamics)
    rate = thesis_rate(case.dynamics, np.radians(degrees))
    assert rate / channel.true_rate == pytest.approx(ratio, rel=0.03)
