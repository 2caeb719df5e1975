"""The actor and the context of a call. Each is built once per request or task; every service and selector takes an
actor.
"""

from dataclasses import dataclass, field, replace
from uuid import UUID

from governance.vocabulary import Channel, PrincipalKind, RoleName, Scope


@dataclass(frozen=True)
class CallContext:
    """The purpose, channel, session and address of a call; conditions of grants and policies are checked against it.

    `causes`: the request ids of the calls that asked for a job's work, and of the calls that caused those.
    """

    channel: Channel
    purpose: str = ""
    session: str = ""
    task: str = ""
    address: str = ""
    causes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Binding:
    """The limits of an API key: it reads and writes memory only within them.

    `persona_id`: only the memory of this persona. `namespaces`: paths, each with all paths below; empty means no limit.
    """

    persona_id: UUID | None = None
    namespaces: tuple[str, ...] = ()

    def covers(self, path: str) -> bool:
        """Return whether the namespace at `path` lies within the binding."""
        return not self.namespaces or any(path == root or path.startswith(f"{root}/") for root in self.namespaces)


@dataclass(frozen=True)
class PersonaScope:
    """The limits of a call on behalf of a persona: of memories that have a persona it reads only these.

    persona_ids: the personas. namespace_ids: mounted namespaces, whose memories it reads whatever their persona is.
    names: the folded names of whom it speaks for: what a speaker of such a name said, the reader said. session: the
    conversation whose scope it is, if any; equal scopes may differ in it.
    """

    persona_ids: frozenset[UUID]
    namespace_ids: frozenset[UUID] = frozenset()
    names: frozenset[str] = frozenset()
    session: str = field(default="", compare=False)


@dataclass(frozen=True)
class Actor:
    """A principal of one tenant. `member_id` is None only for the system; `scopes` is None if no key limits the actor.

    `persona_id`: the persona that the actor speaks as, if any; its grants count too. `is_proved`: the actor has a
    browser session that no admin of a tenant could have started. `persona_scope`: the limits of a call in a
    conversation, or for one persona; None: memories of all personas.
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
    persona_scope: PersonaScope | None = None

    @property
    def is_system(self) -> bool:
        return self.principal_kind is PrincipalKind.SYSTEM

    def within(self, channel: Channel) -> "Actor":
        """Return the same principal with another channel."""
        return replace(self, context=replace(self.context, channel=channel))

    def speaking_as(self, persona_id: UUID | None) -> "Actor":
        """Return the same principal speaking as its persona `persona_id`; None leaves the actor unchanged."""
        return self if persona_id is None else replace(self, persona_id=persona_id)


SYSTEM_PRINCIPAL = UUID(int=0)


def system_actor(
    *, tenant_id: UUID, request_id: str, channel: Channel = Channel.WORKER, causes: tuple[str, ...] = ()
) -> Actor:
    """Return the actor of the product itself for one tenant: for jobs, and for set-up by the command line."""
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
