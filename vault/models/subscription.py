from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from governance.models.base import TenantModel
from governance.models.tenant import Member
from vault.models.cube import Cube
from vault.models.namespace import Namespace
from vault.models.pack import Publication
from vault.vocabulary import ContractState, Delivery, ProposalState, QuotaPeriod, ReportReason


class Agreement(TenantModel):
    """The terms and counts that both sides hold. quota: reads in each period; null: no limit. reads: in all.

    may_export: memories may leave the subscriber's installation.
    """

    state = models.CharField(max_length=10, choices=[(state, state) for state in ContractState])
    number = models.CharField(max_length=20, blank=True, default="")  # of the installed version
    quota = models.PositiveBigIntegerField(null=True)
    period = models.CharField(max_length=6, choices=[(period, period) for period in QuotaPeriod])
    purposes = ArrayField(models.CharField(max_length=200), default=list)
    price = models.CharField(max_length=100, blank=True, default="")
    valid_to = models.DateTimeField(null=True)
    may_export = models.BooleanField(default=False, db_default=False)
    reads = models.PositiveBigIntegerField(default=0)
    reason = models.CharField(max_length=300, blank=True, default="")

    class Meta:
        abstract = True


class Subscription(Agreement):
    """The subscriber's row: a publication of any tenant, installed as memories of a read-only namespace.

    used: reads in the period that began at `period_from`. available: a newer version within its range. is_trusted: its
    memories get a higher trust, and each version is compared with the organisation's own memories. selection: the part
    of the pack that is taken, sealed (vault/store/selections.py); empty: all of it.
    """

    publication_id = models.UUIDField()  # of another tenant, usually
    publisher_id = models.UUIDField()
    publisher = models.CharField(max_length=200)
    name = models.CharField(max_length=130)
    title = models.CharField(max_length=120)
    namespace = models.ForeignKey(
        Namespace, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    range = models.CharField(max_length=20)
    delivery = models.CharField(max_length=4, choices=[(delivery, delivery) for delivery in Delivery])
    available = models.CharField(max_length=20, blank=True, default="")
    is_trusted = models.BooleanField(default=False, db_default=False)
    selection = models.BinaryField(default=bytes, db_default=b"")
    used = models.PositiveBigIntegerField(default=0)
    period_from = models.DateTimeField(db_default=Now())
    member = models.ForeignKey(
        Member, null=True, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )

    objects: ClassVar[models.Manager["Subscription"]]

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "publication_id"],
                name="publication_is_subscribed_once",
                condition=models.Q(state__in=[ContractState.REQUESTED, ContractState.ACTIVE]),
            )
        ]
        indexes = [models.Index(fields=["tenant", "namespace"], name="subscription_by_namespace")]


class PackMemory(TenantModel):
    """A memory that a pack installed. key: its id in the pack; digest: of its line in the pack file, in hex.

    is_overridden: the subscriber has reworded it, and upgrades leave it unchanged.
    """

    subscription = models.ForeignKey(
        Subscription, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    cube = models.ForeignKey(Cube, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+")
    key = models.UUIDField()
    digest = models.CharField(max_length=64, blank=True)
    is_overridden = models.BooleanField(default=False)

    objects: ClassVar[models.Manager["PackMemory"]]

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "subscription", "key"], name="pack_memory_is_installed_once")
        ]


class Contract(Agreement):
    """The publisher's side of a subscription. may_return: after its revocation, the subscriber may subscribe again."""

    publication = models.ForeignKey(
        Publication, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    subscription_id = models.UUIDField()
    subscriber_id = models.UUIDField()
    subscriber = models.CharField(max_length=200)
    may_return = models.BooleanField(default=False, db_default=False)

    objects: ClassVar[models.Manager["Contract"]]

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "subscription_id"], name="subscription_has_one_contract")
        ]


class PackRead(TenantModel):
    """One call that returned memories of a pack, stored on both sides. number: counted from 1 in a contract.

    is_sent: on the subscriber's side, true once the publisher has received it.
    """

    subscription_id = models.UUIDField()
    is_publishers = models.BooleanField(default=False)
    number = models.PositiveBigIntegerField()
    memories = models.PositiveIntegerField()
    at = models.DateTimeField(db_default=Now())
    is_sent = models.BooleanField(default=False)

    objects: ClassVar[models.Manager["PackRead"]]

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "subscription_id", "is_publishers", "number"], name="pack_read_is_counted_once"
            )
        ]


class PackTrial(TenantModel):
    """A memory that an organisation was shown of a pack before it subscribed. key: its id in the pack."""

    publication_id = models.UUIDField()
    key = models.UUIDField()

    objects: ClassVar[models.Manager["PackTrial"]]

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "publication_id", "key"], name="pack_trial_is_counted_once")
        ]


class PackRating(TenantModel):
    """A member's rating of a pack, stored on both sides; the publisher's row names the organisation and no member.

    stars: 1 to 5. number: the rated version. source_id: on the publisher's side, the id of the subscriber's row.
    """

    publication_id = models.UUIDField()
    member = models.ForeignKey(
        Member, null=True, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    source_id = models.UUIDField(null=True)
    organisation = models.CharField(max_length=200)
    stars = models.PositiveSmallIntegerField()
    text = models.CharField(max_length=500, blank=True, default="")
    number = models.CharField(max_length=20, blank=True, default="")
    rated_at = models.DateTimeField(db_default=Now())

    objects: ClassVar[models.Manager["PackRating"]]

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "publication_id", "member"], name="member_rates_a_pack_once"),
            models.UniqueConstraint(fields=["tenant", "source_id"], name="rating_is_reported_once"),
            models.CheckConstraint(condition=models.Q(stars__range=(1, 5)), name="rating_has_one_to_five_stars"),
        ]


class PackReport(TenantModel):
    """A member's report of a pack to the operator of the installation. The publisher cannot read it.

    decision: hide, ban, show or dismiss, once the operator has decided.
    """

    publication_id = models.UUIDField()
    publisher_id = models.UUIDField()
    name = models.CharField(max_length=130)
    title = models.CharField(max_length=120)
    member = models.ForeignKey(
        Member, null=True, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    reason = models.CharField(max_length=13, choices=[(str(reason), str(reason)) for reason in ReportReason])
    text = models.CharField(max_length=500, blank=True, default="")
    decision = models.CharField(max_length=7, blank=True, default="")
    decided_at = models.DateTimeField(null=True)

    objects: ClassVar[models.Manager["PackReport"]]

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "publication_id", "member"],
                name="member_has_one_open_report_of_a_pack",
                condition=models.Q(decided_at=None),
            )
        ]
        indexes = [models.Index(fields=["-id"], name="pack_report_open", condition=models.Q(decided_at=None))]


class PackProposal(TenantModel):
    """A subscriber's proposal to change one memory, stored on both sides. sealed: its texts (vault/store/proposals.py).

    key: the memory's id in the pack; number: the installed version. member: the proposer, on the subscriber's side.
    source_id, source_tenant: on the publisher's side, the subscriber's row and tenant. organisation: the other side's
    name.
    """

    publication_id = models.UUIDField()
    pack = models.CharField(max_length=130)
    key = models.UUIDField()
    number = models.CharField(max_length=20)
    member = models.ForeignKey(
        Member, null=True, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    source_id = models.UUIDField(null=True)
    source_tenant = models.UUIDField(null=True)
    organisation = models.CharField(max_length=200)
    state = models.CharField(max_length=10, choices=[(state, state) for state in ProposalState])
    decided_at = models.DateTimeField(null=True)
    sealed = models.BinaryField()

    objects: ClassVar[models.Manager["PackProposal"]]

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "source_id"], name="proposal_is_delivered_once")]
        indexes = [models.Index(fields=["tenant", "publication_id", "state"], name="proposal_by_publication")]
