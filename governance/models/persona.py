from django.db import models

from governance.models.base import TenantModel
from governance.models.tenant import Member
from governance.vocabulary import PersonaKind


class Persona(TenantModel):
    """An identity that memory belongs to: a member in one of their parts (user), or an assistant (agent)."""

    kind = models.CharField(max_length=10, choices=[(kind, kind) for kind in PersonaKind])
    name = models.CharField(max_length=200)
    member = models.ForeignKey(
        Member, null=True, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(kind=PersonaKind.AGENT) | models.Q(member__isnull=False),
                name="user_persona_has_a_member",
            ),
            models.UniqueConstraint(fields=["tenant", "member", "name"], name="persona_name_is_unique_for_member"),
        ]

    def __str__(self) -> str:
        return self.name
