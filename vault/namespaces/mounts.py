"""Mounts: namespaces that searches of a persona, a conversation or a task include. A mount gives no rights."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting
from governance.errors import Conflict, FieldError, Forbidden, Invalid, NotFound
from governance.ids import uuid7
from governance.keys.services import GENERAL, open_sealed, seal_for, token_maker
from governance.pages import Pages
from governance.personas.lookup import persona_locate, persona_target
from governance.personas.selectors import personas_of
from governance.vocabulary import Permission, Verb
from vault.models import Conversation, Mount, Namespace
from vault.namespaces.services import namespace_target
from vault.vocabulary import NamespaceKind

LONGEST_TASK = 200


@dataclass(frozen=True)
class MountDraft:
    """A new mount. namespace: a path. Exactly one of persona_id, conversation_id and task_id is set."""

    namespace: str
    persona_id: UUID | None = None
    conversation_id: UUID | None = None
    task_id: str = field(default="", repr=False)
    writable: bool = False


@dataclass(frozen=True)
class MountView:
    mount: Mount
    task_id: str = field(repr=False)


@dataclass(frozen=True)
class MountPlaces:
    """The places whose mounts apply to a call: its personas, its session or conversation, and its task.

    is_own: the session is a conversation of the actor, and its personas are among `persona_ids`.
    """

    persona_ids: frozenset[UUID] = frozenset()
    session: str = field(default="", repr=False)
    task: str = field(default="", repr=False)
    is_own: bool = False

    def __bool__(self) -> bool:
        return bool(self.persona_ids or self.session or self.task)


def mount_create_ask(*, actor: Actor) -> None:
    """Check that the actor may create a mount. Raises Forbidden."""
    authorize(actor, Permission.MEMORY_READ)


def mount_create(*, actor: Actor, draft: MountDraft) -> MountView:
    """Mount a namespace that the actor may read; for a writable mount the actor must be able to write to it.

    The actor must be able to change the persona, own the conversation, or, for a task, add memories. Raises Forbidden;
    Invalid; NotFound; Conflict if it is mounted there already. Writes: Mount, Namespace?, AuditEntry.
    """
    mount_create_ask(actor=actor)
    with acting(actor):
        _check_one(draft)
        namespace = _locate_readable(actor, draft.namespace)
        if draft.writable:
            authorize(actor, Permission.MEMORY_CREATE, namespace_target(namespace))
        mount = Mount(
            id=uuid7(),
            tenant_id=actor.tenant_id,
            namespace=namespace,
            persona_id=draft.persona_id,
            conversation_id=draft.conversation_id,
            task_token=task_token(actor, draft.task_id) if draft.task_id else None,
            writable=draft.writable,
            member_id=actor.member_id,
        )
        mount.sealed_task = _seal_task(mount, draft.task_id)
        _authorize_place(actor, mount)
        _save_mount(mount)
        Namespace.objects.filter(id=namespace.id, is_mounted=False).update(is_mounted=True)
        _record_change(actor, Verb.MOUNT_CREATED, mount)
        return MountView(mount, draft.task_id)


def mount_remove(*, actor: Actor, mount_id: UUID) -> None:
    """Remove a mount. Raises NotFound; Forbidden. Writes: deletes Mount; AuditEntry."""
    mount_create_ask(actor=actor)
    with acting(actor):
        mount = _select_visible(actor).filter(id=mount_id).first()
        if mount is None:
            raise NotFound
        _authorize_place(actor, mount)
        mount.delete()
        _record_change(actor, Verb.MOUNT_REMOVED, mount)


def mounts_remove(*, actor: Actor, namespace: Namespace) -> None:
    """Remove all mounts of a namespace that the actor governs. Raises Forbidden. Writes: deletes Mount; AuditEntry …"""
    authorize(actor, Permission.ACCESS_GOVERN, namespace_target(namespace))
    with acting(actor):
        for mount in Mount.objects.filter(tenant_id=actor.tenant_id, namespace=namespace):
            mount.delete()
            _record_change(actor, Verb.MOUNT_REMOVED, mount)


def mounts_list(*, actor: Actor, pages: Pages, namespace_id: UUID | None = None) -> list[MountView]:
    """Return the mounts of readable namespaces, on personas that the actor may use, its own conversations, and tasks.

    Raises Forbidden; KeyUnavailable.
    """
    authorize(actor, Permission.MEMORY_READ)
    with acting(actor):
        rows = (
            _select_visible(actor) if namespace_id is None else _select_visible(actor).filter(namespace_id=namespace_id)
        )
        return [MountView(mount, _open_task(mount)) for mount in pages.take(rows.order_by("-id"))]


def mounted_ids(actor: Actor, places: MountPlaces) -> tuple[UUID, ...]:
    """Return the ids of the namespaces mounted at `places`, and of the context pools of its session. Use inside
    `acting`.

    One query; two with a session that may be a conversation.
    """
    found = _select_mounts(actor, places).values_list("namespace_id", flat=True)
    if places.session:
        pools = Namespace.objects.filter(tenant_id=actor.tenant_id, kind=NamespaceKind.CONTEXT_POOL, ended_at=None)
        of_session = pools.filter(session_token=session_token(actor, places.session))
        found = found.union(of_session.values_list("id", flat=True))
    return tuple(sorted(set(found)))


def refuse_mounted_read_only(actor: Actor, namespace: Namespace, places: MountPlaces) -> None:
    """Refuse a write if the namespace is mounted read-only. Raises Forbidden."""
    if not namespace.is_mounted or not places:
        return
    mounts = list(_select_mounts(actor, places).filter(namespace_id=namespace.id))
    if mounts and not any(mount.writable for mount in mounts):
        raise Forbidden(
            f"{namespace.path} is mounted here for reading alone.",
            permission=Permission.MEMORY_CREATE,
            rule="mount",
            object_type="namespace",
            object_id=namespace.id,
        )


def task_token(actor: Actor, task_id: str) -> int:
    return token_maker(actor.tenant_id).token("mount task", task_id)


def session_token(actor: Actor, session_id: str) -> int:
    return token_maker(actor.tenant_id).token("pool session", session_id)


def _select_mounts(actor: Actor, places: MountPlaces) -> QuerySet[Mount]:
    reach, personas = Q(pk__in=[]), set(places.persona_ids)
    conversation_id = _parse_uuid(places.session)
    if conversation_id is not None and places.is_own:
        reach |= Q(conversation_id=conversation_id)
    elif conversation_id is not None:
        for row in _select_own_conversation(actor, conversation_id).values_list("persona_id", "agent_persona_id"):
            personas |= {persona_id for persona_id in row if persona_id is not None}
            reach |= Q(conversation_id=conversation_id)
    if personas:
        reach |= Q(persona_id__in=personas)
    if places.task:
        reach |= Q(task_token=task_token(actor, places.task))
    return Mount.objects.filter(reach, tenant_id=actor.tenant_id)


def _select_own_conversation(actor: Actor, conversation_id: UUID) -> QuerySet[Conversation]:
    """Return the conversation, if it is the actor's own."""
    rows = Conversation.objects.filter(id=conversation_id, deleted_at=None)
    return rows.filter(member_id=actor.member_id) if actor.member_id else rows.none()


def _parse_uuid(text: str) -> UUID | None:
    try:
        return UUID(text) if text else None
    except ValueError:
        return None


def _select_visible(actor: Actor) -> QuerySet[Mount]:
    mine = Q(conversation__member_id=actor.member_id) if actor.member_id else Q(pk__in=[])
    at = Q(persona__in=personas_of(actor).values("id")) | mine | Q(persona=None, conversation=None)
    rows = Mount.objects.filter(at, tenant_id=actor.tenant_id, namespace__in=Namespace.objects.visible_to(actor))
    return rows.select_related("namespace", "persona")


def _locate_readable(actor: Actor, path: str) -> Namespace:
    found = Namespace.objects.visible_to(actor).filter(path=path).select_related("owner").first()
    if found is None:
        raise Invalid(errors=[FieldError("namespace", "no namespace of yours has this path")])
    authorize(actor, Permission.MEMORY_READ, namespace_target(found))
    return found


def _check_one(draft: MountDraft) -> None:
    given = [draft.persona_id is not None, draft.conversation_id is not None, bool(draft.task_id)]
    if sum(given) != 1:
        raise Invalid(errors=[FieldError("persona", "give one of persona, conversation and task_id")])


def _authorize_place(actor: Actor, mount: Mount) -> None:
    """Check that the actor may mount at this place. Raises NotFound; Forbidden."""
    if mount.persona_id is not None:
        authorize(actor, Permission.PERSONA_UPDATE, persona_target(persona_locate(actor, mount.persona_id)))
    elif mount.conversation_id is not None:
        authorize(actor, Permission.CONVERSATION_USE)
        if not _select_own_conversation(actor, mount.conversation_id).exists():
            raise NotFound
    else:
        authorize(actor, Permission.MEMORY_CREATE)


def _save_mount(mount: Mount) -> None:
    try:
        with transaction.atomic():
            mount.save(force_insert=True)
    except IntegrityError as error:
        raise Conflict("The namespace is mounted there already.") from error


def _seal_task(mount: Mount, task_id: str) -> bytes:
    if not task_id:
        return b""
    return seal_for(
        tenant_id=mount.tenant_id, scope=GENERAL, place=_encryption_context(mount), plaintext=task_id.encode()
    )


def _open_task(mount: Mount) -> str:
    if not mount.sealed_task:
        return ""
    plaintext = open_sealed(tenant_id=mount.tenant_id, place=_encryption_context(mount), blob=bytes(mount.sealed_task))
    return plaintext.decode() if plaintext else ""


def _encryption_context(mount: Mount) -> bytes:
    return b"mount" + mount.id.bytes


def _record_change(actor: Actor, verb: Verb, mount: Mount) -> None:
    detail: Mapping[str, str | bool] = {"mount": str(mount.id), "writable": mount.writable}
    record(actor=actor, verb=verb, object_type="namespace", object_ids=[mount.namespace_id], detail={**detail})
