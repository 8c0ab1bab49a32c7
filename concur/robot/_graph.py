"""The tree as a graph: which body hangs on which, and by which joints (section 3.3.1)."""

from __future__ import annotations

import numpy as np

from concur.robot._tree import Tree


def graph_matrix(tree: Tree) -> np.ndarray:
    """Graph matrix GM of a tree: what each joint connects.

    The first column stands for the inertial frame, B_0 of the thesis; the others, like the
    rows, follow `tree.bodies`. The columns add up to zero, and GM^T GM is the Laplacian of the
    graph: neighbours of each body on the diagonal, -1 where two bodies share a joint
    (Corollary 3.3.1).

    Parameters
    ----------
    tree : Tree
        The robot.

    Returns
    -------
    numpy.ndarray
        Integers (N, N + 1), one row per joint: -1 at the parent, 1 at the body.

    References
    ----------
    Thesis, Corollary 3.3.1, (3.3.29).
    """
    count = len(tree.bodies)
    matrix = np.zeros((count, count + 1), dtype=int)
    for joint in range(count):
        parent = tree.parent_index(joint)
        matrix[joint, 0 if parent is None else parent + 1] = -1
        matrix[joint, joint + 1] = 1
    return matrix


def path_matrix(tree: Tree) -> np.ndarray:
    """Path matrix Ph of a tree: which joints lie between a body and the inertial frame.

    It is the inverse of the graph matrix without its first column (Corollary 3.3.2).

    Parameters
    ----------
    tree : Tree
        The robot.

    Returns
    -------
    numpy.ndarray
        Integers (N, N): entry (i, j) is 1 if joint j lies on the path to body i, else 0.
    """
    inverse = np.linalg.inv(graph_matrix(tree)[:, 1:].astype(float))
    return np.rint(inverse).astype(int)


def branches(tree: Tree) -> tuple[tuple[str, ...], ...]:
    """Branches of a tree: the paths from the base to its extremities.

    An extremity is a body with one neighbour: a one on the diagonal of GM^T GM.

    Parameters
    ----------
    tree : Tree
        The robot.

    Returns
    -------
    tuple of tuple of str
        Names of the bodies of each branch, base first, extremity last, in the order of the
        extremities in `tree.bodies`.
    """
    graph, paths = graph_matrix(tree), path_matrix(tree)
    neighbours = np.diag(graph.T @ graph)[1:]
    names = [body.name for body in tree.bodies]
    return tuple(
        tuple(names[j] for j in np.flatnonzero(paths[i])) for i in np.flatnonzero(neighbours == 1)
    )
