"""Exports for all tests of this folder, each written and compiled once."""

import pytest

from tests.export._export import Library
from tests.export._fmu_cases import Workshop
from tests.export._units import Unit


@pytest.fixture(scope="session")
def libraries(tmp_path_factory):
    """Exported laws, compiled when first asked for, by kind."""
    built = {}

    def library(kind: str) -> Library:
        if kind not in built:
            built[kind] = Library.build(kind, tmp_path_factory.mktemp("exported"))
        return built[kind]

    return library


@pytest.fixture(scope="session")
def workshop(tmp_path_factory):
    """Units for co-simulation, written when they are asked for."""
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
