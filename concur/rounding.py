"""Numbers as text that rounds towards the safe side: ends of intervals and proved bounds.

A bound that is rounded to the nearest digit may claim more than was shown: 99.96 % as 100 %. Lower
bounds round down, upper bounds up, and shares of one keep the digits that separate them from it.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal

_REST = 2  # digits of the distance from a whole
_WIDTH = 2  # digits of the width of an interval


def rounded_down(value: float, digits: int = 3) -> str:
    """Write a lower bound: the largest number of some digits that is not above it.

    Parameters
    ----------
    value : float
        The bound.
    digits : int
        Significant digits.

    Returns
    -------
    str
        The text, in the form of ``f"{value:.3g}"``.

    Examples
    --------
    >>> from concur.rounding import rounded_down
    >>> rounded_down(0.99996), rounded_down(-1.2341), rounded_down(0.95)
    ('0.999', '-1.24', '0.95')
    """
    return _rounded(value, digits, ROUND_FLOOR)


def rounded_up(value: float, digits: int = 3) -> str:
    """Write an upper bound: the smallest number of some digits that is not below it.

    Parameters
    ----------
    value : float
        The bound.
    digits : int
        Significant digits.

    Returns
    -------
    str
        The text, in the form of ``f"{value:.3g}"``.

    Examples
    --------
    >>> from concur.rounding import rounded_up
    >>> rounded_up(2.3412), rounded_up(-1.2349), rounded_up(0.95)
    ('2.35', '-1.23', '0.95')
    """
    return _rounded(value, digits, ROUND_CEILING)


def percent(share: float, sign: str = "") -> str:
    """Write a share in percent, to the nearest of three digits; "100 %" is a whole, "0 %" nothing.

    Parameters
    ----------
    share : float
        The share, 1 for a whole.
    sign : str
        "+" for a sign before positive numbers.

    Returns
    -------
    str
        The text; near a whole with two digits of the distance from it.

    Examples
    --------
    >>> from concur.rounding import percent
    >>> percent(0.74), percent(7999 / 8000), percent(1.0), percent(0.5, "+")
    ('74 %', '99.988 %', '100 %', '+50 %')
    """
    return _percent(share, ROUND_HALF_EVEN, _places(share), sign)


def percent_down(share: float, sign: str = "") -> str:
    """Write a lower bound of a share in percent, rounded down.

    Parameters
    ----------
    share : float
        The bound, 1 for a whole.
    sign : str
        "+" for a sign before positive numbers.

    Returns
    -------
    str
        The text, with the digits of `percent`.

    Examples
    --------
    >>> from concur.rounding import percent_down
    >>> percent_down(0.9996256)
    '99.962 %'
    """
    return _percent(share, ROUND_FLOOR, _places(share), sign)


def percent_up(share: float, sign: str = "") -> str:
    """Write an upper bound of a share in percent, rounded up.

    Parameters
    ----------
    share : float
        The bound, 1 for a whole.
    sign : str
        "+" for a sign before positive numbers.

    Returns
    -------
    str
        The text, with the digits of `percent`.

    Examples
    --------
    >>> from concur.rounding import percent_up
    >>> percent_up(0.0003744), percent_up(0.99996)
    ('0.0375 %', '99.996 %')
    """
    return _percent(share, ROUND_CEILING, _places(share), sign)


def percent_range(low: float, high: float, sign: str = "") -> tuple[str, str]:
    """Write both ends of an interval of shares in percent, rounded outwards.

    Parameters
    ----------
    low, high : float
        The ends, 1 for a whole.
    sign : str
        "+" for a sign before positive numbers.

    Returns
    -------
    tuple of str
        Both texts, with the digits of `percent`, and with two digits of the width at least.

    Examples
    --------
    >>> from concur.rounding import percent_range
    >>> percent_range(0.9995390, 1.0), percent_range(0.500104, 0.500196)
    (('99.953 %', '100 %'), ('50.0104 %', '50.0196 %'))
    """
    width = _shifted(high - low)
    least = _WIDTH - 1 - width.adjusted() if width > 0 else 0
    return (
        _percent(low, ROUND_FLOOR, max(least, _places(low)), sign),
        _percent(high, ROUND_CEILING, max(least, _places(high)), sign),
    )


def _rounded(value: float, digits: int, rounding: str) -> str:
    value = float(value)
    if not math.isfinite(value) or value == 0.0:
        return f"{value:.{digits}g}"
    # The shortest text of a float: 0.95 is no 0.9499999.
    exact = Decimal(repr(value))
    place = Decimal(1).scaleb(exact.adjusted() - digits + 1)
    return f"{float(exact.quantize(place, rounding)):.{digits}g}"


def _shifted(share: float) -> Decimal:
    """Share in percent, without a rounding."""
    return Decimal(repr(float(share) + 0.0)).scaleb(2)


def _places(share: float) -> int:
    """Decimal places for three digits of a share in percent, and two of its distance from 100."""
    if not math.isfinite(share):
        return 0
    number = abs(_shifted(share))
    rest = abs(100 - number)
    own = 2 - number.adjusted() if number else 0
    return max(0, own, _REST - 1 - rest.adjusted() if rest else 0)


def _percent(share: float, rounding: str, places: int, sign: str) -> str:
    if not math.isfinite(share):
        return f"{share:{sign}g} %"
    number = _shifted(share).quantize(Decimal(1).scaleb(-places), rounding)
    text = f"{number:{sign}f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return f"{text} %"
