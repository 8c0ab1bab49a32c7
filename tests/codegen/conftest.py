"""Exported laws, compiled once for all tests."""

import pytest

from tests.codegen._export import Library


@pytest.fixture(scope="session")
def libraries(tmp_path_factory):
    """Exported and compiled when first asked for, by kind."""
    built = {}

    def library(kind: str) -> Library:
        if kind not in built:
            built[kind] = Library.build(kind, tmp_path_factory.mktemp("exported"))
        return built[kind]

    return library
