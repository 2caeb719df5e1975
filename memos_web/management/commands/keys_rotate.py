"""Rotate the master key, or the keys of a tenant, while the server runs. Run it again if it was interrupted."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from governance.keys.services import installation_secrets_store, rotating_key_store
from governance.keys.signing_keys import signing_key
from governance.management.base import DomainCommand, actor_for
from governance.tenants.services import tenant_keys_rotate
from memos_web.config import ConfigError
from memos_web.installation import next_master_key, next_master_key_use
from memos_web.settings.base import CONFIG

COPY = "save the key store now (backup --keys): older copies can no longer be restored"


class Command(DomainCommand):
    help = __doc__ or ""

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--tenant", help="rotate the keys of this tenant (slug), not the master key")
        parser.add_argument(
            "--finish", action="store_true", help="second step, after a restart: remove the former master key"
        )

    def act(self, options: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
        if options["tenant"] and options["finish"]:
            raise CommandError("--finish is for the master key: leave out --tenant")
        try:
            if options["tenant"]:
                return self._tenant(options["tenant"])
            return self._finish() if options["finish"] else self._begin()
        except ConfigError as error:
            raise CommandError(str(error)) from error

    def _tenant(self, slug: str) -> tuple[dict[str, Any], list[str]]:
        retired = tenant_keys_rotate(actor=actor_for(slug))
        return {"retired": retired}, [f"rotated the keys of {slug}: {retired} retired", COPY]

    def _begin(self) -> tuple[dict[str, Any], list[str]]:
        store, following = rotating_key_store(), next_master_key(CONFIG)
        installation_secrets_store()
        signing_key()  # takes over the file of a former version, which only the first master key opens
        if not store.opens_with(following):
            store.rotate_master(following)
        after = "" if next_master_key_use(CONFIG) else "set MEMOS_MASTER_KEY to the new key, "
        return {"rotated": True}, [
            f"the former and the new master key are valid: {after}restart the server, then run keys_rotate --finish",
            COPY,
        ]

    def _finish(self) -> tuple[dict[str, Any], list[str]]:
        dropped = rotating_key_store().drop_masters()
        message = "the former master key is no longer valid" if dropped else "there is no former master key"
        return {"dropped": dropped}, [message]
