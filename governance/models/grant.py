"""Grants on single objects: the base that every grant table shares. Nothing else imports guardian."""

from typing import Any, ClassVar

from django.db import models
from guardian.models import GroupObjectPermissionBase

from governance.models.base import TenantModel
from governance.vocabulary import Action, Effect, GranteeKind

OBJECT_PERMISSIONS: list[tuple[str, Any]] = [(str(action), f"Can {action}") for action in Action]


class AccessGroup(TenantModel):
    """The receiver of a grant: each role, member, persona and key owns one group, made on demand."""

    kind = models.CharField(max_length=10, choices=[(kind, kind) for kind in GranteeKind])
    principal_id = models.UUIDField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "kind", "principal_id"], name="holder_has_one_group")]


class GrantCondition(TenantModel):
    """In which context some grants hold; equal ones share a row, so that each is judged once for a request."""

    document = models.JSONField()
    fingerprint = models.BinaryField(max_length=32)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "fingerprint"], name="grant_condition_is_unique")]


class ObjectGrant(TenantModel, GroupObjectPermissionBase):
    """guardian's direct-FK table in one tenant, with an effect, an end and a condition.

    A subclass declares `content_object`. Rows are written and deleted, never changed but for their end.
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
