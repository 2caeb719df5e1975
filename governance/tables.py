"""Shorthand for migrations: fields that many tables have, and an operation that creates many tables."""

from typing import Any

from django.db import models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations import CreateModel
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState
from django.db.models.functions import Now

from governance.ids import uuid7

OBJECT_PERMISSIONS = [(action, f"Can {action}") for action in ("read", "write", "share", "govern")]
CREATED_AT = models.DateTimeField(db_default=Now(), editable=False)


class CreateTables(Operation):
    """Creates tables that may refer to each other, in any order.

    After each CreateModel, Django renders all models related to the new one. Here they are rendered once, which saves
    ten seconds for a hundred tables.
    """

    reversible = False

    def __init__(self, *tables: CreateModel) -> None:
        self.tables = tables

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        vars(state).pop("apps", None)  # a cached property: rendered when it is next asked for
        for table in self.tables:
            table.state_forwards(app_label, state)

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        for table in self.tables:
            table.database_forwards(app_label, schema_editor, from_state, to_state)

    def describe(self) -> str:
        return f"Create {len(self.tables)} tables"


def table(name: str, options: dict[str, Any] | None = None, /, **fields: Any) -> CreateModel:
    """Return a table with `fields`. options: the model's Meta."""
    return CreateModel(name, list(fields.items()), options or {})


def tenant_model(name: str, options: dict[str, Any] | None = None, /, **fields: Any) -> CreateModel:
    """Return the table of a subclass of TenantModel, with the fields of that base and `fields`."""
    return table(name, options, id=uuid_key(), tenant=tenant(), created_at=CREATED_AT, **fields)


def grant_model(name: str, content: str) -> CreateModel:
    """Return the table of a subclass of ObjectGrant: grants on the rows of the model `content`."""
    columns, prefix = ["content_object", "permission", "expires_at", "condition"], name.lower()
    given = ["tenant", "content_object", "group", "permission", "effect", "condition"]
    has_condition = models.Q(condition__isnull=False)
    return tenant_model(
        name,
        {
            "default_permissions": (),
            "indexes": [
                models.Index(fields=["tenant", "group", "effect"], include=columns, name=f"{prefix}_by_group"),
                models.Index(
                    fields=["tenant", "group", "condition"], condition=has_condition, name=f"{prefix}_conditional"
                ),
            ],
            "constraints": [
                models.UniqueConstraint(fields=given, nulls_distinct=False, name=f"{prefix}_is_given_once")
            ],
        },
        group=tenant_key("governance.accessgroup"),
        permission=models.ForeignKey("auth.permission", models.PROTECT, related_name="+", db_index=False),
        effect=choice("allow", "deny", max_length=5),
        expires_at=models.DateTimeField(null=True),
        condition=tenant_key("governance.grantcondition", null=True),
        given_by_kind=models.CharField(max_length=10),
        given_by=models.UUIDField(),
        content_object=tenant_key(content),
    )


def uuid_key() -> "models.Field[Any, Any]":
    return models.UUIDField(primary_key=True, default=uuid7, editable=False, serialize=False)


def composite_key(*columns: str) -> "models.Field[Any, Any]":
    return models.CompositePrimaryKey(*columns, primary_key=True, blank=True, editable=False, serialize=False)


def tenant(**options: Any) -> "models.Field[Any, Any]":
    """Return the foreign key of a row to its tenant."""
    return models.ForeignKey(
        "governance.tenant", on_delete=models.DO_NOTHING, db_index=False, related_name="+", **options
    )


def tenant_key(to: str, *, null: bool = False) -> "models.Field[Any, Any]":
    """Return a foreign key to a row of the same tenant; the database has a composite key (tenancy_sql.reference)."""
    return models.ForeignKey(
        to, on_delete=models.DO_NOTHING, null=null, db_index=False, db_constraint=False, related_name="+"
    )


def choice(*values: str, **options: Any) -> "models.Field[Any, Any]":
    """Return a text field that holds one of `values`."""
    return models.CharField(choices=[(value, value) for value in values], **options)
