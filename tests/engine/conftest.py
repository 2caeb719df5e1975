"""The people of the tests' world, as the tests of the vault have them."""

from tests.vault.conftest import alice, olivia

__all__ = ["alice", "olivia"]
