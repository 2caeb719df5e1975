"""Actor and context of a call. Built once per request or task; every service and selector takes one."""

from dataclasses import dataclass, field, replace
from uuid import UUID

from governance.vocabulary import Channel, PrincipalKind, RoleName, Scope


@dataclass(frozen=True)
class CallContext:
    """The third part of a permission: why and from where the call comes.

    `causes`: of work that a job does, the requests that asked for it; theirs may have causes again.
    """

    channel: Channel
    purpose: str = ""
    session: str = ""
    task: str = ""
    address: str = ""
    causes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Binding:
    """The binding of an API key: it reads and writes only within these places.

    `persona_id`: memory of this persona alone. `namespaces`: paths, with all below them; empty: wherever else it may.
    """

    persona_id: UUID | None = None
    namespaces: tuple[str, ...] = ()

    def covers(self, path: str) -> bool:
        """Return whether the namespace at `path` lies within the binding."""
        return not self.namespaces or any(path == root or path.startswith(f"{root}/") for root in self.namespaces)


@dataclass(frozen=True)
class Actor:
    """A principal of one tenant. `member_id` is None for the system alone; `scopes` is None for no key's limit.

    `persona_id`: whom it speaks as, if that was said; grants of that persona hold then. `is_proved`: it is a browser
    session that nobody who governs a tenant could have begun.
    """

    tenant_id: UUID
    principal_kind: PrincipalKind
    principal_id: UUID
    member_id: UUID | None
    role: RoleName | None
    scopes: frozenset[Scope] | None
    request_id: str
    context: CallContext = field(default_factory=lambda: CallContext(channel=Channel.API))
    persona_id: UUID | None = None
    binding: Binding | None = None
    is_proved: bool = False

    @property
    def is_system(self) -> bool:
        return self.principal_kind is PrincipalKind.SYSTEM

    def within(self, channel: Channel) -> "Actor":
        """Return the same principal, speaking through another channel."""
        return replace(self, context=replace(self.context, channel=channel))

    def speaking_as(self, persona_id: UUID | None) -> "Actor":
        """Return the same principal as one of its personas; None changes nothing."""
        return self if persona_id is None else replace(self, persona_id=persona_id)


SYSTEM_PRINCIPAL = UUID(int=0)


def system_actor(
    *, tenant_id: UUID, request_id: str, channel: Channel = Channel.WORKER, causes: tuple[str, ...] = ()
) -> Actor:
    """The product itself, working for one tenant: jobs, and the command line's set-up."""
    return Actor(
        tenant_id=tenant_id,
        principal_kind=PrincipalKind.SYSTEM,
        principal_id=SYSTEM_PRINCIPAL,
        member_id=None,
        role=None,
        scopes=None,
        request_id=request_id,
        context=CallContext(channel=channel, causes=causes),
    )
