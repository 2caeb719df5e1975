"""Checks of PostgreSQL's catalogue: the separation of tenants against the list of intended rights."""

from collections.abc import Iterator
from typing import Any

import psycopg

TENANT = "(NULLIF(current_setting('app.tenant'::text, true), ''::text))::uuid"
USER = "(NULLIF(current_setting('app.user'::text, true), ''::text))::uuid"
OF_TENANT = f"(tenant_id = {TENANT})"
MEMBERS = "(EXISTS ( SELECT 1 FROM governance_member m WHERE (m.user_id = governance_user.id)))"

# Not every table has a tenant's rows, and these two have them without a tenant_id.
OF_NOBODY = frozenset(
    {
        # django-allauth makes these, and its second factors need them to be there; the product has no right to them.
        "account_emailaddress",
        "account_emailconfirmation",
        "socialaccount_socialaccount",
        "socialaccount_socialapp",
        "socialaccount_socialtoken",
        # of the installation: an id and times
        "governance_heartbeat",
        "governance_keystorenote",
        "auth_group",
        "auth_group_permissions",
        "auth_permission",
        # the installation's own periodic tasks
        # the admin's own history, to which the product has no right: the audit log has it
        "django_admin_log",
        "django_celery_beat_clockedschedule",
        "django_celery_beat_crontabschedule",
        "django_celery_beat_intervalschedule",
        "django_celery_beat_periodictask",
        "django_celery_beat_periodictasks",
        "django_celery_beat_solarschedule",
        "django_content_type",
        "django_migrations",
        "django_session",
        # guardian's own two tables, which nobody may touch: grants have tables of their own
        "guardian_groupobjectpermission",
        "guardian_userobjectpermission",
    }
)
# A person may be in several tenants: these rows are theirs, and seen as that person alone (`app.user`).
OF_PERSONS = frozenset({"governance_browsersession", "governance_passwordreset", "mfa_authenticator"})
OF_PERSON = f"(user_id = {USER})"
OWN_POLICIES = {
    "governance_tenant": (f"(id = {TENANT})", f"(id = {TENANT})"),
    "governance_user": (f"((id = {USER}) OR {MEMBERS})", f"(id = {USER})"),
}

READ, ADD, CHANGE, ALL = "SELECT", "INSERT SELECT", "INSERT SELECT UPDATE", "DELETE INSERT SELECT UPDATE"
APP_RIGHTS = {
    "auth_permission": READ,
    "django_celery_beat_clockedschedule": READ,
    "django_celery_beat_crontabschedule": CHANGE,
    "django_celery_beat_intervalschedule": CHANGE,
    "django_celery_beat_periodictask": CHANGE,
    "django_celery_beat_periodictasks": CHANGE,
    "django_celery_beat_solarschedule": READ,
    "django_content_type": READ,
    "django_migrations": READ,
    "django_session": ALL,
    "governance_apikey": CHANGE,
    "governance_apikeyday": CHANGE,
    "governance_apikeyrequest": "DELETE INSERT SELECT",
    "governance_auditentry": ADD,
    "governance_browsersession": CHANGE,
    "governance_auditcheckpoint": ADD,
    "governance_auditseal": ADD,
    "governance_auditsink": CHANGE,
    "vault_cubeorigin": READ,
    "vault_cubesource": ALL,
    "governance_auditunsealed": "DELETE INSERT SELECT",
    "governance_datasubject": ALL,
    "governance_heartbeat": CHANGE,
    "governance_idempotencykey": "DELETE INSERT SELECT",
    "governance_invitation": CHANGE,
    "governance_job": CHANGE,
    "governance_keystorenote": ADD,
    "governance_member": CHANGE,
    "governance_oidcidentity": "DELETE INSERT SELECT",
    "governance_oidcprovider": ALL,
    "governance_outboxevent": ALL,
    "governance_passwordreset": CHANGE,
    "governance_persona": CHANGE,
    "governance_policy": CHANGE,
    "governance_policyversion": ADD,
    "governance_role": ADD,
    "governance_schedule": ALL,
    "governance_webhook": CHANGE,
    "governance_webhookdelivery": ALL,
    "governance_signinlink": CHANGE,
    "governance_tenant": CHANGE,
    "governance_usage": CHANGE,
    "governance_user": ADD,
    "mfa_authenticator": ALL,
    "vault_conversation": CHANGE,
    "vault_cube": ALL,
    "vault_cubelink": ALL,
    "vault_cubeuse": ALL,
    "vault_cubeversion": ALL,
    "vault_embedding": ALL,
    "vault_embeddingmodel": ALL,
    "vault_hold": ADD,
    "vault_holdcube": ADD,
    "vault_holdreleaseapproval": ADD,
    "vault_namespace": CHANGE,
    "vault_namespacesize": ALL,
    "vault_archivedposting": ALL,
    "vault_posting": ALL,
    "vault_turn": ALL,
    "vault_piifinding": ALL,
    "vault_review": ALL,
    "governance_accessgroup": ADD,
    "governance_grantcondition": ADD,
    "governance_pastgrant": ADD,
    "governance_personagrant": "DELETE INSERT SELECT",
    "governance_roletemplate": ALL,
    "vault_cubegrant": "DELETE INSERT SELECT",
    "vault_namespacegrant": "DELETE INSERT SELECT",
    "vault_summary": ALL,
    "vault_formproposal": ALL,
    "vault_memoryform": ALL,
    "vault_pipeline": ALL,
    "vault_predictorcount": ALL,
    "vault_workingset": ALL,
    "vault_savedview": "DELETE INSERT SELECT",
    "vault_dailycount": "DELETE INSERT SELECT",
    "vault_actionitem": "INSERT SELECT",
    "vault_pastdeletion": ADD,
    "vault_statetransition": ADD,
    "vault_layerentry": CHANGE,
    "vault_layersettings": CHANGE,
    "vault_modelendpoint": ALL,
    "vault_mount": "DELETE INSERT SELECT",
    "vault_pack": ALL,
    "vault_packversion": ALL,
    "vault_publication": CHANGE,
    "vault_listing": ALL,
    "vault_subscription": CHANGE,
    "vault_packmemory": ALL,
    "vault_contract": CHANGE,
    "vault_packread": ADD,
    "vault_packtrial": ADD,
    "vault_packrating": ALL,
    "vault_syncpeer": ALL,
    "vault_synclink": ALL,
    "vault_upload": "DELETE INSERT SELECT",
    "vault_packreport": CHANGE,
    "vault_packproposal": CHANGE,
    "vault_page": CHANGE,
    "vault_segment": CHANGE,
    "vault_stream": CHANGE,
    "vault_trait": CHANGE,
    "vault_traitevidence": CHANGE,
}
OTHER_RIGHTS = {
    ("memos_auditor", "governance_auditentry", READ),
    ("memos_router", "governance_apikeyday", "DELETE"),
    ("memos_router", "governance_apikeyrequest", "DELETE"),
    ("memos_router", "governance_browsersession", "DELETE"),
    ("memos_auditor", "governance_auditcheckpoint", READ),
    ("memos_auditor", "governance_auditseal", READ),
    ("memos_router", "governance_idempotencykey", "DELETE"),
    ("memos_router", "governance_outboxevent", "DELETE"),
    ("memos_router", "governance_passwordreset", "DELETE"),
}
COLUMN_RIGHTS = {
    ("memos_app", "governance_user", "UPDATE", "is_operator password password_tenant"),
    ("memos_app", "vault_packread", "UPDATE", "is_sent"),
    ("memos_router", "governance_browsersession", "SELECT", "expires_at"),
    ("memos_router", "governance_invitation", "SELECT", "id mailed_token_hash tenant_id token_hash"),
    ("memos_router", "governance_member", "SELECT", "id removed_at tenant_id user_id"),
    ("memos_router", "governance_passwordreset", "SELECT", "expires_at id token_hash user_id"),
    ("memos_router", "governance_apikey", "SELECT", "id prefix previous_hash secret_hash tenant_id"),
    ("memos_router", "governance_apikeyday", "SELECT", "day"),
    ("memos_router", "governance_apikeyrequest", "SELECT", "at"),
    ("memos_router", "governance_auditcheckpoint", "SELECT", "created_at seq tenant_id"),
    ("memos_router", "governance_auditseal", "SELECT", "created_at seq tenant_id"),
    ("memos_router", "governance_auditsink", "SELECT", "delivered_seq id next_at removed_at tenant_id"),
    ("memos_router", "governance_auditunsealed", "SELECT", "created_at id tenant_id"),
    ("memos_router", "governance_idempotencykey", "SELECT", "created_at"),
    (
        "memos_router",
        "governance_outboxevent",
        "SELECT",
        "attempts available_at created_at done_at id lease parked_at tenant_id topic",
    ),
    ("memos_router", "governance_outboxevent", "UPDATE", "attempts available_at last_error lease parked_at"),
    ("memos_router", "governance_schedule", "SELECT", "enabled id next_run_at tenant_id"),
    ("memos_router", "governance_signinlink", "SELECT", "id tenant_id token_hash"),
    ("memos_router", "governance_tenant", "SELECT", "erased_at id slug"),
    ("memos_router", "governance_user", "SELECT", "email id"),
    ("memos_router", "vault_embeddingmodel", "SELECT", "model tenant_id"),
    ("memos_router", "vault_packreport", "SELECT", "decided_at id tenant_id"),
    ("memos_router", "vault_contract", "SELECT", "id may_return state subscriber_id subscription_id tenant_id"),
    ("memos_router", "governance_job", "SELECT", "kept_until"),
    ("memos_router", "governance_job", "UPDATE", "kept_until sealed_request"),
    ("memos_app", "governance_personagrant", "UPDATE", "expires_at"),
    ("memos_app", "vault_cubegrant", "UPDATE", "expires_at"),
    ("memos_app", "vault_namespacegrant", "UPDATE", "expires_at"),
}
# Policies for roles other than the one that serves; each sees no more columns than COLUMN_RIGHTS gives it.
OTHER_POLICIES = {
    # The one policy that shows rows of other tenants: the catalogue, of what is offered to the tenant that reads.
    (
        "vault_listing",
        "memos_app",
        "SELECT",
        f'(is_offered AND (( SELECT {TENANT} AS "nullif") IS NOT NULL) AND '
        f"(((visibility)::text = 'installation'::text) OR (( SELECT {TENANT} AS \"nullif\") = ANY (tenants))))",
    ),
    ("governance_browsersession", "memos_router", "DELETE", "true"),
    ("governance_browsersession", "memos_router", "SELECT", "true"),
    ("governance_invitation", "memos_router", "SELECT", "true"),
    ("governance_member", "memos_router", "SELECT", "true"),
    ("governance_passwordreset", "memos_router", "DELETE", "true"),
    ("governance_passwordreset", "memos_router", "SELECT", "true"),
    ("governance_apikey", "memos_router", "SELECT", "true"),
    *(
        (table, "memos_router", what, "true")
        for table in ("governance_apikeyday", "governance_apikeyrequest")
        for what in ("DELETE", "SELECT")
    ),
    ("governance_auditentry", "memos_auditor", "SELECT", "true"),
    ("governance_auditcheckpoint", "memos_auditor", "SELECT", "true"),
    ("governance_auditcheckpoint", "memos_router", "SELECT", "true"),
    ("governance_auditseal", "memos_auditor", "SELECT", "true"),
    ("governance_auditseal", "memos_router", "SELECT", "true"),
    ("governance_auditsink", "memos_router", "SELECT", "true"),
    ("governance_auditunsealed", "memos_router", "SELECT", "true"),
    ("governance_idempotencykey", "memos_router", "DELETE", "true"),
    ("governance_idempotencykey", "memos_router", "SELECT", "true"),
    ("governance_outboxevent", "memos_router", "DELETE", "(done_at IS NOT NULL)"),
    ("governance_outboxevent", "memos_router", "SELECT", "true"),
    ("governance_outboxevent", "memos_router", "UPDATE", "true"),
    ("governance_schedule", "memos_router", "SELECT", "true"),
    ("governance_signinlink", "memos_router", "SELECT", "true"),
    ("governance_tenant", "memos_router", "SELECT", "true"),
    ("governance_user", "memos_router", "SELECT", "true"),
    ("vault_embeddingmodel", "memos_router", "SELECT", "true"),
    ("vault_packreport", "memos_router", "SELECT", "true"),
    ("vault_contract", "memos_router", "SELECT", "true"),
    ("governance_job", "memos_router", "SELECT", "true"),
    ("governance_job", "memos_router", "UPDATE", "true"),
}
DEFINER_FUNCTIONS = frozenset(
    {
        "governance_accounts_tidy",
        "governance_invitation_by_hash",
        "governance_audit_checkpoints_due",
        "governance_audit_health",
        "governance_audit_sinks_due",
        "governance_audit_unsealed",
        "governance_key_by_hash",
        "governance_key_by_prefix",
        "governance_key_requests_tidy",
        "governance_link_by_hash",
        "governance_memberships",
        "governance_outbox_claim",
        "governance_jobs_tidy",
        "governance_outbox_health",
        "governance_outbox_park_unrouted",
        "governance_outbox_topics",
        "governance_reset_by_hash",
        "governance_schedules_due",
        "governance_tenant_by_slug",
        "governance_tenant_ids",
        "governance_tidy",
        "governance_user_by_email",
        "vault_pack_reports",
        "vault_contract_bars",
        "vault_contract_is_revoked",
        "vault_rewrite_begin",
        "vault_rewrite_cancel",
        "vault_rewrite_fill",
        "vault_rewrite_finish",
        "vault_rewrite_follow",
        "vault_rewrite_note",
        "vault_rewrite_tenants",
        "vault_rewrite_validate",
        "vault_tenant_erase",
        "vault_tenants_to_reembed",
    }
)
# Policies bind the owner of the tables as well: one deletes the rows of the transaction's tenant alone, the others copy
# rows tenant by tenant into a table that is as well protected, and return none.
OWNER_FUNCTIONS = frozenset(
    {"vault_tenant_erase"}
    | {f"vault_rewrite_{step}" for step in ("begin", "cancel", "fill", "finish", "follow", "note", "validate")}
)
# A unique constraint without the tenant tells whether a foreign row has the value: right for random ones alone.
RANDOM_VALUES = frozenset(
    {
        ("governance_apikey", "prefix"),
        ("governance_apikey", "previous_hash"),
        ("governance_apikey", "secret_hash"),
        ("governance_invitation", "mailed_token_hash"),
        ("governance_invitation", "token_hash"),
        ("governance_passwordreset", "token_hash"),
        ("governance_signinlink", "token_hash"),
        ("governance_tenant", "slug"),
    }
)
TRIGGERS = {
    ("governance_auditcheckpoint", "governance_auditcheckpoint_rows_stay"),
    ("governance_auditcheckpoint", "governance_auditcheckpoint_table_stays"),
    ("governance_auditentry", "governance_auditentry_is_announced"),
    ("governance_auditentry", "governance_auditentry_is_queued"),
    ("governance_auditentry", "governance_auditentry_rows_stay"),
    ("governance_auditseal", "governance_auditseal_rows_stay"),
    ("governance_auditseal", "governance_auditseal_table_stays"),
    ("governance_auditentry", "governance_auditentry_table_stays"),
    ("governance_keystorenote", "governance_keystorenote_rows_stay"),
    ("governance_keystorenote", "governance_keystorenote_table_stays"),
    ("governance_policyversion", "governance_policyversion_rows_stay"),
    ("governance_policyversion", "governance_policyversion_table_stays"),
    ("vault_cubeversion", "version_is_immutable"),
    ("governance_datasubject", "subject_stays_while_held"),
    ("governance_personagrant", "governance_personagrant_is_remembered"),
    ("vault_cubegrant", "vault_cubegrant_is_remembered"),
    ("vault_namespacegrant", "vault_namespacegrant_is_remembered"),
    ("vault_cube", "cube_stays_while_held"),
    ("vault_cube", "deletion_ends"),
    ("vault_holdcube", "holds_suspend_expiry"),
    ("vault_holdreleaseapproval", "release_resumes_expiry"),
    ("vault_cube", "sizes_follow_a_change"),
    ("vault_cube", "sizes_follow_a_loss"),
    ("vault_cubeversion", "version_stays_while_held"),
    ("vault_memoryform", "form_stays_while_held"),
    ("vault_cubeversion", "versions_come_under_holds"),
    ("vault_hold", "hold_is_made_alone"),
    ("vault_page", "page_leaves_its_segment"),
    ("vault_holdreleaseapproval", "approval_is_its_members_own"),
    *(
        (table, f"{table}_{what}_stay{'s' if what == 'table' else ''}")
        for table in ("vault_hold", "vault_holdcube", "vault_holdreleaseapproval")
        for what in ("rows", "table")
    ),
}
ROLES = {  # (can log in, superuser, bypasses row-level security, makes roles, makes databases, replicates)
    "memos_app": (True, False, False, False, False, False),
    "memos_auditor": (False, False, False, False, False, False),
    "memos_backup": (True, False, True, False, False, False),
    "memos_maintainer": (False, False, False, False, False, False),
    "memos_owner": (True, False, False, False, False, False),
    "memos_router": (False, False, False, False, False, False),
}
MEMBERSHIPS = {  # (role, member, inherits its rights)
    ("memos_router", "memos_owner", False),
    ("memos_maintainer", "memos_app", False),
    ("pg_checkpoint", "memos_maintainer", True),
    ("pg_read_all_data", "memos_backup", True),
}
HERE = "relnamespace = 'public'::regnamespace"


def findings(connection: psycopg.Connection[Any]) -> list[str]:
    """Return the differences between the database and the intended rights. `connection`: a superuser's."""
    checks = (
        _tables,
        _policies,
        _references,
        _unique,
        _triggers,
        _roles,
        _rights,
        _columns,
        _functions,
        _find_other_ways,
    )
    return [finding for check in checks for finding in check(connection)]


DESCRIPTION = f"""
SELECT 'class', c.relname::text, concat_ws(' ', relkind, relowner::regrole, reloptions::text, relrowsecurity,
    relforcerowsecurity, relreplident, relpersistence, reltablespace,
    (SELECT string_agg(entry::text, ',' ORDER BY entry::text) FROM unnest(relacl) AS entry))
  FROM pg_class c WHERE {HERE}
UNION ALL SELECT 'column', c.relname, concat_ws(' ', row_number() OVER (PARTITION BY c.oid ORDER BY attnum), attname,
    format_type(atttypid, atttypmod), attnotnull, attstorage, attcompression, attstattarget, attidentity, attgenerated,
    attoptions::text, attacl::text, pg_get_expr(adbin, adrelid))
  FROM pg_attribute JOIN pg_class c ON c.oid = attrelid
    LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
  WHERE {HERE} AND attnum > 0 AND NOT attisdropped
UNION ALL SELECT 'constraint', c.relname, concat_ws(' ', conname, pg_get_constraintdef(k.oid), convalidated,
    condeferrable, condeferred, connoinherit, conislocal)
  FROM pg_constraint k JOIN pg_class c ON c.oid = conrelid WHERE {HERE}
UNION ALL SELECT 'index', c.relname, concat_ws(' ', replace(replace(replace(replace(replace(
    pg_get_indexdef(indexrelid), '::character varying', ''), '::text[]', ''), '::text', ''), '(', ''), ')', ''),
    indisvalid, indisready, indisclustered, indisreplident, indisprimary, indimmediate)
  FROM pg_index JOIN pg_class c ON c.oid = indrelid WHERE {HERE}
UNION ALL SELECT 'trigger', c.relname, concat_ws(' ', pg_get_triggerdef(t.oid), tgenabled)
  FROM pg_trigger t JOIN pg_class c ON c.oid = tgrelid WHERE NOT tgisinternal AND {HERE}
UNION ALL SELECT 'policy', tablename, concat_ws(' ', policyname, permissive, roles, cmd, qual, with_check)
  FROM pg_policies WHERE schemaname = 'public'
UNION ALL SELECT 'view', viewname, definition FROM pg_views WHERE schemaname = 'public'
UNION ALL SELECT 'comment', c.relname, concat_ws(' ', objsubid, description)
  FROM pg_description JOIN pg_class c ON c.oid = objoid AND classoid = 'pg_class'::regclass WHERE {HERE}
UNION ALL SELECT 'copy', relname, '' FROM pg_class WHERE relnamespace = 'maintenance'::regnamespace
"""


def description(connection: psycopg.Connection[Any]) -> set[tuple[str, str, str]]:
    """All that the catalogue says of the schema's tables, without object ids. `connection`: a superuser's."""
    return set(connection.execute(DESCRIPTION).fetchall())


def tenant_tables(connection: psycopg.Connection[Any]) -> set[str]:
    rows = connection.execute(
        f"SELECT relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id' "
        f"WHERE c.{HERE} AND relkind IN ('r', 'p')"
    )
    return {name for (name,) in rows} | set(OWN_POLICIES)


def _tables(connection: psycopg.Connection[Any]) -> Iterator[str]:
    guarded = tenant_tables(connection)
    rows = connection.execute(
        f"SELECT relname, relkind, relrowsecurity, relforcerowsecurity, relowner::regrole::text, "
        f"relkind = 'v' AND coalesce(reloptions @> '{{security_invoker=true}}', false) FROM pg_class "
        f"WHERE {HERE} AND relkind NOT IN ('i', 'I', 'S', 'c')"
    )
    for name, kind, enabled, forced, owner, of_its_reader in rows:
        if of_its_reader:
            pass  # policies bind whoever reads the view as they bind them below
        elif kind not in {b"r", b"p", "r", "p"}:
            yield f"{name}: a view or a foreign table is bound by its owner's rights, not by policies"
        elif name not in guarded | OF_NOBODY | OF_PERSONS:
            yield f"{name}: has no tenant, and is not on the list of tables that need none"
        elif name in guarded | OF_PERSONS and not (enabled and forced):
            yield f"{name}: row-level security is not enabled and forced"
        if owner != "memos_owner":
            yield f"{name}: belongs to {owner}"


def _policies(connection: psycopg.Connection[Any]) -> Iterator[str]:
    rows = connection.execute(
        "SELECT tablename, permissive, roles::text[], cmd, qual, with_check FROM pg_policies"
    ).fetchall()
    main: dict[str, tuple[str, str]] = {}
    others = set()
    for table, permissive, roles, command, qual, check in rows:
        if roles == ["public"] and command == "ALL" and permissive == "PERMISSIVE" and table not in main:
            main[table] = (_one_line(qual), _one_line(check))
        else:
            others.add((table, " ".join(roles), command, _one_line(qual)))
    for table in sorted(tenant_tables(connection) | OF_PERSONS):
        of_most = (OF_PERSON, OF_PERSON) if table in OF_PERSONS else (OF_TENANT, OF_TENANT)
        expected = OWN_POLICIES.get(table, of_most)
        if main.get(table) != expected:
            yield f"{table}: its policy is {main.get(table)}"
    yield from _difference("policy", others, OTHER_POLICIES)


def _references(connection: psycopg.Connection[Any]) -> Iterator[str]:
    guarded = tenant_tables(connection) - set(OWN_POLICIES)
    enforced = " AND conenforced" if connection.info.server_version >= 180_000 else ""
    rows = connection.execute(
        "SELECT conname, a.relname, b.relname, "
        "ARRAY(SELECT attname::text FROM pg_attribute WHERE attrelid = conrelid AND attnum = ANY (conkey)), "
        "ARRAY(SELECT attname::text FROM pg_attribute WHERE attrelid = confrelid AND attnum = ANY (confkey)), "
        f"convalidated{enforced} FROM pg_constraint "
        "JOIN pg_class a ON a.oid = conrelid JOIN pg_class b ON b.oid = confrelid WHERE contype = 'f'"
    )
    for name, source, target, columns, keys, valid in rows:
        if target in guarded and not (source in guarded and "tenant_id" in columns and "tenant_id" in keys):
            yield f"{source}: the foreign key {name} can leave the tenant"
        if not valid:
            yield f"{source}: the foreign key {name} is not enforced"


def _unique(connection: psycopg.Connection[Any]) -> Iterator[str]:
    rows = connection.execute(
        "SELECT c.relname, i.relname, indisprimary, ARRAY(SELECT attname::text FROM pg_attribute "
        "WHERE attrelid = indrelid AND attnum = ANY (indkey)) "
        f"FROM pg_index JOIN pg_class c ON c.oid = indrelid JOIN pg_class i ON i.oid = indexrelid "
        f"WHERE indisunique AND c.{HERE}"
    )
    guarded = tenant_tables(connection) - {"governance_user"}
    for table, name, primary, columns in rows:
        by_id = primary and columns == ["id"]
        random = len(columns) == 1 and (table, columns[0]) in RANDOM_VALUES
        if table in guarded and "tenant_id" not in columns and not by_id and not random:
            yield f"{table}: {name} is unique across tenants"


def _triggers(connection: psycopg.Connection[Any]) -> Iterator[str]:
    rows = connection.execute(
        "SELECT relname, tgname FROM pg_trigger JOIN pg_class c ON c.oid = tgrelid "
        f"WHERE NOT tgisinternal AND tgenabled IN ('O', 'A') AND c.{HERE}"
    )
    yield from _difference("trigger", set(rows), TRIGGERS)


def _roles(connection: psycopg.Connection[Any]) -> Iterator[str]:
    rows = connection.execute(
        "SELECT rolname, rolcanlogin, rolsuper, rolbypassrls, rolcreaterole, rolcreatedb, rolreplication "
        "FROM pg_roles WHERE rolname LIKE 'memos%'"
    )
    yield from _difference("role", {tuple(row) for row in rows}, {(name, *can) for name, can in ROLES.items()})
    memberships = connection.execute(
        "SELECT roleid::regrole::text, member::regrole::text, inherit_option FROM pg_auth_members "
        "WHERE member::regrole::text LIKE 'memos%'"
    )
    yield from _difference("membership", set(memberships), MEMBERSHIPS)
    owned = connection.execute(
        "SELECT objid::regclass::text, refobjid::regrole::text FROM pg_shdepend "
        "WHERE deptype = 'o' AND classid = 'pg_class'::regclass AND refobjid::regrole::text <> 'memos_owner' "
        "AND dbid = (SELECT oid FROM pg_database WHERE datname = current_database())"
    )
    yield from (f"{name}: owned by {role}" for name, role in owned)


def _rights(connection: psycopg.Connection[Any]) -> Iterator[str]:
    rows = connection.execute(
        "SELECT CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END, relname, "
        "string_agg(privilege_type, ' ' ORDER BY privilege_type) "
        f"FROM pg_class, aclexplode(relacl) WHERE {HERE} AND grantee <> relowner "
        "AND NOT (grantee::regrole::text = 'memos_maintainer' AND privilege_type = 'MAINTAIN') "
        "AND NOT EXISTS (SELECT 1 FROM pg_depend WHERE objid = pg_class.oid AND deptype = 'e') GROUP BY 1, 2"
    )
    app = {("memos_app", table, rights) for table, rights in APP_RIGHTS.items()}
    yield from _difference("right", set(rows), app | OTHER_RIGHTS)
    may_create = connection.execute(
        "SELECT nspname FROM pg_namespace WHERE has_schema_privilege('memos_app', oid, 'CREATE')"
    )
    yield from (f"the app role may create in the schema {name}" for (name,) in may_create)


def _columns(connection: psycopg.Connection[Any]) -> Iterator[str]:
    rows = connection.execute(
        "SELECT CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END, relname, privilege_type, "
        "string_agg(attname, ' ' ORDER BY attname) "
        f"FROM pg_attribute JOIN pg_class c ON c.oid = attrelid, aclexplode(attacl) WHERE c.{HERE} GROUP BY 1, 2, 3"
    )
    yield from _difference("right on columns", set(rows), COLUMN_RIGHTS)


def _functions(connection: psycopg.Connection[Any]) -> Iterator[str]:
    rows = connection.execute(
        "SELECT proname, proowner::regrole::text, proconfig, has_function_privilege('memos_auditor', p.oid, 'EXECUTE') "
        "FROM pg_proc p WHERE prosecdef AND pronamespace <> 'pg_catalog'::regnamespace"
    ).fetchall()
    yield from _difference("definer function", {row[0] for row in rows}, set(DEFINER_FUNCTIONS))
    for name, owner, settings, anyone in rows:
        if owner != ("memos_owner" if name in OWNER_FUNCTIONS else "memos_router"):
            yield f"{name}: runs as {owner}"
        if settings != ["search_path=pg_catalog, public, pg_temp"]:
            yield f"{name}: its search_path is not fixed"
        if anyone:
            yield f"{name}: everybody may call it"


def _find_other_ways(connection: psycopg.Connection[Any]) -> Iterator[str]:
    """Ways around a policy that need no table: rules, functions that claim to leak nothing, columns not bound."""
    rules = connection.execute("SELECT tablename, rulename FROM pg_rules WHERE schemaname = 'public'")
    yield from (f"{table}: the rule {name} rewrites queries" for table, name in rules)
    nullable = connection.execute(
        "SELECT relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND attname = 'tenant_id' "
        f"WHERE c.{HERE} AND relkind IN ('r', 'p') AND NOT attnotnull"
    )
    yield from (f"{table}: a row may have no tenant" for (table,) in nullable)


def _difference(what: str, found: set[Any], meant: set[Any]) -> Iterator[str]:
    yield from (f"{what} too much: {name}" for name in sorted(map(str, found - meant)))
    yield from (f"{what} missing: {name}" for name in sorted(map(str, meant - found)))


def _one_line(expression: str | None) -> str:
    return " ".join((expression or "").split())
