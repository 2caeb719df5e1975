"""E-mails with one-time links, sent by the worker. A token is made when its mail is sent, so that no queue holds it."""

from collections.abc import Sequence
from uuid import UUID

from django.conf import settings
from django.core.mail import EmailMessage
from django.template.loader import render_to_string

from governance.accounts.passwords import password_reset_token
from governance.accounts.selectors import person_get
from governance.actor import Actor
from governance.database import acting, database_now
from governance.errors import Unavailable
from governance.keys.services import credential_hash
from governance.members.selectors import open_invitations
from governance.members.services import invitation_url
from governance.models import Invitation, Tenant
from governance.outbox.routes import Payload, Write
from governance.shared_files import mail_share
from governance.tenants.rules import link_token_new


def resets_send(actor: Actor, payloads: Sequence[Payload]) -> Write:
    """Mail a link for a new password, as the outbox handler of `password.reset_asked`."""
    for payload in payloads:
        user = person_get(UUID(str(payload["user"])))
        if user is not None:
            token = password_reset_token(user_id=user.id)
            context = {"url": f"{settings.PUBLIC_URL}/reset/{token}/", "hours": settings.PASSWORD_RESET_HOURS}
            mail_send(actor.tenant_id, "governance/mail/reset.txt", user.email, context)
    return _write_nothing


def invitations_send(actor: Actor, payloads: Sequence[Payload]) -> Write:
    """Mail an invitation's link, as the outbox handler of `invitation.created`; using the link proves its address."""
    ids = [UUID(str(payload["invitation"])) for payload in payloads]
    with acting(actor):
        tenant = Tenant.objects.get(id=actor.tenant_id)
        rows = list(open_invitations(database_now()).filter(id__in=ids))
        tokens = {row.id: link_token_new() for row in rows}
        for row in rows:
            Invitation.objects.filter(id=row.id).update(mailed_token_hash=credential_hash(tokens[row.id]))
    for row in rows:
        context = {
            "url": invitation_url(tokens[row.id]),
            "tenant": " ".join(tenant.name.split()),
            "expires_at": row.expires_at,
        }
        mail_send(actor.tenant_id, "governance/mail/invitation.txt", row.email, context)
    return _write_nothing


def _write_nothing() -> None:
    """Write nothing: the rows were committed before the mail was sent."""


def mail_send(tenant_id: UUID, template: str, to: str, context: dict[str, object]) -> None:
    """Send a mail from a template whose first line is the subject.

    Without a mail server it goes to the store that machines share, else to a file. Raises KeyUnavailable; Unavailable.
    """
    subject, _, text = render_to_string(template, context).partition("\n")
    mail = EmailMessage(subject.strip(), text.strip() + "\n", settings.DEFAULT_FROM_EMAIL, [to])
    if not settings.EMAIL_HOST and mail_share(tenant_id, mail.message().as_bytes()):
        return
    try:
        mail.send()
    except OSError as error:  # SMTPException is one
        raise Unavailable("The mail cannot be sent now.") from error
