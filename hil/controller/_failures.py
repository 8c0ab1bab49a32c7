"""Late cycles and missing reports in a row, for the policies of the rig file."""

from __future__ import annotations

from dataclasses import dataclass

from hil._torque import Failing
from hil.reasons import Reason
from hil.settings import Policies


@dataclass(slots=True)
class Failures:
    """Counts failing cycles in a row; only a run has any."""

    policies: Policies
    skipped: int = 0  # deadlines without a cycle, since the cycle before
    delayed: int = 0  # cycles that were late or skipped since the loop kept up
    losing: int = 0  # cycles without a report of some axis, whichever
    late: int = 0  # cycles for which the policy of late cycles is in force,
    lost: int = 0  # and that of missing reports

    def count(
        self, running: bool, late: bool, prompt: bool, missing: int, absent: int, paused: bool
    ) -> None:
        """Count a cycle.

        `missing` axes have not reported in it, one of them for `absent` cycles; `paused`: none was
        asked to.
        """
        if not running:
            self.lost = self.losing = 0
        elif paused:
            self.lost = 0
        else:
            # Consecutive missing reports of one axis are a fault; single ones of different axes in
            # turn are not. Then the last torque is not held: the law is evaluated.
            self.losing = self.losing + 1 if missing else 0
            patience = self.policies.max_consecutive_faults
            self.lost = absent if self.losing <= patience or absent > patience else 0
        failed = late + self.skipped  # the last torque was kept for as long
        # Only a cycle that is prompt and follows no skipped one shows that the loop keeps up.
        keeps_up = prompt and not failed
        self.delayed = self.delayed + failed if running and not keeps_up else 0
        self.late = self.delayed if failed else 0
        self.skipped = 0

    @property
    def failing(self) -> Failing | None:
        """Policy, reason and count of the failing cycles; None if this cycle does not fail."""
        if self.lost:
            return self.policies.on_missing, Reason.LOST, self.lost
        if self.late:
            return self.policies.on_late, Reason.LATE, self.late
        return None
