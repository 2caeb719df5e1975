"""Services with which people create, change and move namespaces; a first memory also creates its namespace."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Q, Value
from django.db.models.functions import Concat, Length, Now, Substr

from governance.access.decisions.rules import Target
from governance.access.decisions.services import authorize
from governance.access.grants.services import grant_revoke
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting
from governance.errors import Conflict, FieldError, Invalid, NamespaceNotEmpty, NotFound
from governance.ids import uuid7
from governance.jobs.selectors import JobView
from governance.jobs.services import job_create
from governance.models import Member
from governance.policies.retention import retention_request
from governance.vocabulary import Permission, Topic, Verb
from vault.models import Cube, Namespace, NamespaceGrant, Subscription
from vault.models.namespace import NamespaceQuerySet
from vault.namespaces.mounts import mounts_remove, session_token
from vault.namespaces.rules import (
    LONGEST_PATH,
    PRIVATE_ROOT,
    PathError,
    chat_path,
    check_path,
    deleted_path,
    is_under,
    member_home,
)
from vault.namespaces.services import namespace_target, private_owner
from vault.vocabulary import ContractState, NamespaceKind

LARGEST_QUOTA = 10_000_000
CHANGEABLE = (NamespaceKind.SHARED, NamespaceKind.EXPERT)  # into each other
FILLED_BY = {  # words for counts
    "memories": "Memories",
    "restorable": "deleted or expired memories that are not purged yet",
    "namespaces": "namespaces below",
}
TAKEN = "There is a namespace at this path already."


@dataclass(frozen=True)
class NamespaceDraft:
    """A new namespace. kind None: private in a member's home, else shared. owner_id None: the actor's member. quota:
    number of memories; None: no limit. session_id: the session of a context pool, and of no other kind.
    """

    path: str
    kind: NamespaceKind | None = None
    owner_id: UUID | None = None
    read_only: bool = False
    quota: int | None = None
    session_id: str = field(default="", repr=False)


@dataclass(frozen=True)
class NamespaceChanges:
    """Changes of a namespace. None leaves a field unchanged; `lifts_quota` removes the quota."""

    kind: NamespaceKind | None = None
    owner_id: UUID | None = None
    read_only: bool | None = None
    quota: int | None = None
    lifts_quota: bool = False


@dataclass(frozen=True)
class MovePlan:
    """The changes of a move: each namespace of the subtree by path, with its new path."""

    namespaces: tuple[tuple[Namespace, str], ...]


def namespace_create(*, actor: Actor, draft: NamespaceDraft) -> Namespace:
    """Create a namespace. A private one lies in a member's home; in another member's only for managers of grants.

    Raises Forbidden; Invalid; Conflict if the path is taken. Writes: Namespace, AuditEntry.
    """
    authorize(actor, Permission.NAMESPACE_CREATE)
    with acting(actor):
        _check_path(draft.path, "path")
        _check_quota(draft.quota)
        new = Namespace(
            id=uuid7(),
            tenant_id=actor.tenant_id,
            path=draft.path,
            kind=draft.kind or _usual_kind(draft.path),
            read_only=draft.read_only,
            quota=draft.quota,
        )
        authorize(actor, Permission.NAMESPACE_CREATE, _path_target(actor, new.id, new.path))
        new.owner = _choose_owner(actor, new, draft.owner_id)
        new.session_token = _find_session_token(actor, new, draft.session_id)
        _save_namespace(new, force_insert=True)
        record(actor=actor, verb=Verb.NAMESPACE_CREATED, object_type="namespace", object_ids=[new.id])
    return new


def namespace_update_ask(*, actor: Actor, namespace_id: UUID) -> Namespace:
    """Return the namespace, locked, if the actor may govern it. Raises NotFound; Forbidden."""
    with acting(actor):
        namespace = namespace_locate(actor, namespace_id, lock=True)
        authorize(actor, Permission.ACCESS_GOVERN, namespace_target(namespace))
    return namespace


def namespace_update(*, actor: Actor, namespace_id: UUID, changes: NamespaceChanges) -> Namespace:
    """Change kind, owner, quota or the read-only flag. Memories stay as they are.

    Raises NotFound; Forbidden; Invalid; Conflict if a pack is installed. Writes: Namespace, AuditEntry.
    """
    with acting(actor):
        namespace = namespace_update_ask(actor=actor, namespace_id=namespace_id)
        _check_quota(changes.quota)
        if (changes.kind not in {None, NamespaceKind.EXPERT} or changes.read_only is False) and _has_pack(namespace):
            raise Conflict("A pack is installed in this namespace, so it stays a read-only expert namespace.")
        if changes.kind is not None and changes.kind != namespace.kind:
            _check_kinds(NamespaceKind(namespace.kind), changes.kind)
            namespace.kind = changes.kind
        if changes.owner_id is not None and changes.owner_id != namespace.owner_id:
            namespace.owner = _next_owner(actor, namespace, changes.owner_id)
        namespace.read_only = namespace.read_only if changes.read_only is None else changes.read_only
        namespace.quota = None if changes.lifts_quota else changes.quota or namespace.quota
        if namespace.kind == NamespaceKind.EXPERT and namespace.owner_id is None:
            raise Invalid(errors=[FieldError("owner", "an expert namespace has a curator: name a member")])
        _save_namespace(namespace, update_fields=["kind", "owner", "read_only", "quota"])
        record(
            actor=actor,
            verb=Verb.NAMESPACE_CHANGED,
            object_type="namespace",
            object_ids=[namespace.id],
            detail={"kind": namespace.kind, "read_only": namespace.read_only, "quota": namespace.quota},
        )
    return namespace


def namespace_move_plan(*, actor: Actor, namespace_id: UUID, path: str) -> MovePlan:
    """Return the plan of moving a namespace and its subtree to `path`, as the dry run of the job.

    Raises NotFound; Forbidden, also for one below that the actor may not govern; Invalid; Conflict if a path is taken.
    Writes nothing.
    """
    with acting(actor):
        root = namespace_update_ask(actor=actor, namespace_id=namespace_id)
        _check_path(path, "path")
        _check_destination(root, path)
        authorize(actor, Permission.NAMESPACE_CREATE, _path_target(actor, root.id, path))
        rows = list(subtree(actor, root.path).order_by("path").select_for_update(of=("self",)))
        moved = [(row, path + row.path.removeprefix(root.path)) for row in rows]
        for namespace, _ in moved:
            authorize(actor, Permission.ACCESS_GOVERN, namespace_target(namespace))
        if max(len(after) for _, after in moved) > LONGEST_PATH:
            raise Invalid(errors=[FieldError("path", f"a path below would have more than {LONGEST_PATH} characters")])
        taken = Namespace.objects.filter(tenant_id=actor.tenant_id, path__in=[after for _, after in moved])
        if taken.exclude(id__in=[namespace.id for namespace, _ in moved]).exists():
            raise Conflict(TAKEN)
    return MovePlan(tuple(moved))


def namespace_move_later(*, actor: Actor, namespace_id: UUID, path: str) -> JobView:
    """Request the job that moves a namespace with all below it. Raises the errors of `namespace_move_plan`.

    Writes: Job, AuditEntry, OutboxEvent.
    """
    with acting(actor):
        plan = namespace_move_plan(actor=actor, namespace_id=namespace_id, path=path)
        settings = {"namespace": str(namespace_id), "path": path}
        return job_create(actor=actor, kind=Topic.NAMESPACE_MOVE, settings=settings, total=len(plan.namespaces))


def namespace_move(*, actor: Actor, namespace_id: UUID, path: str) -> int:
    """Move a namespace with all below it, and return the number of moved namespaces. Memories, grants and holds refer
    to their ids, so they stay attached.

    Raises the errors of `namespace_move_plan`. Writes: Namespace …, AuditEntry, OutboxEvent?.
    """
    with acting(actor):
        plan = namespace_move_plan(actor=actor, namespace_id=namespace_id, path=path)
        root = plan.namespaces[0][0]
        if root.path == path:
            return 0
        behind = Substr("path", Length(Value(root.path)) + 1)
        try:
            with transaction.atomic():
                subtree(actor, root.path).update(path=Concat(Value(path), behind))
        except IntegrityError as error:
            raise Conflict(TAKEN) from error
        retention_request(actor)  # its policies go by paths
        record(
            actor=actor,
            verb=Verb.NAMESPACE_MOVED,
            object_type="namespace",
            object_ids=[namespace.id for namespace, _ in plan.namespaces],
            detail={"from": root.path, "to": path},
        )
    return len(plan.namespaces)


def namespace_delete(*, actor: Actor, namespace_id: UUID, dry_run: bool = False) -> None:
    """Delete an empty namespace with its grants and mounts. Its path is free again; former versions of memories that
    were moved elsewhere stay readable.

    dry_run: only check. Raises NotFound; Forbidden; Conflict for a member's home and its chats, and for the namespace
    of a pack; NamespaceNotEmpty with the counts. Writes: Namespace, AuditEntry …; deletes Mount …, NamespaceGrant ….
    """
    with acting(actor):
        namespace = namespace_update_ask(actor=actor, namespace_id=namespace_id)
        home = member_home(namespace.path)
        if namespace.kind == NamespaceKind.PRIVATE and namespace.path in {home, chat_path(home)}:
            raise Conflict("A member's home and its chats cannot be deleted.")
        if _has_pack(namespace):
            raise Conflict("A pack is installed in this namespace. End the subscription first.")
        _refuse_filled(actor, namespace)
        if dry_run:
            return
        for grant_id in NamespaceGrant.objects.filter(content_object=namespace).values_list("id", flat=True):
            grant_revoke(actor=actor, grant_id=grant_id)
        mounts_remove(actor=actor, namespace=namespace)
        path, namespace.path = namespace.path, deleted_path(namespace.path, str(namespace.id))
        Namespace.objects.filter(id=namespace.id).update(path=namespace.path, ended_at=Now())
        record(
            actor=actor,
            verb=Verb.NAMESPACE_DELETED,
            object_type="namespace",
            object_ids=[namespace.id],
            detail={"path": path},
        )


def _refuse_filled(actor: Actor, namespace: Namespace) -> None:
    """Raises NamespaceNotEmpty if there are memories in a namespace, also deleted ones, or namespaces below it."""
    cubes = Cube.objects.filter(tenant_id=actor.tenant_id, namespace=namespace)
    stored = cubes.stored().count()
    counts = {
        "memories": stored,
        "restorable": cubes.count() - stored,
        "namespaces": subtree(actor, namespace.path).without_deleted().exclude(id=namespace.id).count(),
    }
    if any(counts.values()):
        told = ", ".join(f"{FILLED_BY[name]}: {count}" for name, count in counts.items() if count)
        errors = [FieldError(name, str(count)) for name, count in counts.items() if count]
        raise NamespaceNotEmpty(f"The namespace is not empty. {told}.", errors=errors)


def namespace_locate(actor: Actor, namespace_id: UUID, *, lock: bool = False) -> Namespace:
    """Return a namespace of the actor's tenant. Raises NotFound. The caller must call `authorize` next."""
    rows = Namespace.objects.without_deleted().filter(tenant_id=actor.tenant_id, id=namespace_id)
    rows = rows.select_related("owner")
    found = (rows.select_for_update(of=("self",)) if lock else rows).first()
    if found is None:
        raise NotFound
    return found


def subtree(actor: Actor, path: str) -> NamespaceQuerySet:
    """Return the namespaces at `path` and below it, without a permission check."""
    return Namespace.objects.filter(Q(path=path) | Q(path__startswith=f"{path}/"), tenant_id=actor.tenant_id)


def curators_list(*, actor: Actor) -> Sequence[Member]:
    """Return the members who may own a namespace. The actor must be allowed to create one. Raises Forbidden."""
    authorize(actor, Permission.NAMESPACE_CREATE)
    with acting(actor):
        return list(Member.objects.filter(tenant_id=actor.tenant_id, removed_at=None).order_by("display_name")[:200])


def _has_pack(namespace: Namespace) -> bool:
    live = (ContractState.REQUESTED, ContractState.ACTIVE)
    rows = Subscription.objects.filter(tenant_id=namespace.tenant_id, namespace_id=namespace.id)
    return rows.filter(state__in=live).exists()


def _path_target(actor: Actor, namespace_id: UUID, path: str) -> Target:
    """Return the target of a path without a namespace, so that the binding of a key is checked."""
    return Target("namespace", namespace_id, actor.tenant_id, path=path)


def _find_session_token(actor: Actor, new: Namespace, session_id: str) -> int | None:
    """Return the token of a context pool's session. Raises Invalid if it has none, or another kind has one."""
    if bool(session_id) is not (new.kind == NamespaceKind.CONTEXT_POOL):
        message = "the session of a context_pool, and of no other kind"
        raise Invalid(errors=[FieldError("session_id", message)])
    return session_token(actor, session_id) if session_id else None


def _usual_kind(path: str) -> NamespaceKind:
    return NamespaceKind.PRIVATE if is_under(path, PRIVATE_ROOT) else NamespaceKind.SHARED


def _choose_owner(actor: Actor, new: Namespace, wanted: UUID | None) -> Member | None:
    """Return the owner of a new namespace. Raises Forbidden; Invalid."""
    inside = is_under(new.path, PRIVATE_ROOT)
    if inside is not (new.kind is NamespaceKind.PRIVATE):
        message = f"below {PRIVATE_ROOT} everything is private, and nothing elsewhere"
        raise Invalid(errors=[FieldError("kind", message)])
    if inside:
        owner = private_owner(actor, new.path)
        if wanted not in {None, owner.id}:
            raise Invalid(errors=[FieldError("owner", "a private namespace belongs to the member of its home")])
        return owner
    if wanted not in {None, actor.member_id}:
        authorize(actor, Permission.GRANT_MANAGE)
    owner_id = wanted or actor.member_id
    if owner_id is None and new.kind is NamespaceKind.EXPERT:
        raise Invalid(errors=[FieldError("owner", "an expert namespace has a curator: name a member")])
    return _locate_member(actor, owner_id) if owner_id else None


def _next_owner(actor: Actor, namespace: Namespace, owner_id: UUID) -> Member:
    if namespace.kind == NamespaceKind.PRIVATE:
        raise Invalid(errors=[FieldError("owner", "a private namespace belongs to the member of its home")])
    return _locate_member(actor, owner_id)


def _locate_member(actor: Actor, member_id: UUID) -> Member:
    found = Member.objects.filter(tenant_id=actor.tenant_id, id=member_id, removed_at=None).first()
    if found is None:
        raise Invalid(errors=[FieldError("owner", "no member has this id")])
    return found


def _check_kinds(before: NamespaceKind, after: NamespaceKind) -> None:
    if before not in CHANGEABLE or after not in CHANGEABLE:
        raise Invalid(errors=[FieldError("kind", "only shared and expert change into each other")])


def _check_quota(quota: int | None) -> None:
    if quota is not None and not 1 <= quota <= LARGEST_QUOTA:
        raise Invalid(errors=[FieldError("quota", f"1 to {LARGEST_QUOTA} memories")])


def _check_path(path: str, field: str) -> None:
    try:
        check_path(path)
    except PathError as fault:
        raise Invalid(errors=[FieldError(field, fault.message)]) from fault


def _check_destination(root: Namespace, path: str) -> None:
    """Check that the subtree can lie at `path`. Raises Invalid."""
    home = member_home(root.path)
    if root.kind == NamespaceKind.PRIVATE and root.path in {home, chat_path(home)}:
        raise Invalid(errors=[FieldError("path", "a member's home and its chats stay where they are")])
    if path != root.path and is_under(path, root.path):
        raise Invalid(errors=[FieldError("path", "a namespace cannot be moved below itself")])
    if root.kind != NamespaceKind.PRIVATE and is_under(path, PRIVATE_ROOT):
        raise Invalid(errors=[FieldError("path", f"below {PRIVATE_ROOT} everything is private")])
    if root.kind == NamespaceKind.PRIVATE and (path == chat_path(home) or not path.startswith(f"{home}/")):
        raise Invalid(errors=[FieldError("path", f"private memory stays in its member's home, {home}")])


def _save_namespace(namespace: Namespace, **options: object) -> None:
    try:
        with transaction.atomic():
            namespace.save(**options)  # type: ignore[arg-type]
    except IntegrityError as error:
        raise Conflict(TAKEN) from error
