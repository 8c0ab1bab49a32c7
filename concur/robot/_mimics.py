"""Order and checks of joints that follow others."""

from __future__ import annotations

from collections.abc import Sequence

from concur.errors import DescriptionError
from concur.robot._bodies import unknown_name
from concur.robot._body import Body
from concur.robot._drive import Mimic


def ordered_mimics(
    where: str, bodies: Sequence[Body], mimics: Sequence[Mimic]
) -> tuple[Mimic, ...]:
    """Check joints that follow others; each comes after the one that it follows."""
    names = [body.name for body in bodies]
    followers = [mimic.body for mimic in mimics]
    for mimic in mimics:
        place = f"{where}, mimic `{mimic.body}`"
        for attribute in ("body", "of"):
            name = getattr(mimic, attribute)
            if name not in names:
                raise unknown_name(f"{place}, `{attribute}`", "body", name, names)
            joint = bodies[names.index(name)].joint
            if joint.nv != 1 or name == names[0]:
                base = "the base" if name == names[0] else f"with {joint.nv}"
                raise DescriptionError(
                    f"{place}, `{attribute}`",
                    expected="a joint with one coordinate, not that of the base",
                    came=f"`{name}`, {base}",
                    cure="Couple joints of type Revolute, Prismatic or Helical.",
                )
        if followers.count(mimic.body) > 1:
            raise DescriptionError(
                place,
                expected="a joint that follows one other",
                came=f"{followers.count(mimic.body)} that it follows",
                cure="Keep one of them.",
            )
    ordered, waiting = list[Mimic](), list(mimics)
    while waiting:
        pending = {mimic.body for mimic in waiting}
        ready = next((mimic for mimic in waiting if mimic.of not in pending), None)
        if ready is None:
            raise DescriptionError(
                f"{where}, `mimics`",
                expected="a joint at the start of each chain that follows no other",
                came=f"a cycle of {', '.join(f'`{mimic.body}`' for mimic in waiting)}",
                cure="Remove one of the couplings.",
            )
        ordered.append(ready)
        waiting.remove(ready)
    return tuple(ordered)
