"""Tests of the adapters with the real frameworks, against the server that MEMOS_URL and MEMOS_API_KEY name."""

from uuid import uuid4

import pytest


@pytest.fixture
def name() -> str:
    """A name that no other test uses: for a namespace, a session, a persona."""
    return f"t{uuid4().hex[:12]}"
