"""Print the mails that wait in the blob store, because there is no mail server."""

from argparse import ArgumentParser
from email import message_from_bytes, policy
from typing import Any

from governance.management.base import DomainCommand, actor_for
from governance.shared_files import shared_mails


class Command(DomainCommand):
    help = __doc__ or ""

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--tenant", required=True, help="slug")

    def act(self, options: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
        found = [
            message_from_bytes(mail, policy=policy.default)
            for mail in shared_mails(actor_for(options["tenant"]).tenant_id)
        ]
        mails = [
            {**{name: str(mail[name]) for name in ("Date", "To", "Subject")}, "Text": mail.get_content()}
            for mail in found
        ]
        lines = [
            "\n".join([*(f"{name}: {mail[name]}" for name in ("Date", "To", "Subject")), "", mail["Text"]])
            for mail in mails
        ]
        return {"mails": mails}, lines or ["no mail waits in the blob store"]
