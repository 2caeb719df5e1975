"""The terms of a contract, and the times that follow from them. Pure."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from vault.vocabulary import QuotaPeriod

OFFICIAL_TRUST = 0.9  # of a pack that the subscriber trusts


@dataclass(frozen=True)
class Terms:
    """The terms of a contract. reads: calls per period that may return memories of the pack; None: no limit.

    days: how long a contract is valid; None: until it ends. purposes: for which alone memories may be read; empty:
    any. price: as recorded; nothing is charged. export: memories may leave the subscriber's installation.
    """

    reads: int | None = None
    period: QuotaPeriod = QuotaPeriod.MONTH
    days: int | None = None
    purposes: tuple[str, ...] = ()
    price: str = ""
    export: bool = False

    def valid_to(self, since: datetime) -> datetime | None:
        return since + timedelta(days=self.days) if self.days is not None else None


def terms_json(terms: Terms) -> dict[str, Any]:
    return {**asdict(terms), "period": str(terms.period), "purposes": list(terms.purposes)}


def terms_load(stated: Mapping[str, Any]) -> Terms:
    """Build the terms from their stored form, which was checked before it was stored."""
    return Terms(
        reads=stated["reads"],
        period=QuotaPeriod(stated["period"]),
        days=stated["days"],
        purposes=tuple(stated["purposes"]),
        price=stated["price"],
        export=stated.get("export", False),
    )


def period_start(period: QuotaPeriod, now: datetime) -> datetime:
    """Return the start of the period that contains `now` (UTC)."""
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    if period is QuotaPeriod.DAY:
        return midnight
    return midnight.replace(day=1) if period is QuotaPeriod.MONTH else midnight.replace(month=1, day=1)


def next_month(start: datetime) -> datetime:
    """Return the start of the next month. start: the start of a month."""
    return (start + timedelta(days=32)).replace(day=1)
