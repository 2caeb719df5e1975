"""The people of the tests' world as clients of the API."""

from tests.vault.conftest import alice, bob, charlie, olivia

__all__ = ["alice", "bob", "charlie", "olivia"]
