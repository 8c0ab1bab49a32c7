"""Constants of motion that were tested together: what speaks against reducing by all of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from concur.reduction._constant import ConstantOfMotion
from concur.reduction._phase_space import ROUNDING, PhaseSpace


@dataclass(frozen=True, eq=False)
class ConstantSet:
    """The core of `ConstantsOfMotion`, which lists its parameters."""

    space: PhaseSpace
    constants: tuple[ConstantOfMotion, ...]
    brackets: np.ndarray
    two_form_defect: float
    independence: float
    turned: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the constants."""
        return tuple(one.name for one in self.constants)

    @property
    def dimension(self) -> int:
        """Dimension of the phase space before."""
        return 2 * self.space.ns

    @property
    def dimension_after(self) -> int:
        """Dimension after, 2 less for each constant; as before if they do not reduce jointly."""
        return self.dimension - 2 * len(self.constants) * self.reducible

    @property
    def involutive(self) -> bool:
        """Whether each constant stays the same along the fields of all others."""
        return bool(np.max(self.brackets, initial=0.0) <= ROUNDING)

    @property
    def reducible(self) -> bool:
        """Whether the system can be reduced by all of them at once (Theorem 4.2.17)."""
        return not self.reasons

    @property
    def reasons(self) -> tuple[str, ...]:
        """What speaks against reducing by all of them at once."""
        found = [
            f"`{one.name}` {one.why}"
            for one in self.constants
            if not (one.conserved and one.generator)
        ]
        if not self.involutive:
            i, j = divmod(int(np.argmax(self.brackets)), len(self.constants))
            found.append(
                f"`{self.names[i]}` and `{self.names[j]}` are not in involution: each changes "
                f"along the field of the other ({self.brackets[i, j]:.1e})"
            )
        if self.two_form_defect > ROUNDING:
            found.append(
                f"the fields change the two-form on the level set ({self.two_form_defect:.1e})"
            )
        if self.constants and self.independence <= ROUNDING:
            found.append("their differentials are not independent everywhere")
        return tuple(found) if self.constants else ("there is no constant of motion",)

    @property
    def controls(self) -> tuple[str, ...]:
        """Controls that change any of them."""
        acting = {name for one in self.constants for name in one.controls}
        return tuple(name for name in self.space.control_names if name in acting)

    @property
    def free_controls(self) -> tuple[str, ...]:
        """Controls that may act after the reduction: no constant nor group notices them."""
        noticed = {*self.controls, *self.turned}
        return tuple(name for name in self.space.control_names if name not in noticed)

    def __iter__(self) -> Iterator[ConstantOfMotion]:
        return iter(self.constants)

    def __len__(self) -> int:
        return len(self.constants)
