"""Rotate the master key, or a tenant's keys, while the product serves. Cut off, it can be run again."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from governance.keys.services import installation_secrets_store, rotating_key_store
from governance.keys.signing import signing_key
from governance.management.base import DomainCommand, actor_for
from governance.tenants.services import tenant_keys_rotate
from memos_web.config import ConfigError
from memos_web.installation import next_master_key, next_master_key_use
from memos_web.settings.base import CONFIG

COPY = "copy the key store now (backup --keys): copies from before are refused"


class Command(DomainCommand):
    help = __doc__ or ""

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--tenant", help="the keys of this tenant, instead of the master key")
        parser.add_argument("--finish", action="store_true", help="after a restart: drop the former master key")

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
        after = "" if next_master_key_use(CONFIG) else "set MEMOS_MASTER_KEY to the next one, "
        return {"rotated": True}, [f"both master keys open the key store: {after}restart, then run --finish", COPY]

    def _finish(self) -> tuple[dict[str, Any], list[str]]:
        dropped = rotating_key_store().drop_masters()
        told = "the former master key opens the key store no more" if dropped else "there is no former master key"
        return {"dropped": dropped}, [told]
