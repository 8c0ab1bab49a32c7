"""Counts of consecutive late cycles and missing reports, for the policies of the rig file."""

from __future__ import annotations

from dataclasses import dataclass

from hil._torque import Failing
from hil.reasons import Reason
from hil.settings import Policies


@dataclass(slots=True)
class Failures:
    """Counts consecutive faulty cycles in RUN."""

    policies: Policies
    skipped: int = 0  # deadlines without a cycle since the last cycle
    delayed: int = 0  # late or skipped cycles since the last prompt cycle
    losing: int = 0  # consecutive cycles without a report of any one axis
    late: int = 0  # number of cycles for the policy of late cycles
    lost: int = 0  # number of cycles for the policy of missing reports

    def count(
        self, running: bool, late: bool, prompt: bool, missing: int, absent: int, paused: bool
    ) -> None:
        """Count a cycle.

        `missing`: number of axes without a report. `absent`: largest number of consecutive cycles
        without a report of one axis. `paused`: the cycle requested no report.
        """
        if not running:
            self.lost = self.losing = 0
        elif paused:
            self.lost = 0
        else:
            # Consecutive missing reports of one axis are a fault; single ones of alternating axes
            # are not. In the second case the law is evaluated instead of holding the last torque.
            self.losing = self.losing + 1 if missing else 0
            patience = self.policies.max_consecutive_faults
            self.lost = absent if self.losing <= patience or absent > patience else 0
        failed = late + self.skipped  # cycles for which the last torque was kept
        # Only a prompt cycle after no skipped cycle shows that the loop keeps up.
        keeps_up = prompt and not failed
        self.delayed = self.delayed + failed if running and not keeps_up else 0
        self.late = self.delayed if failed else 0
        self.skipped = 0

    @property
    def failing(self) -> Failing | None:
        """Policy, reason and count of consecutive faulty cycles; None without a fault."""
        if self.lost:
            return self.policies.on_missing, Reason.LOST, self.lost
        if self.late:
            return self.policies.on_late, Reason.LATE, self.late
        return None
