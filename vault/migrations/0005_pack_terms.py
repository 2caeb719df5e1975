"""Terms of packs on export and return, and the memories that an organisation was shown of a pack it tried."""

from django.db import migrations, models

from governance.tables import tenant_model
from governance.tenancy_sql import ADD, CURRENT_TENANT, router_access, router_function, run, tenant_table

# Asked at each read, so that a revocation holds from its commit on; the subscription's state follows by the outbox.
REVOKED = f"""
  SELECT EXISTS (SELECT FROM public.vault_contract AS contract
    WHERE contract.tenant_id = publisher AND contract.subscription_id = subscription
      AND contract.subscriber_id = {CURRENT_TENANT} AND contract.state = 'revoked')
"""
# Whether the last of the publisher's contracts for these subscriptions of the caller's tenant keeps it from another.
BARRED = f"""
  SELECT coalesce((
    SELECT contract.state = 'revoked' AND NOT contract.may_return FROM public.vault_contract AS contract
    WHERE contract.tenant_id = publisher AND contract.subscriber_id = {CURRENT_TENANT}
      AND contract.subscription_id = ANY (subscriptions)
    ORDER BY contract.id DESC LIMIT 1), false)
"""


def flag(model: str, name: str) -> migrations.AddField:
    return migrations.AddField(model, name, models.BooleanField(default=False, db_default=False))


class Migration(migrations.Migration):
    dependencies = [("vault", "0004_table_rewrite")]

    operations = [
        flag("subscription", "may_export"),
        flag("contract", "may_export"),
        flag("contract", "may_return"),
        tenant_model(
            "PackTrial",
            {
                "constraints": [
                    models.UniqueConstraint(
                        fields=["tenant", "publication_id", "key"], name="pack_trial_is_counted_once"
                    )
                ]
            },
            publication_id=models.UUIDField(),
            key=models.UUIDField(),
        ),
        run(
            tenant_table("vault_packtrial", ADD),
            router_access("vault_contract", "id, tenant_id, subscription_id, subscriber_id, state, may_return"),
            router_function("vault_contract_is_revoked(publisher uuid, subscription uuid)", "boolean", REVOKED),
            router_function("vault_contract_bars(publisher uuid, subscriptions uuid[])", "boolean", BARRED),
        ),
    ]
