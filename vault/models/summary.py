from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from governance.models.base import TenantModel
from vault.models.conversation import Conversation
from vault.models.namespace import Namespace


class Summary(TenantModel):
    """The summary of a namespace or a conversation (exactly one is set): sentences of its memories.

    passages: [[memory, version, start, end]], opened for each reader, never copied. memories: the number read for it.
    model: the model that chose, empty without one. updated_at: the time when its memories were read.
    """

    namespace = models.ForeignKey(
        Namespace, null=True, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    conversation = models.ForeignKey(
        Conversation, null=True, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    passages = models.JSONField(default=list)
    memories = models.PositiveIntegerField(default=0)
    model = models.CharField(max_length=100, blank=True, default="")
    updated_at = models.DateTimeField(db_default=Now())

    objects: ClassVar[models.Manager["Summary"]]

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "namespace", "conversation"],
                name="place_has_one_summary",
                nulls_distinct=False,
            ),
            models.CheckConstraint(condition=Q(namespace=None) ^ Q(conversation=None), name="summary_is_of_one_place"),
        ]
