"""The people of the tests' world as clients of the API."""

from tests.vault.conftest import ada, alice, bob, charlie, olivia

__all__ = ["ada", "alice", "bob", "charlie", "olivia"]
