from django.db import models

from governance.models.base import TenantModel
from governance.models.grant import OBJECT_PERMISSIONS, ObjectGrant
from governance.models.tenant import Member
from governance.vocabulary import PersonaKind


class Persona(TenantModel):
    """An identity that memory belongs to: a role of a member (user), or an assistant (agent)."""

    kind = models.CharField(max_length=10, choices=[(kind, kind) for kind in PersonaKind])
    name = models.CharField(max_length=200)
    member = models.ForeignKey(
        Member, null=True, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    attributes = models.JSONField(default=dict)  # what a preset says of it: short texts by name
    removed_at = models.DateTimeField(null=True)  # nobody speaks as it any more; what it said stays

    class Meta:
        permissions = OBJECT_PERMISSIONS
        constraints = [
            models.CheckConstraint(
                condition=models.Q(kind=PersonaKind.AGENT) | models.Q(member__isnull=False),
                name="user_persona_has_a_member",
            ),
            models.UniqueConstraint(
                fields=["tenant", "member", "name"],
                condition=models.Q(removed_at=None),
                name="persona_name_is_unique_for_member",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_agent(self) -> bool:
        return self.kind == PersonaKind.AGENT


class PersonaGrant(ObjectGrant):
    """A grant on a persona: to speak as it (read), change it (write), or pass this on (share, govern)."""

    content_object = models.ForeignKey(
        Persona, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )

    class Meta(ObjectGrant.Meta):
        pass
