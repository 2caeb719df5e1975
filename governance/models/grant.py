"""Grants on single objects: the base class of all grant tables. Only this module imports guardian."""

from typing import Any, ClassVar

from django.db import models
from guardian.models import GroupObjectPermissionBase

from governance.models.base import TenantModel
from governance.vocabulary import Action, Effect, GranteeKind

OBJECT_PERMISSIONS: list[tuple[str, Any]] = [(str(action), f"Can {action}") for action in Action]


class AccessGroup(TenantModel):
    """The group of a grantee: each role, member, persona and key owns one, made at its first grant."""

    kind = models.CharField(max_length=10, choices=[(kind, kind) for kind in GranteeKind])
    principal_id = models.UUIDField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "kind", "principal_id"], name="holder_has_one_group")]


class GrantCondition(TenantModel):
    """The condition of grants; equal conditions share a row, so that a request evaluates each only once."""

    document = models.JSONField()
    fingerprint = models.BinaryField(max_length=32)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "fingerprint"], name="grant_condition_is_unique")]


class PastGrant(TenantModel):
    """A grant as it stood until `created_at`, when it ended or its end was changed. Insert-only; a trigger adds it.

    table: of the grant; given_at: the grant's own `created_at`.
    """

    table = models.CharField(max_length=63)
    grant_id = models.UUIDField()
    object_id = models.UUIDField()  # no foreign key: the row outlives the object
    group = models.ForeignKey(
        AccessGroup, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    permission = models.ForeignKey("auth.Permission", on_delete=models.PROTECT, db_index=False, related_name="+")
    effect = models.CharField(max_length=5, choices=[(effect, effect) for effect in Effect])
    expires_at = models.DateTimeField(null=True)
    condition = models.ForeignKey(
        GrantCondition, null=True, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    given_by_kind = models.CharField(max_length=10)
    given_by = models.UUIDField()
    given_at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["tenant", "object_id", "grant_id", "created_at"], name="past_grant_by_object")]


class ObjectGrant(TenantModel, GroupObjectPermissionBase):
    """guardian's direct-FK table for one tenant, with an effect, an end and a condition.

    A subclass declares `content_object`. Only the end of a row ever changes.
    """

    group = models.ForeignKey(  # type: ignore[assignment]  # instead of Django's groups, which know no tenants
        AccessGroup, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    permission = models.ForeignKey("auth.Permission", on_delete=models.PROTECT, db_index=False, related_name="+")
    effect = models.CharField(max_length=5, choices=[(effect, effect) for effect in Effect])
    expires_at = models.DateTimeField(null=True)
    condition = models.ForeignKey(
        GrantCondition, null=True, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    given_by_kind = models.CharField(max_length=10)
    given_by = models.UUIDField()

    objects: ClassVar[models.Manager[Any]] = models.Manager()  # type: ignore[assignment]

    class Meta:
        abstract = True
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "content_object", "group", "permission", "effect", "condition"],
                nulls_distinct=False,
                name="%(class)s_is_given_once",
            )
        ]
        indexes = [
            models.Index(
                fields=["tenant", "group", "effect"],
                include=["content_object", "permission", "expires_at", "condition"],
                name="%(class)s_by_group",
            ),
            models.Index(
                fields=["tenant", "group", "condition"],
                condition=models.Q(condition__isnull=False),
                name="%(class)s_conditional",
            ),
        ]
