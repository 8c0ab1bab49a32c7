"""The table of inverse kinematics is made of answers that were checked."""

from tests.benchmarks._inverse_kinematics import CASES, inverse_kinematics_table


def test_table_has_every_case_and_all_targets_are_reached():
    lines = inverse_kinematics_table(targets=20).splitlines()[2:]
    assert len(lines) == len(CASES)
    for line, label in zip(lines, CASES, strict=True):
        assert label in line
        assert "| 100 % |" in line
