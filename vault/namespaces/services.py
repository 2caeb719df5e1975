"""Namespaces of memory (MemVault), created if missing where the actor may write."""

from governance.access.decisions.rules import Target, sees_private
from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting
from governance.errors import FieldError, Forbidden, Invalid
from governance.ids import uuid7
from governance.models import Member
from governance.vocabulary import Permission, Verb
from vault.models import Namespace
from vault.namespaces.lookup import namespace_by_path
from vault.namespaces.rules import PRIVATE_ROOT, PathError, chat_path, check_path, is_under, member_home, private_path
from vault.vocabulary import NamespaceKind


def namespace_target(namespace: Namespace) -> Target:
    """Return the target of a namespace for access decisions."""
    private = namespace.kind == NamespaceKind.PRIVATE
    return Target(
        object_type="namespace",
        object_id=namespace.id,
        tenant_id=namespace.tenant_id,
        private_to=frozenset({namespace.owner_id}) if private else frozenset(),
        owner_id=namespace.owner_id,
        locked=namespace.read_only or namespace.ended_at is not None,
        curated=namespace.kind == NamespaceKind.EXPERT,
        path=namespace.path,
    )


def namespace_for_writing(
    *, actor: Actor, path: str | None, permission: Permission = Permission.MEMORY_CREATE
) -> Namespace:
    """Return the namespace at `path`, created if missing, if new memory may be stored there.

    path None: the first namespace that the actor's key is bound to, else the actor's private one.

    Raises Invalid (no path), Forbidden (another member's, or read-only). Writes: Namespace?, AuditEntry?.
    """
    if path is None and actor.binding is not None and actor.binding.namespaces:
        path = actor.binding.namespaces[0]
    with acting(actor):
        namespace = _private_namespace(actor) if path is None else _namespace_at(actor, path)
        authorize(actor, permission, namespace_target(namespace))
    return namespace


def chat_namespace(*, actor: Actor) -> Namespace:
    """Return the namespace of the actor's chats, created if missing; every actor who may chat has one.

    For a key that is bound to namespaces, the first of these. Raises Forbidden; Invalid (the system has none). Writes:
    Namespace?, AuditEntry?.
    """
    authorize(actor, Permission.CONVERSATION_USE)
    if actor.binding is not None and actor.binding.namespaces:
        return namespace_for_writing(actor=actor, path=None, permission=Permission.CONVERSATION_USE)
    with acting(actor):
        home = _private_namespace(actor)
        path = chat_path(home.path)
        found = Namespace.objects.filter(path=path).first()
        return found or _make_namespace(actor, path, NamespaceKind.PRIVATE, owner=home.owner)


def _private_namespace(actor: Actor) -> Namespace:
    if actor.member_id is None:
        raise Invalid(errors=[FieldError("namespace", "name one: the system has no private namespace")])
    mine = Namespace.objects.filter(owner_id=actor.member_id, kind=NamespaceKind.PRIVATE).order_by("id").first()
    if mine is not None:
        return mine
    member = Member.objects.get(id=actor.member_id)
    path = private_path(member.display_name, taken=False, member_id=str(member.id))
    if Namespace.objects.filter(path=path).exists():
        path = private_path(member.display_name, taken=True, member_id=str(member.id))
    made = _make_namespace(actor, path, NamespaceKind.PRIVATE, owner=member)
    if made.owner_id == member.id:
        return made
    # A member of the same name took the path first.
    path = private_path(member.display_name, taken=True, member_id=str(member.id))
    return _make_namespace(actor, path, NamespaceKind.PRIVATE, owner=member)


def _namespace_at(actor: Actor, path: str) -> Namespace:
    try:
        check_path(path)
    except PathError as fault:
        raise Invalid(errors=[FieldError("namespace", fault.message)]) from fault
    found = namespace_by_path(actor, path)
    if found is not None:
        return found
    authorize(actor, Permission.NAMESPACE_CREATE)
    if not is_under(path, PRIVATE_ROOT):
        return _make_namespace(actor, path, NamespaceKind.SHARED, owner=None)
    return _make_namespace(actor, path, NamespaceKind.PRIVATE, owner=private_owner(actor, path))


def private_owner(actor: Actor, path: str) -> Member:
    """Return the member whose home contains a path below /users. Raises Forbidden if the actor may not write there."""
    home = member_home(path)
    root = Namespace.objects.filter(path=home, kind=NamespaceKind.PRIVATE).select_related("owner").first()
    if root is None and actor.member_id is not None:
        own = _private_namespace(actor)
        root = own if is_under(path, own.path) else None
    if root is None and sees_private(actor):
        raise Forbidden(
            f"Below {PRIVATE_ROOT} there are only members' homes, and {home} is none.",
            permission=Permission.MEMORY_CREATE,
            rule="private",
        )
    if root is None or root.owner is None or not (root.owner_id == actor.member_id or sees_private(actor)):
        # The same message as for an existing namespace, so that it reveals no existence.
        raise Forbidden(
            f"The permission {Permission.MEMORY_CREATE} is missing.",
            permission=Permission.MEMORY_CREATE,
            rule="private",
        )
    return root.owner


def _make_namespace(actor: Actor, path: str, kind: NamespaceKind, *, owner: Member | None) -> Namespace:
    """Create a namespace, or return the one that a concurrent request created first."""
    new = Namespace(id=uuid7(), tenant_id=actor.tenant_id, path=path, kind=kind, owner=owner)
    Namespace.objects.bulk_create([new], ignore_conflicts=True)
    namespace = Namespace.objects.get(path=path)
    if namespace.id == new.id:
        record(actor=actor, verb=Verb.NAMESPACE_CREATED, object_type="namespace", object_ids=[namespace.id])
    return namespace
