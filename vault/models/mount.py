from typing import ClassVar

from django.db import models
from django.db.models import Q

from governance.models.base import TenantModel
from governance.models.persona import Persona
from governance.models.tenant import Member
from vault.models.conversation import Conversation
from vault.models.namespace import Namespace


class Mount(TenantModel):
    """A namespace that searches of a persona, a conversation or a task include; exactly one of these is set.

    sealed_task: the task's name; task_token: its keyed token. A mount grants no right.
    """

    namespace = models.ForeignKey(
        Namespace, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    persona = models.ForeignKey(
        Persona, null=True, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    conversation = models.ForeignKey(
        Conversation, null=True, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    task_token = models.BigIntegerField(null=True)
    sealed_task = models.BinaryField(default=bytes)
    writable = models.BooleanField(default=False)
    member = models.ForeignKey(
        Member, null=True, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )

    objects: ClassVar[models.Manager["Mount"]]

    class Meta:
        indexes = [
            models.Index(fields=["tenant", "persona"], name="mount_by_persona", condition=~Q(persona=None)),
            models.Index(
                fields=["tenant", "conversation"], name="mount_by_conversation", condition=~Q(conversation=None)
            ),
            models.Index(fields=["tenant", "task_token"], name="mount_by_task", condition=~Q(task_token=None)),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "namespace", "persona", "conversation", "task_token"],
                name="namespace_is_mounted_once_in_a_place",
                nulls_distinct=False,
            ),
        ]
