"""Units for co-simulation, written once for all tests of this folder."""

import pytest

from tests.codegen._fmu_cases import Workshop
from tests.codegen._units import Unit


@pytest.fixture(scope="session")
def workshop(tmp_path_factory):
    """Write units when they are asked for."""
    return Workshop(tmp_path_factory.mktemp("workshop"))


@pytest.fixture
def units(workshop):
    """Load units, and free them behind the test."""
    loaded = []

    def load(*key):
        loaded.append(Unit(workshop.path(*key)))
        return loaded[-1]

    yield load
    for unit in loaded:
        unit.close()
