"""Old names lead to the new ones, with a warning that names them."""

from importlib import import_module

import pytest

MOVED = {
    "concur.certify.PushedMotions": ("concur.plotting.DisturbedMotions", "DisturbedMotions"),
    "concur.certify.Saturation": ("concur.certify._saturation.Saturation", "OperatingCertificate"),
    "concur.certify.pushed_motions": ("concur.plotting.disturbed_motions", "disturbed_motions"),
    "concur.certify.saturation": ("concur.certify._saturation.saturation", "operating_bounds"),
}
"""Old names: where the object is now, and what the warning says to use."""


def found(path):
    module, _, name = path.rpartition(".")
    return getattr(import_module(module), name)


@pytest.mark.parametrize("old", MOVED)
def test_old_name_works_with_a_warning(old):
    new, instead = MOVED[old]
    with pytest.warns(DeprecationWarning, match=instead) as caught:
        value = found(old)
    assert value is found(new)
    assert caught[0].filename == __file__


def test_other_names_are_refused():
    with pytest.raises(AttributeError, match="no_such_name"):
        found("concur.certify.no_such_name")
