"""Docstrings of evaluated methods: sections of the signature are added, written ones stay."""

from concur.codegen import EvaluatedMethods, evaluated

PARAMETERS = """Parameters
----------
q : array_like
    Configuration, shape (nq,).
body : str
    Name of the body."""


class Sample(EvaluatedMethods):
    nq = 2

    @evaluated("(nq)->(4,nq)")
    def described(self, q, body):
        """Say what it is.

        And more.

        Raises
        ------
        ShapeError
            Never.
        """

    @evaluated("(nq)->()")
    def number(self, q):
        """Say what it is."""

    @evaluated("(nq)->(nq),(nq)")
    def two(self, unheard):
        """Say what they are."""

    @evaluated("(nq)->()")
    def complete(self, q):
        """Say what it is.

        Parameters
        ----------
        q : Array
            Its own.

        Returns
        -------
        Array
            Its own.
        """

    @evaluated("(nq)->()")
    def inherited(self, q):
        return q[0]


def test_sections_come_in_the_order_of_numpydoc():
    head, parameters, returns, raises = (
        "Say what it is.\n\nAnd more.",
        PARAMETERS,
        "Returns\n-------\nnumpy.ndarray or casadi.SX\n    The value, shape (4, nq).",
        "Raises\n------\nShapeError\n    Never.",
    )
    assert Sample.described.__doc__ == "\n\n".join([head, parameters, returns, raises])


def test_a_scalar_has_no_shape():
    assert Sample.number.__doc__.endswith("float or casadi.SX\n    The value.")


def test_unknown_arguments_and_several_results_are_left_to_the_author():
    assert Sample.two.__doc__ == "Say what they are."


def test_own_sections_stay():
    assert Sample.complete.__doc__.count("Its own.") == 2
    assert "Configuration" not in Sample.complete.__doc__


def test_an_override_without_docstring_inherits_it():
    assert Sample.inherited.__doc__ is None
