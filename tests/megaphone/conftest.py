"""Fixtures that several tests of migration use."""

from tests.launch.conftest import arena as arena
