"""The case study of section 3.4 with our parameters: reference numbers, in two formulations.

The reference numbers come from a simulation at full order, and from the formulas of the thesis
evaluated outside this package. The global form keeps the base's configuration, the chart form
the product slice of the thesis; neither uses the other's equations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

import concur as cc
from concur.reduction import MomentumReduction
from tests.oracles import MomentumChart, assert_close, difference_quotient

MU = (0.0, 20.0, 0.0, 5.0, 0.0, 0.0)
K = MU[3] / MU[1]

# Initial state in the chart of the thesis.
Y, TURN = 0.1, 0.2
ZETA = np.array([0.3, -0.2, 0.15, -0.25])
PSI = np.array([0.3, -0.4, 0.5])
ANGLES = np.array([0.6, -0.7, 0.8])
S = np.array([0.2, -0.1, 0.15, 0.3, -0.25, 0.2])


def numbers(text: str) -> np.ndarray:
    return np.array(text.split(), dtype=float)


def table(text: str) -> np.ndarray:
    return np.array([row.split() for row in text.strip().splitlines()], dtype=float)


M11 = table(
    """
    119.5 0 0 0 4.7017440179 -34.3249503058
    0 119.5 0 -4.7017440179 0 -9.1165618473
    0 0 119.5 34.3249503058 9.1165618473 0
    0 -4.7017440179 34.3249503058 77.8129556949 17.8469034704 3.4260662665
    4.7017440179 0 9.1165618473 17.8469034704 18.2307404136 -9.7432210982
    -34.3249503058 -9.1165618473 0 3.4260662665 -9.7432210982 83.7940455604
    """
)
A = table(
    """
    0.0044548438 -0.0007717979 -0.0071918148 0.0114754543 0.0001150648 0.0036724792
    -0.0380704107 0.0057653460 -0.0298152324 -0.0292884573 0.0005491620 -0.0061854140
    0.0065427233 0.0028470333 -0.0111434142 -0.0074173000 -0.0008153480 -0.0019939539
    0.3843825292 0.0031340450 -0.1466467766 0.1345312015 0.0268574340 0.0055482271
    0.1384444176 0.1263622450 -0.2072363160 0.0653148538 -0.0032024139 0.0119417251
    0.1877690512 -0.0727983123 0.3638985932 0.0615150887 0.0112773626 0.0050156610
    """
)
MHAT = table(
    """
    5.1330610303 -0.2618638982 0.7868283325 3.0780684036 0.3942824906 0.4624290350
    -0.2618638982 1.1494456698 -1.2124340480 -0.2941031379 -0.1932181589 0.0246857212
    0.7868283325 -1.2124340480 4.6654341331 0.6722593747 0.0005100411 0.2488578748
    3.0780684036 -0.2941031379 0.6722593747 2.7406313609 0.3590096384 0.5562326872
    0.3942824906 -0.1932181589 0.0005100411 0.3590096384 0.2350016613 -0.0182667405
    0.4624290350 0.0246857212 0.2488578748 0.5562326872 -0.0182667405 0.3202570371
    """
)
A_ISOTROPY = np.hstack(
    [
        table(
            """
            0 0 -0.0833137769 -0.0028216913
            0.5349518876 -1.1923670509 -0.3054175240 -0.8211764241
            """
        ),
        table(
            """
            -0.0562329443 -0.0327167428 -0.0099865948 -0.0421505762 -0.0015098773 -0.0072387589
            -0.1377519813 -0.0329511895 -0.3114722995 -0.0639288415 -0.0208209768 0.0030854201
            """
        ),
    ]
)
I_ISOTROPY = np.diag([119.5, 29.7802413815])
ENERGY = 2.652218691075
UPPER = (
    "0 0 -19.7754215587 -0.96000274 -0.8918661891 -6.7045582305 -1.3061521462 -0.1938816536"
    " -0.1296657114",
    "20 0 7.7775566375 4.5015071210 -3.8671793714 2.9301621137 0.5046042314 0.1666035234",
    "0.8966287948 -0.3084207482 -0.7931718271 1.6036635075 0.1171530410 0.0825584930 0.0040561080",
    "-0.3675987372 -0.3638915933 0.0542126602 -0.0847813190 -0.0079831384 0.0224379402",
    "-0.3939013900 1.4332441037 0.1841105175 0.0843461275 -0.0169271098",
    "0.7285229134 0.3968746403 0.0448335874 0.0601428787",
    "-0.8627945926 -0.1597701255 -0.0530148218",
    "0.0110478085 -0.0071117946",
    "0.0039201403",
)
"""Xi_mu in the coordinates (x, z, tX, tZ, psiX, psiY, psiZ, psi1, psi2, psi3), rows of the
upper triangle."""
ZETA_RATE = numbers("-0.0156407602 -0.0418862520 -0.0475200417 -0.2319116697")
PSI_RATE = numbers("0.2426104978 0.0081268515 0.2444769779")
PBAR_RATE = numbers(
    "0.3882361986 0.7233080303 -0.3956791197 0.2803790875 0.0399765755 -0.0197680438"
)
Y_RATE, TURN_RATE = 0.1928160940, -0.1233385848
S_RATE = numbers(
    "0.073279771084 0.175476124377 -0.080281286065 -0.099774696922 0.300054902436 -0.082532611255"
)
PHAT_RATE = numbers(
    "0.461098004778 0.010490076099 -0.395679119704 0.280379087473 0.039976575496 -0.019768043786"
)
PI_RATE = numbers(
    "-4.478716529757 -0.997021045914 0.939728857195 -0.748896757562 0.387338231562 0.266694789246"
)


@dataclass(frozen=True)
class State:
    """One printed state; angles of joints, velocities and momenta as named there."""

    energy: float
    p: np.ndarray
    quat1: np.ndarray
    quat2: np.ndarray
    psi: np.ndarray
    v1: np.ndarray
    vbar: np.ndarray
    pi: np.ndarray
    phat: np.ndarray
    free: np.ndarray
    zeta: np.ndarray
    euler: np.ndarray
    pbar: np.ndarray


def _state(energy: float, text: str) -> State:
    return State(energy, *(numbers(line) for line in text.strip().splitlines()))


STATES = {
    ("free", 1.0): _state(
        2.652218691075,
        """
    0.281799470757 0.296029447840 -0.260711085941
    0.031158348311 0.051552790754 -0.234548538817 0.970236285672
    0.188452573636 -0.223301272709 0.288421480123 0.911830696401
    0.856022000742 -0.823078975650 0.976487646709
    -0.109158937025 0.166423367471 -0.018523249776 -0.025253786494 -0.129054824309 -0.201062334685
    0.238938333441 0.009850316400 0.086302285551 0.218557511759 -0.015901315829 0.166117463840
    -9.038448132045 17.760645610768 -1.692903675061 0.456670386875 -0.302654137547 -5.613387592457
    2.407006072809 -0.357745813080 0.931990906588 1.752650656582 0.190262580502 0.316729554345
    0.296029447840 0.085833507231
    0.281680286077 -0.236513506140 0.084746588777 -0.470744718368
    0.517899377302 -0.303139861807 0.693582298296
    1.706560745901 1.263696666061 0.931990906588 1.752650656582 0.190262580502 0.316729554345
        """,
    ),
    ("free", 5.0): _state(
        2.652218691075,
        """
    0.202929960038 1.110868623381 -0.258215487166
    -0.119005343842 -0.158494208140 -0.569766787411 0.797548194209
    0.481237560679 0.062647356637 0.448517975406 0.750544698626
    1.590208297983 -0.306884760693 1.709547390558
    -0.184625138142 0.050285706232 0.078994659455 -0.052387540508 -0.123356047851 -0.182920915297
    0.184105388604 0.115243319742 -0.016223536012 0.228243523484 0.074079839722 0.152834340895
    -17.422192587342 6.448141444013 7.408689315091 -1.625831402963 -0.118126303614 -3.720476258447
    1.665268192729 -0.004932859077 0.105284610352 1.259553025344 0.264382836948 0.058455357693
    1.110868623381 -0.126516787995
    0.200271399848 -0.283755433833 -0.379476718636 -1.216318962891
    0.899704753542 0.553569143493 0.804647128371
    1.040572893653 1.196548702733 0.105284610352 1.259553025344 0.264382836948 0.058455357693
        """,
    ),
    ("driven", 1.0): _state(
        2.877496712691,
        """
    0.281251386766 0.299011106700 -0.259679505304
    0.030710074790 0.057671299387 -0.231127969220 0.970726930902
    0.217470957348 -0.296074128819 0.245292005104 0.897150112961
    0.939980550951 -1.243951268213 0.945410103229
    -0.110901186297 0.173465505758 -0.017997110499 -0.032075351374 -0.112928588519 -0.201315732149
    0.293243709594 -0.160847293243 -0.013235186731 0.303626280075 -0.765401170207 0.148631158507
    -8.903642171572 17.825470126019 -1.725621878338 0.538046074250 -0.272973749134 -5.595927618054
    2.825182444024 -0.374691119448 0.697614561068 2.007474877621 0.020075230351 0.383059987731
    0.299011106700 0.098294425779
    0.280843693918 -0.232031834616 0.086388506358 -0.463239440393
    0.632798621464 -0.438473760597 0.679421891392
    1.906884797251 1.483698987434 0.697614561068 2.007474877621 0.020075230351 0.383059987731
        """,
    ),
    ("driven", 5.0): _state(
        3.069166860193,
        """
    0.223819730530 1.169874073193 -0.264973502333
    -0.228753955394 -0.145499873922 -0.602888329804 0.750351301969
    0.819385741154 0.200017124371 0.297492558392 0.447323523699
    0.468597906738 -2.274930614412 2.364386143923
    -0.186289163327 0.024042687942 0.110387573636 -0.109918254222 -0.111311426705 -0.223783082711
    0.280917565983 0.386547385604 -0.121793277795 0.067334110222 -0.402047816187 0.686644799579
    -16.763774861665 3.367891587104 10.374640169420 -2.281227723196 0.460486402318 -3.835589050836
    2.244867276165 0.220915800267 -0.824958126284 0.740816269107 -0.125047642586 0.016381889051
    1.169874073193 0.067276918155
    0.224320008282 -0.249893083577 -0.545367141730 -1.372532710262
    2.173788506433 0.729459875286 -0.082762012800
    1.131705417014 0.034581934197 -0.824958126284 0.740816269107 -0.125047642586 0.016381889051
        """,
    ),
}
START = {
    "p": numbers("0.303953439892 0.1 -0.260597470346"),
    "quat1": numbers("0.061561950373 0.108071193922 -0.131125270051 0.983532870251"),
    "quat2": numbers("0.093306593773 -0.226566306890 0.210983826856 0.946280831966"),
    "v1": numbers(
        "-0.068116953549 0.178621526871 -0.033643903895"
        " -0.015870948904 -0.129919029042 -0.213480181949"
    ),
    "pi": numbers(
        "-4.892517589555 19.160651592809 -2.988762649472"
        " 1.190741935536 -0.621350817731 -5.932626467616"
    ),
    "phat": numbers(
        "2.088158551178 -0.384171711239 1.229746068331 1.589546436813 0.143553948267 0.362833814811"
    ),
    "pbar": numbers(
        "1.378630244994 0.663974143534 1.229746068331 1.589546436813 0.143553948267 0.362833814811"
    ),
}


def torque(t: float) -> np.ndarray:
    return np.array(
        [
            0.5 * np.sin(t),
            -0.4 * np.cos(2 * t),
            0.3 * np.sin(1.5 * t),
            0.2 * np.cos(t),
            -0.15 * np.sin(2 * t),
            0.1 * np.sin(3 * t),
        ]
    )


TORQUES: dict[str, Callable[[float], np.ndarray]] = {
    "free": lambda t: np.zeros(6),
    "driven": torque,
}


# --- coordinates of the thesis ----------------------------------------------------------------


def product_slice(zeta: ca.SX) -> tuple[ca.SX, ca.SX]:
    """chi(x, z, tX, tZ) = [R_X(tX) R_Z(tZ), (x, 0, z)]."""
    x, z, about_x, about_z = (zeta[i] for i in range(4))
    c, s = ca.cos(about_x), ca.sin(about_x)
    turn_x = ca.blockcat([[1, 0, 0], [0, c, -s], [0, s, c]])
    c, s = ca.cos(about_z), ca.sin(about_z)
    turn_z = ca.blockcat([[c, -s, 0], [s, c, 0], [0, 0, 1]])
    return turn_x @ turn_z, ca.vertcat(x, 0, z)


def isotropy_element(y: float, turn: float) -> np.ndarray:
    """h(y, tY) as coordinates of the base: turn about an axis along y through (0, 0, -k)."""
    translation = [K * np.sin(turn), y, -2 * K * np.sin(turn / 2) ** 2]
    return np.array([*translation, 0.0, np.sin(turn / 2), 0.0, np.cos(turn / 2)])


def joint_coordinates(psi: np.ndarray, angles: np.ndarray) -> np.ndarray:
    """Joints of the arm from the thesis's Euler angles X-Y-Z and hinges."""
    return np.concatenate([Rotation.from_euler("XYZ", psi).as_quat(), angles])


def euler_map(psi: np.ndarray) -> np.ndarray:
    """T(psi): angular velocity of the ball joint in child axes from the rates of its angles."""
    (_, cy, cz), (_, sy, sz) = np.cos(psi), np.sin(psi)
    return np.array([[cy * cz, sz, 0], [-cy * sz, cz, 0], [sy, 0, 1]])


def to_coordinates(psi: np.ndarray) -> np.ndarray:
    """W = diag(T(psi), 1, 1, 1): shape velocities from the rates of the shape coordinates."""
    wide = np.eye(6)
    wide[:3, :3] = euler_map(psi)
    return wide


@pytest.fixture(scope="module")
def model() -> MomentumReduction:
    reduced = cc.reduce(cc.robots.two_handed_spacecraft(), momentum=MU)
    assert isinstance(reduced, MomentumReduction)
    return reduced


@pytest.fixture(scope="module")
def chart(model: MomentumReduction) -> MomentumChart:
    return MomentumChart(model, slice=product_slice)


JOINTS = joint_coordinates(PSI, ANGLES)
Q0 = np.concatenate([START["p"], START["quat1"], START["quat2"], ANGLES])


# --- at the initial state ---------------------------------------------------------------------


def test_mass_matrix_connection_and_reduced_metric(model: MomentumReduction) -> None:
    """Thesis: (3.3.31), (3.3.37)."""
    assert_close(model.locked_inertia(Q0), M11, 1e-11)
    assert_close(model.connection(Q0), A, 1e-9)
    assert_close(model.mass_matrix(Q0), MHAT, 1e-10)
    assert_close(model.robot.mass_matrix(Q0)[:6, :6], M11, 1e-11)


def test_energy(model: MomentumReduction, chart: MomentumChart) -> None:
    """Thesis: (3.2.13), (3.3.33), (3.4.48)."""
    p = START["phat"]
    assert model.hamiltonian(Q0, p) == pytest.approx(ENERGY, abs=1e-11)
    assert chart.hamiltonian(ZETA, JOINTS, p) == pytest.approx(ENERGY, abs=1e-11)
    carried = model.body_momentum(Q0) @ model.locked_velocity(Q0) / 2
    assert carried == pytest.approx(2.0751921918, abs=1e-10)
    assert p @ S / 2 == pytest.approx(0.5770264993, abs=1e-10)


def test_isotropy_group_and_its_connection(chart: MomentumChart) -> None:
    """Thesis: (3.2.22), (3.2.23), (3.3.39)."""
    assert chart.isotropy.subgroup.name == "SO(2)xR"
    ours = chart.isotropy.algebra
    theirs = np.array([[0, 1, 0, 0, 0, 0], [K, 0, 0, 0, 1, 0]]).T  # E2 and k E1 + E5
    change = np.linalg.lstsq(ours, theirs, rcond=None)[0]
    assert_close(ours @ change, theirs, 1e-13)
    inertia = change.T @ chart.locked_inertia(ZETA, JOINTS) @ change
    assert_close(inertia, I_ISOTROPY, 1e-11)
    connection = np.linalg.solve(change, chart.connection(ZETA, JOINTS))
    connection[:, 4:] = connection[:, 4:] @ to_coordinates(PSI)
    assert_close(connection, A_ISOTROPY, 1e-9)


def test_two_form_in_the_printed_coordinates(
    model: MomentumReduction, chart: MomentumChart
) -> None:
    """Thesis: (3.3.43)."""
    printed = np.zeros((10, 10))
    for i, row in enumerate(UPPER):
        printed[i, i + 1 :] = numbers(row)
    printed -= printed.T
    wide = np.eye(10)
    wide[4:, 4:] = to_coordinates(PSI)
    form = chart.two_form(ZETA, JOINTS)
    assert_close(wide.T @ form @ wide, printed, 1e-10, floor=0.1)
    # The block of the shape is <Pi, B(u, w) + [A u, A w]>: B alone is the global form's.
    turned = np.zeros((6, 6))
    for a, b in np.ndindex(6, 6):
        turned[a, b] = START["pi"] @ _bracket(A[:, a], A[:, b])
    curved = form[4:, 4:] - turned
    assert_close(model.two_form(Q0, START["phat"]), curved, 1e-8)
    assert np.abs(turned).max() > 1e-2


def _bracket(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    linear = np.cross(a[3:], b[:3]) - np.cross(b[3:], a[:3])
    return np.concatenate([linear, np.cross(a[3:], b[3:])])


def test_rates_of_the_chart(chart: MomentumChart) -> None:
    """Thesis: (3.2.17), (3.2.26), (3.3.44)."""
    zetadot, s, pdot = chart.vector_field(ZETA, JOINTS, START["phat"], np.zeros(6))
    assert_close(zetadot, ZETA_RATE, 1e-9)
    assert_close(s, S, 1e-11)
    assert_close(pdot, PHAT_RATE, 1e-11)
    assert_close(np.linalg.solve(euler_map(PSI), s[:3]), PSI_RATE, 1e-9)
    turning = difference_quotient(lambda h: to_coordinates(PSI + h * PSI_RATE), 1e-2)
    pbar_rate = to_coordinates(PSI).T @ pdot + turning.T @ START["phat"]
    assert_close(pbar_rate, PBAR_RATE, 1e-9)
    # eta in the frame of h: y along it, tY about the axis through (0, 0, -k).
    eta = chart.reconstruction(ZETA, JOINTS, START["phat"])
    assert_close(eta, [K * TURN_RATE, Y_RATE, 0, 0, TURN_RATE, 0], 1e-9)


def test_rates_of_the_global_form(model: MomentumReduction) -> None:
    """Thesis: (3.2.17), (5.1.7), (5.1.11), (5.1.12). 000: (1.1), (1.2)."""
    still, free = np.zeros(6), np.zeros(6)
    v, pi_rate, pdot = model.hamilton_poincare(Q0, START["pi"], START["phat"], free, still)
    assert_close(v, [*START["v1"], *S], 1e-11)
    assert_close(pi_rate, PI_RATE, 1e-11)
    assert_close(pdot, PHAT_RATE, 1e-11)
    assert_close(model.vector_field(Q0, START["phat"], free)[1], PHAT_RATE, 1e-11)
    assert_close(model.acceleration(Q0, S, free), S_RATE, 1e-11)


# --- motions ----------------------------------------------------------------------------------

TIMES = (1.0, 5.0)
Motion = dict[float, tuple[np.ndarray, np.ndarray]]
"""Configuration and reduced momentum at each time."""


def _integrate(rate, start: np.ndarray, dense: bool = False):  # type: ignore[no-untyped-def]
    solution = solve_ivp(
        rate,
        (0.0, TIMES[-1]),
        start,
        method="DOP853",
        t_eval=TIMES,
        rtol=1e-12,
        atol=1e-13,
        dense_output=dense,
    )
    assert solution.success, solution.message
    return solution


def _by_hamilton_poincare(model: MomentumReduction, law) -> Motion:  # type: ignore[no-untyped-def]
    nq, still = model.nq, np.zeros(6)

    def rate(t: float, x: np.ndarray) -> np.ndarray:
        q, pi, p = np.split(x, [nq, nq + 6])
        v, pi_rate, pdot = model.hamilton_poincare(q, pi, p, law(t), still)
        return np.concatenate([model.robot.rate(q, v), pi_rate, pdot])

    start = np.concatenate([Q0, START["pi"], START["phat"]])
    found = _integrate(rate, start).y.T
    for x in found:
        # The momentum that was integrated is that of the configuration it went along with.
        assert_close(x[nq : nq + 6], model.body_momentum(x[:nq]), 1e-10)
    return {t: (x[:nq], x[nq + 6 :]) for t, x in zip(TIMES, found, strict=True)}


def _by_acceleration(model: MomentumReduction, law) -> Motion:  # type: ignore[no-untyped-def]
    def rate(t: float, x: np.ndarray) -> np.ndarray:
        q, s = x[: model.nq], x[model.nq :]
        qdot = model.robot.rate(q, model.velocity(q, s))
        return np.concatenate([qdot, model.acceleration(q, s, law(t))])

    motion = {}
    for t, x in zip(TIMES, _integrate(rate, np.concatenate([Q0, S])).y.T, strict=True):
        q, s = x[: model.nq], x[model.nq :]
        motion[t] = (q, model.mass_matrix(q) @ s)
    return motion


def _by_chart(chart: MomentumChart, law) -> Motion:  # type: ignore[no-untyped-def]
    h0, zeta0, joints0 = chart.split(Q0)
    robot, nc, nj = chart.model.robot, chart.nc, chart.nj

    def rate(t: float, x: np.ndarray) -> np.ndarray:
        zeta, joints, p = np.split(x, [nc, nc + nj])
        zetadot, s, pdot = chart.vector_field(zeta, joints, p, law(t))
        v = np.concatenate([np.zeros(6), s])
        q = np.concatenate([Q0[:7], joints])
        return np.concatenate([zetadot, robot.rate(q, v)[7:], pdot])

    start = np.concatenate([zeta0, joints0, START["phat"]])
    solution = _integrate(rate, start, dense=True)

    def motion(t: float) -> tuple[np.ndarray, ...]:
        return tuple(np.split(solution.sol(t), [nc, nc + nj]))

    configurations = chart.reconstruct(motion, (0.0, *TIMES), start=h0)
    assert_close(configurations[0], Q0, 1e-11)
    return {
        t: (q, x[nc + nj :])
        for t, q, x in zip(TIMES, configurations[1:], solution.y.T, strict=True)
    }


FORMS = {
    "global, body momentum as a state": (_by_hamilton_poincare, "model"),
    "global, velocities": (_by_acceleration, "model"),
    "chart, product slice": (_by_chart, "chart"),
}


@pytest.fixture(scope="module", params=[(form, case) for case in TORQUES for form in FORMS])
def motion(
    request: pytest.FixtureRequest, model: MomentumReduction, chart: MomentumChart
) -> tuple[str, Motion]:
    form, case = request.param
    simulate, taken = FORMS[form]
    subject = {"model": model, "chart": chart}[taken]
    return case, simulate(subject, TORQUES[case])


@pytest.mark.by_default(4)
def test_states_are_the_printed_ones(
    motion: tuple[str, Motion], model: MomentumReduction, chart: MomentumChart
) -> None:
    """Thesis: (3.4.48)."""
    case, found = motion
    for t in TIMES:
        state, (q, p) = STATES[case, t], found[t]
        quat1, quat2 = (np.sign(x[3]) * x for x in (q[3:7], q[7:11]))
        assert_close(q[:3], state.p, 1e-9)
        assert_close(quat1, state.quat1, 1e-9)
        assert_close(quat2, state.quat2, 1e-9)
        assert_close(q[11:], state.psi, 1e-9)
        assert_close(p, state.phat, 1e-9)
        assert_close(model.body_momentum(q), state.pi, 1e-9)
        s = np.linalg.solve(model.mass_matrix(q), p)
        assert_close(model.velocity(q, s), [*state.v1, *state.vbar], 1e-9)
        assert model.hamiltonian(q, p) == pytest.approx(state.energy, abs=1e-9)

        euler = Rotation.from_quat(q[7:11]).as_euler("XYZ")
        assert_close(euler, state.euler, 1e-9)
        assert_close(to_coordinates(euler).T @ p, state.pbar, 1e-9)
        h, zeta, _ = chart.split(q)
        assert_close(zeta, state.zeta, 1e-9)
        assert_close(h, np.copysign(1.0, h[6]) * isotropy_element(*state.free), 1e-9)
