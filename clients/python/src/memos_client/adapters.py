"""The two clients that an adapter for a framework calls: one that blocks, one to await."""

from dataclasses import dataclass
from functools import cached_property

from memos_client.aio import AsyncMemos
from memos_client.blocking import Memos


@dataclass
class Clients:
    """The clients that were given to an adapter; one that was not is made from the environment when it is needed."""

    given: Memos | None = None
    given_async: AsyncMemos | None = None

    @cached_property
    def memos(self) -> Memos:
        return self.given or Memos()

    @cached_property
    def async_memos(self) -> AsyncMemos:
        return self.given_async or AsyncMemos()
