"""The built library, for the tests of its reference and of its scores."""

import pytest
from built_library import built_library


@pytest.fixture(scope="session")
def library():
    return built_library()
