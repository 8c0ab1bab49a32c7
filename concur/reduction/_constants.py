"""Constants of motion of the reduced system, and what may be divided out by them.

The third step of the reduction, Proposition 4.2.16 and Theorem 4.2.17: functions h_1..h_m on the
reduced phase space whose fields eta_i, ``iota_eta Omega = dh``, are those of one-parameter groups.
The theorem asks, and this is tested at random states, exact derivatives throughout:

1. h is constant along the motion, ``{h, H} = 0``;
2. eta generates a group of motions of the shape: its part on the shape does not depend on
   the momenta, so that h is affine in them;
3. ``iota_eta dXi = 0`` on the level set: the two-form there descends to the quotient;
4. ``dh_i(eta_j) = 0`` for all pairs. The theorem as printed leaves this out, but without it
   the groups do not keep the level set: on the plane with Omega = Omega_can - beta dx^dy and
   H = |p|^2 / 2, px - beta y and py + beta x each satisfy all the rest, and d(py + beta x)/dx is
   beta.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import qr

from concur.codegen import Array, Vector, finite_floats
from concur.errors import ReductionError
from concur.reduction._constant import ConstantOfMotion
from concur.reduction._level_set import LevelSet
from concur.reduction._model import ReducedModel
from concur.reduction._phase_space import SAMPLES, PhaseSpace, phase_space
from concur.reduction._search import ROUNDING
from concur.robot import unknown_name

Candidate: TypeAlias = Callable[[Any, Any], Any]
"""Function h(q, p) over CasADi SX, scalar."""


@dataclass(frozen=True, eq=False)
class ConstantsOfMotion:
    """Constants of motion of a reduced system, one by one and together.

    Made by `constants_of_motion`. Iterate over it for its constants, take one by its name, or
    print it.

    Parameters
    ----------
    space : PhaseSpace
        The reduced phase space.
    constants : tuple of ConstantOfMotion
        Those asked for, or found.
    brackets : numpy.ndarray
        ``dh_i(eta_j)`` relative to the terms that have to cancel, shape (m, m).
    two_form_defect : float
        Largest ``iota_eta dXi`` on the common level sets, of all the fields.
    independence : float
        Smallest relative singular value of the differentials: zero where they are dependent.
    turned : tuple of str
        Controls whose forces the groups do not leave the same.

    Examples
    --------
    >>> import concur as cc
    >>> model = cc.reduce(cc.robots.planar_floater())
    >>> found = cc.reduction.constants_of_motion(model, {"energy": model.hamiltonian})
    >>> [constant.name for constant in found], found["energy"].conserved
    (['energy'], True)
    """

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
        unmet = {
            "there is no constant of motion": bool(self.constants),
            f"not in involution: the brackets are {self.brackets.tolist()}": self.involutive,
            f"the fields change the two-form on the level set ({self.two_form_defect:.1e})": (
                self.two_form_defect <= ROUNDING
            ),
            "their differentials are not independent everywhere": self.independence > ROUNDING,
        }
        alone = (f"`{x.name}` {x.why}" for x in self if not (x.conserved and x.generator))
        return *alone, *(text for text, holds in unmet.items() if not holds)

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

    def only(self, *names: str) -> ConstantsOfMotion:
        """Test some of the constants together.

        Parameters
        ----------
        *names : str
            Their names.

        Returns
        -------
        ConstantsOfMotion
            Their report.

        Raises
        ------
        UnknownNameError
            If there is no constant of such a name.
        """
        return _together(self.space, tuple(self[name] for name in names))

    def level_set(self, q: ArrayLike, p: ArrayLike) -> LevelSet:
        """Restrict the system to the level set through a state and divide by the groups.

        Parameters
        ----------
        q, p : array_like
            Configuration and reduced momentum, shapes (nq,) and (ns,): where the motion starts.

        Returns
        -------
        LevelSet
            The motion that is left, in 2 m coordinates less (Theorem 4.2.18).

        Raises
        ------
        ReductionError
            If the constants do not reduce the system jointly, or not at this state.
        ShapeError, NonFiniteError
            If the state has a wrong shape or is not finite.
        """
        space, m = self.space, len(self)
        where = f"robot `{space.name}`, level set of constants of motion"
        if not self.reducible:
            raise ReductionError(
                where,
                expected="constants of motion that reduce the system jointly",
                came="; ".join(self.reasons),
                cure="Take fewer: `only` tests some of them together, and one at a time is enough.",
            )
        q = finite_floats(q, f"{where}, `q`", (space.nq,))
        p = finite_floats(p, f"{where}, `p`", (space.ns,))
        velocities = np.array([one.field(q, p)[0] for one in self]).T
        rates = np.array([space.rates(q, column) for column in velocities.T]).T
        values = np.linalg.svd(rates / np.abs(rates).max(initial=1e-300), compute_uv=False)
        if values[-1] < np.sqrt(ROUNDING):
            raise ReductionError(
                where,
                expected="a state at which the fields move the shape independently",
                came=f"fields that do so only by {values[-1]:.1e}",
                cure="Start at another configuration.",
            )
        held = tuple(sorted(int(i) for i in qr(rates.T, pivoting=True, mode="r")[1][:m]))
        solved = tuple(sorted(int(i) for i in qr(velocities.T, pivoting=True, mode="r")[1][:m]))
        kept = tuple(i for i in space.moving if i not in held)
        free = tuple(i for i in range(space.ns) if i not in solved)
        return LevelSet(
            space,
            self.constants,
            self.free_controls,
            tuple(float(one.value(q, p)) for one in self),
            tuple(float(x) for x in q),
            kept,
            held,
            free,
            solved,
            tuple(float(x) for x in (*q[list(kept)], *p[list(free)])),
        )

    def __getitem__(self, name: str) -> ConstantOfMotion:
        known = dict(zip(self.names, self.constants, strict=True))
        if name not in known:
            where = f"constants of motion of `{self.space.name}`"
            raise unknown_name(where, "constant", name, list(known))
        return known[name]

    def __str__(self) -> str:
        if not self.constants:
            return f"{self.space.name}: no constant of motion was found"
        if self.reducible:
            joint = f"jointly: dimension {self.dimension} -> {self.dimension_after}"
        else:
            joint = f"not jointly: {'; '.join(self.reasons)}"
        lines = [str(one) for one in self.constants]
        return "\n".join([f"{self.space.name}, constants of motion", *lines, joint])


def constants_of_motion(
    model: ReducedModel,
    candidates: Candidate | Iterable[Candidate] | Mapping[str, Candidate] | None = None,
) -> ConstantsOfMotion:
    """Test functions for being constants of the reduced motion, or look for such functions.

    The third reduction step (Proposition 4.2.16, Theorem 4.2.17). Stages of `reduce` use the
    conserved momentum of a single unactuated joint; this function finds constants that belong to
    several joints.

    Without candidates, the search covers combinations with constant coefficients of the momenta
    and of the angles and lengths of single-freedom joints. Momenta of joints with several freedoms
    are in the body's axes, p, and in those of the frame that the joint attaches to, P. Constants
    that the search finds are tested like candidates, at other states. Constants that no control
    changes come first.

    Whether the flow of a field exists for all times is not tested.

    Parameters
    ----------
    model : ReducedModel
        The reduced robot: on wheels with a symmetry, floating at zero momentum, on a fixed base,
        or after stages.
    candidates : callable, iterable of callable or mapping, optional
        Functions h(q, p) -> scalar over CasADi SX of the configuration (nq,) and the reduced
        momentum (ns,); a mapping names them.

    Returns
    -------
    ConstantsOfMotion
        For each function, whether it is constant, whether its field generates motions that
        keep the two-form, and which controls change it; and whether all reduce jointly.

    Raises
    ------
    ReductionError
        If the reduced equations are not those of a Hamiltonian and a two-form on the shape
        alone, or a candidate is no function on it.

    See Also
    --------
    conservation : whether a joint keeps its momentum.

    Examples
    --------
    >>> import concur as cc
    >>> model = cc.reduce(cc.robots.rover_arm())
    >>> found = cc.reduction.constants_of_motion(model)
    >>> len(found), found.dimension
    (0, 10)
    >>> own = cc.reduction.constants_of_motion(model, {"energy": model.hamiltonian})
    >>> own["energy"].conserved, own["energy"].generator
    (True, False)
    """
    return constants_on(phase_space(model), candidates)


def constants_on(
    space: PhaseSpace,
    candidates: Candidate | Iterable[Candidate] | Mapping[str, Candidate] | None = None,
) -> ConstantsOfMotion:
    """Do what `constants_of_motion` does on any phase space."""
    if candidates is None:
        functions = _search(space)
    else:
        functions = {
            name: _function(space, name, h) for name, h in _named(space, candidates).items()
        }
    return _together(space, tuple(_judged(space, name, h) for name, h in functions.items()))


def _named(
    space: PhaseSpace, candidates: Candidate | Iterable[Candidate] | Mapping[str, Candidate]
) -> dict[str, Candidate]:
    if isinstance(candidates, Mapping):
        return {str(name): h for name, h in candidates.items()}
    several: Any = [candidates] if callable(candidates) else candidates
    if isinstance(several, str) or not isinstance(several, Iterable):
        raise _no_function(space, "candidates", f"{type(candidates).__name__} {candidates!r:.40}")
    return {f"h{i + 1}": h for i, h in enumerate(several)}


def _no_function(space: PhaseSpace, name: str, came: str) -> ReductionError:
    return ReductionError(
        f"robot `{space.name}`, constant of motion `{name}`",
        expected="a function h(q, p) over CasADi SX with one number as its value",
        came=came,
        cure="Write for example lambda q, p: p[0] + p[1].",
    )


def _function(space: PhaseSpace, name: str, candidate: Candidate) -> ca.Function:
    if not callable(candidate):
        raise _no_function(space, name, f"{type(candidate).__name__} {candidate!r:.40}")
    q, p = ca.SX.sym("q", space.nq), ca.SX.sym("p", space.ns)
    result = candidate(q, p)
    if not isinstance(result, ca.SX) or result.shape != (1, 1):
        shape = f" of shape {result.shape}" if isinstance(result, ca.SX) else ""
        raise _no_function(space, name, type(result).__name__ + shape)
    known = ca.Function("known", [q, p], [result], {"allow_free": True})
    if known.has_free():
        raise _no_function(space, name, f"one that depends on {', '.join(known.get_free())} too")
    elsewhere = [i for i in range(space.nq) if i not in space.moving]
    left = [i for i in elsewhere if ca.depends_on(result, q[i])]
    if left:
        raise ReductionError(
            f"robot `{space.name}`, constant of motion `{name}`",
            expected="a function of the shape and its momenta",
            came=f"one of `{space.coordinate_names[left[0]]}`, which was reduced already",
            cure="Express it by the coordinates of the shape velocities.",
        )
    return ca.Function("constant", [q, p], [ca.densify(result)])


def _judged(space: PhaseSpace, name: str, function: ca.Function) -> ConstantOfMotion:
    one = ConstantOfMotion(name, space, function, 0.0, 0.0, 0.0, 0.0, ())
    rate = bending = twist = 0.0
    steepness = np.inf
    acting = np.zeros(space.nu)
    for q, p in space.states(31):
        slope, s, form, inputs = space.slopes(q, p)
        along_q, along_p, bent = one.slopes(q, p)
        momentum = np.abs(p)
        size = np.abs(along_q) @ np.abs(s) + np.abs(along_p) @ (
            np.abs(slope) + np.abs(form) @ np.abs(s) + momentum
        )
        rate = max(rate, _ratio(abs(one.bracket(q, p)), size))
        weight = np.abs(along_p).max()
        bending = max(bending, _ratio(np.abs(bent @ np.diag(momentum)).max(), weight))
        twist = max(twist, _twist(space, q, p, [(along_q, along_p)]))
        steepness = min(steepness, _ratio(weight * momentum.max() + np.abs(along_q).max(), size))
        pushes = zip(np.abs(along_p @ inputs), np.abs(along_p) @ np.abs(inputs), strict=True)
        acting = np.maximum(acting, [_ratio(*push) for push in pushes])
    controls = tuple(c for c, a in zip(space.control_names, acting, strict=True) if a > ROUNDING)
    return ConstantOfMotion(name, space, function, rate, bending, twist, steepness, controls)


def _together(space: PhaseSpace, constants: tuple[ConstantOfMotion, ...]) -> ConstantsOfMotion:
    m = len(constants)
    brackets, twist, independence = np.zeros((m, m)), 0.0, np.inf
    turned = np.zeros(space.nu)
    for q, p in space.states(32) if m else []:
        form = space.form(q, p)
        slopes = [one.slopes(q, p)[:2] for one in constants]
        for i, (q_i, p_i) in enumerate(slopes):
            for j, (q_j, p_j) in enumerate(slopes):
                terms = np.array([q_i @ p_j, -p_i @ q_j, p_i @ form @ p_j])
                size = np.abs(q_i) @ np.abs(p_j) + np.abs(p_i) @ np.abs(q_j)
                size += np.abs(p_i) @ np.abs(form) @ np.abs(p_j)
                size += max(np.abs(p_i) @ np.abs(p), np.abs(p_j) @ np.abs(p)) * min(
                    np.abs(p_i).max(), np.abs(p_j).max()
                )
                if i != j:
                    brackets[i, j] = max(brackets[i, j], _ratio(abs(terms.sum()), size))
        twist = max(twist, _twist(space, q, p, slopes))
        turned = np.maximum(turned, _turned(space, constants, q, p, slopes))
        rows = _scaled(slopes, p)
        sizes = np.linalg.norm(rows, axis=1, keepdims=True)
        values = np.linalg.svd(rows / np.where(sizes > 0.0, sizes, 1.0), compute_uv=False)
        independence = min(independence, float(values[-1]) if m <= rows.shape[1] else 0.0)
    names = tuple(c for c, a in zip(space.control_names, turned, strict=True) if a > ROUNDING)
    return ConstantsOfMotion(space, constants, brackets, twist, float(independence), names)


def _turned(
    space: PhaseSpace,
    constants: tuple[ConstantOfMotion, ...],
    q: np.ndarray,
    p: np.ndarray,
    slopes: list[tuple[np.ndarray, np.ndarray]],
) -> np.ndarray:
    """How much the fields change each control's force on the common level set, relative."""
    within = _tangent(slopes, p)[:, : space.ns]
    forces = np.abs(space.slopes(q, p)[3]).max(axis=0, initial=0.0)
    worst = np.zeros(space.nu)
    for one, (_, velocity) in zip(constants, slopes, strict=True):
        changes = np.abs(within @ one.turning(q, p)).max(axis=0, initial=0.0)
        sizes = np.where(forces > 0.0, forces, 1.0) * max(float(np.abs(velocity).max()), 1e-300)
        worst = np.maximum(worst, changes / sizes)
    return worst


def _twist(
    space: PhaseSpace,
    q: np.ndarray,
    p: np.ndarray,
    slopes: list[tuple[np.ndarray, np.ndarray]],
) -> float:
    """Largest iota_eta dOmega on the common level set, relative to fields and momenta."""
    within = _tangent(slopes, p)
    form, worst = space.form(q, p), 0.0
    for along_q, along_p in slopes:
        pdot = form @ along_p - along_q
        contracted = within @ space.contracted(q, p, along_p, pdot) @ within.T
        size = np.abs(along_p) @ np.abs(p) + np.abs(pdot).max()
        worst = max(worst, _ratio(float(np.abs(contracted).max(initial=0.0)), size))
    return worst


def _tangent(slopes: list[tuple[np.ndarray, np.ndarray]], p: np.ndarray) -> np.ndarray:
    """Rows that span the tangent space of the common level set, momenta in units of p."""
    rows = _scaled(slopes, p)
    rank = np.linalg.matrix_rank(rows, rtol=ROUNDING)
    scale = np.concatenate([np.ones(len(p)), np.abs(p)])
    return np.asarray(np.linalg.svd(rows)[2][rank:] * scale)


def _scaled(slopes: list[tuple[np.ndarray, np.ndarray]], p: np.ndarray) -> np.ndarray:
    return np.array([np.concatenate([a, b * np.abs(p)]) for a, b in slopes])


def _ratio(value: float, size: float) -> float:
    return float(value / size) if size > 0.0 else float(value)


# --- search among combinations of momenta with constant coefficients -----------------------------


def _search(space: PhaseSpace) -> dict[str, ca.Function]:
    """Combinations (q, p) -> h that are constant at random states; those without controls first."""
    q, p = ca.SX.sym("q", space.nq), ca.SX.sym("p", space.ns)
    terms = {name: ca.SX(term) for name, term in space.momenta(q, p).items()}
    terms |= {space.coordinate_names[i]: q[i] for i in space.lines}
    values, rates, pushes, sizes = _sampled(space, q, p, terms)
    names = [name for name, used in zip(terms, _independent(values), strict=True) if used]
    columns = [list(terms).index(name) for name in names]
    rates, pushes, sizes = rates[:, columns], pushes[:, columns], sizes[columns]
    # Undisturbed by the controls first; what they change is worth knowing too.
    found = list(_echelon(_null_space(np.vstack([rates, pushes])), sizes))
    for row in _echelon(_null_space(rates), sizes):
        together = np.array([*found, row]) * sizes
        together /= np.linalg.norm(together, axis=1, keepdims=True)
        if np.linalg.matrix_rank(together, rtol=1e-6) > len(found):
            found.append(row)
    functions = {}
    for row in found:
        parts = [(float(c), name) for c, name in zip(row, names, strict=True) if c]
        total = sum((c * terms[name] for c, name in parts), ca.SX(0))
        functions[_written(parts)] = ca.Function("constant", [q, p], [ca.densify(total)])
    return functions


def _sampled(
    space: PhaseSpace, q: Vector, p: Vector, terms: dict[str, Array]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Values at states, rates and what the controls do over the size of each term, sizes."""
    slope, s, form, inputs = space.slopes(q, p)
    results = []
    for term in terms.values():
        along_q, along_p = space.differential(term, q, p)
        rate = ca.dot(along_q, s) + ca.dot(along_p, form @ s - slope)
        size = ca.dot(ca.fabs(along_q), ca.fabs(s)) + ca.dot(
            ca.fabs(along_p), ca.fabs(slope) + ca.fabs(form) @ ca.fabs(s) + ca.fabs(p)
        )
        results.append(ca.vertcat(term, rate, size, inputs.T @ along_p))
    table = ca.Function("terms", [q, p], [ca.densify(ca.horzcat(*results))], {"cse": True})
    states = space.states(33, 2 * len(terms) + SAMPLES)
    sampled = np.array([np.array(table(*state)) for state in states])
    sizes = sampled[:, 2].max(axis=0)
    sizes = np.where(sizes > 0.0, sizes, 1.0)
    pushes = sampled[:, 3:].reshape(-1, len(terms)) / sizes
    pushes /= np.max(np.abs(pushes), initial=1e-300)
    return sampled[:, 0], sampled[:, 1] / sizes, pushes, sizes


def _independent(values: np.ndarray) -> np.ndarray:
    """Terms, columns of values, that are no combination of the ones before them."""
    left = np.abs(np.diag(np.linalg.qr(values, mode="r")))
    return np.asarray(left > ROUNDING * np.linalg.norm(values, axis=0))


def _null_space(rows: np.ndarray) -> np.ndarray:
    """Rows that span what a matrix with columns of size one takes to zero."""
    _, sizes, right = np.linalg.svd(rows)
    large = int(np.sum(sizes > 0.1 * ROUNDING * np.sqrt(len(rows))))
    return np.asarray(right[large:])


def _echelon(rows: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Echelon form of coefficients of scaled terms, then of the terms themselves, leading 1."""
    rows = rows.copy()
    done = 0
    for column in range(rows.shape[1]):
        if done == len(rows):
            break
        best = done + int(np.argmax(np.abs(rows[done:, column])))
        if abs(rows[best, column]) < 1e-6:
            rows[done:, column] = 0.0
            continue
        rows[[done, best]] = rows[[best, done]]
        rows[done] /= rows[done, column]
        others = np.arange(len(rows)) != done
        rows[others] -= np.outer(rows[others, column], rows[done])
        done += 1
    rows[np.abs(rows) < 1e-8] = 0.0
    plain = rows / sizes
    leading = np.array([row[np.flatnonzero(row)[0]] for row in plain])
    plain /= leading[:, None]
    near = np.abs(plain - np.round(plain)) < 1e-9
    return np.asarray(np.where(near, np.round(plain), plain))


def _written(parts: list[tuple[float, str]]) -> str:
    """Name of a combination."""
    text = ""
    for factor, name in parts:
        sign = "- " if factor < 0.0 else "+ "
        size = "" if abs(factor) == 1.0 else f"{abs(factor):.6g} "
        text += f" {sign}{size}{name}"
    return text.strip().removeprefix("+ ")
