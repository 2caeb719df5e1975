"""Payment of contracts: the port for a provider, and the manual provider, which charges nothing and writes invoices."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from vault.store.rules import Terms


@dataclass(frozen=True)
class Bill:
    """The contents of an invoice. reads: metered from `since` up to `until`; price: as the contract records it."""

    number: str
    publisher: str
    subscriber: str
    pack: str
    price: str
    since: datetime
    until: datetime
    reads: int


class PaymentProvider(Protocol):
    """A provider that decides whether a subscriber may have a contract, and bills it. Called outside any
    transaction."""

    name: str

    def is_entitled(self, terms: Terms) -> bool:
        """Return whether the payment for these terms is made, or may follow by invoice."""

    def invoice(self, bill: Bill) -> str:
        """Return the invoice as Markdown."""


class ManualProvider:
    """A provider that entitles everybody and writes invoices, which the two parties settle between themselves."""

    name = "manual"

    def is_entitled(self, terms: Terms) -> bool:
        return True

    def invoice(self, bill: Bill) -> str:
        return "\n".join(
            [
                f"# Invoice {bill.number}",
                "",
                f"- From: {bill.publisher}",
                f"- To: {bill.subscriber}",
                f"- Pack: {bill.pack}",
                f"- Period: {bill.since:%Y-%m-%d} up to {bill.until:%Y-%m-%d}",
                f"- Reads: {bill.reads}",
                f"- Price: {bill.price or 'free'}",
                "",
                "Payment is settled between the two parties.",
                "",
            ]
        )


def payment_provider() -> PaymentProvider:
    """Return the payment provider of this installation."""
    return ManualProvider()
