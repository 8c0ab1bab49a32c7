"""The quaternion of a rotation matrix before it is scaled."""

from __future__ import annotations

import casadi as ca


def along_matrix(rotation: ca.SX) -> ca.SX:
    """Return a quaternion along that of a rotation matrix, which costs no root.

    Parameters
    ----------
    rotation : casadi.SX
        Rotation matrix, shape (3, 3).

    Returns
    -------
    casadi.SX
        Quaternion xyzw of norm 2 to 4 and any sign.
    """
    r = rotation
    xy, xz, yz = r[1, 0] + r[0, 1], r[2, 0] + r[0, 2], r[2, 1] + r[1, 2]
    x, y, z = r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1]
    squares = [
        1 + r[0, 0] - r[1, 1] - r[2, 2],
        1 - r[0, 0] + r[1, 1] - r[2, 2],
        1 - r[0, 0] - r[1, 1] + r[2, 2],
        1 + r[0, 0] + r[1, 1] + r[2, 2],
    ]
    # The columns of 4 q q^T. Each is a multiple of q; the longest one cannot vanish.
    columns = [
        ca.vertcat(squares[0], xy, xz, x),
        ca.vertcat(xy, squares[1], yz, y),
        ca.vertcat(xz, yz, squares[2], z),
        ca.vertcat(x, y, z, squares[3]),
    ]
    largest, column = squares[3], columns[3]
    for square, candidate in zip(squares[:3], columns[:3], strict=True):
        larger = square > largest
        largest = ca.if_else(larger, square, largest)
        column = ca.if_else(larger, candidate, column)
    return column
