"""Passwords: sign-in by password, setting one, and setting a new one by a mailed link.

Responses do not reveal which addresses have an account: each gets the same response, after the same hashing.
"""

import logging
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.contrib.auth.hashers import check_password, make_password
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import connection
from django.db.models.functions import Now

from governance.accounts.attempts import (
    Counter,
    address_group,
    attempt_count,
    attempts_count,
    attempts_forget,
    attempts_undo,
    counter,
)
from governance.accounts.person_events import person_event_record
from governance.accounts.rules import FirstFactor, SignedIn, TrustedBrowser, Way
from governance.accounts.selectors import memberships_of, person_get, require_proved_address
from governance.actor import system_actor
from governance.audit.services import record
from governance.database import acting, as_person, database_now, no_tenant
from governance.errors import FieldError, Invalid, NotFound, TooManyAttempts, Unauthenticated
from governance.ids import uuid7
from governance.keys.services import credential_hash
from governance.models import BrowserSession, PasswordReset, User
from governance.outbox.services import emit
from governance.tenants.rules import link_token_new
from governance.tenants.selectors import user_id_by_email
from governance.vocabulary import Channel, Outcome, Topic, Verb

LONGEST_PASSWORD = 200
PLACE = "password"
logger = logging.getLogger(__name__)


def password_sign_in(
    *, email: str, password: str, request_id: str, address: str, trusted: TrustedBrowser | None = None
) -> FirstFactor:
    """Return the first factor of the person with this address and password.

    Raises Unauthenticated, with the same message for every cause; TooManyAttempts. `trusted`: the browser's proof that
    a person has signed in with it before. Writes, if refused: AuditEntry in each tenant of the person; for an unknown
    address a log line.
    """
    user_id = _user_id(email)
    account = str(user_id) if user_id else email.strip().lower()
    own, shared = _counters(
        account, address_group(address), trusted if trusted and trusted.user_id == user_id else None
    )
    last = attempts_count([*shared, own])
    user = person_get(user_id) if user_id else None
    if not _is_right(password, user):
        verb = Verb.SIGN_IN_LOCKED if last else Verb.SIGN_IN_FAILED
        if user_id:
            _record_refusal(user_id, verb, request_id, address)
        else:
            _log_stranger(email, verb, request_id, address)
        raise Unauthenticated("The address or the password is wrong.")
    assert user is not None
    attempts_undo(shared)
    attempts_forget(own.kind, *own.who)
    return FirstFactor(user_id=user.id, bound_to=user.password_tenant, way=Way.PASSWORD)


def _counters(account: str, group: str, trusted: TrustedBrowser | None) -> tuple[Counter, list[Counter]]:
    """Return the counter that a success resets, and the counters from which a success subtracts only one try.

    A trusted browser has a counter of its own: guesses from elsewhere cannot make its person wait.
    """
    if trusted is not None:
        return counter("browser", account, trusted.nonce), []
    shared = [
        counter("address", group, free=settings.ATTEMPTS_FREE_BY_ADDRESS),
        counter("account", account, free=settings.ATTEMPTS_FREE_BY_ACCOUNT),
    ]
    return counter(PLACE, account, group), shared


def _is_right(password: str, user: User | None) -> bool:
    """Check the password. Hashes even for an unknown user, so that the time reveals nothing."""
    encoded = user.password if user else make_password(None)
    return check_password(password[:LONGEST_PASSWORD], encoded)


def _record_refusal(user_id: UUID, verb: Verb, request_id: str, address: str) -> None:
    person_event_record(
        user_id=user_id,
        verb=verb,
        request_id=request_id,
        address=address,
        detail={"way": Way.PASSWORD},
        outcome=Outcome.DENIED,
    )


def _log_stranger(email: str, verb: Verb, request_id: str, address: str) -> None:
    """Log an attempt for an unknown address, as a hash; it belongs to no tenant's audit log."""
    hashed = credential_hash(email.strip().lower()).hex()[:32]
    logger.warning("%s: unknown email_hash=%s address=%s request=%s", verb, hashed, address, request_id)


def has_password(*, person: SignedIn) -> bool:
    with acting(person.actor), as_person(person.user_id):
        return User.objects.get(id=person.user_id).has_usable_password()


def password_set(*, person: SignedIn, current: str, new: str) -> None:
    """Set or change the person's password, and end their other sessions. `current` is needed if a password exists.

    Raises AddressNotProved; Invalid; TooManyAttempts. Writes: User, BrowserSession …, AuditEntry.
    """
    require_proved_address(person)
    user = _prove_password(person, current)
    password_check(new, user)
    encoded = make_password(new)
    with acting(person.actor), as_person(person.user_id):
        User.objects.filter(id=user.id).update(password=encoded, password_tenant=None)
        BrowserSession.objects.exclude(id=person.session_id).filter(ended_at=None).update(ended_at=Now())
        record(
            actor=person.actor,
            verb=Verb.PASSWORD_SET,
            object_type="member",
            object_ids=[person.actor.principal_id],
            detail={"way": "account"},
        )


def _prove_password(person: SignedIn, current: str) -> User:
    user = person_get(person.user_id)
    if user is None:
        raise NotFound
    if user.has_usable_password():
        attempt_count(PLACE, str(user.id), "account")
        if not check_password(current[:LONGEST_PASSWORD], user.password):
            raise Invalid(errors=[FieldError("current", "this is not your current password")])
        attempts_forget(PLACE, str(user.id), "account")
    return user


def password_begin(*, user_id: UUID, new: str) -> None:
    """Set the first password of an invited person; an existing password stays. Raises Invalid.

    Writes: User. The audit log has the acceptance of the invitation.
    """
    user = person_get(user_id)
    if user is None:
        raise NotFound
    if user.has_usable_password():
        return
    password_check(new, user)
    with no_tenant(), as_person(user_id):
        User.objects.filter(id=user_id).update(password=make_password(new), password_tenant=None)


def password_check(new: str, user: User | None = None) -> None:
    """Check a new password. Raises Invalid, with the messages of Django's validators."""
    try:
        if len(new) > LONGEST_PASSWORD:
            raise ValidationError(f"at most {LONGEST_PASSWORD} characters")
        validate_password(new, user)
    except ValidationError as error:
        raise Invalid(errors=[FieldError("new", message) for message in error.messages]) from error


def password_reset_ask(*, email: str, request_id: str, address: str) -> None:
    """Mail a link to the address if it has an account; the result never shows if it has. Raises TooManyAttempts.

    Writes, for an account: AuditEntry in each tenant, OutboxEvent; the worker sends the mail.
    """
    attempt_count("reset", address_group(address), free=settings.ATTEMPTS_FREE_BY_ADDRESS)
    user_id = _user_id(email)
    try:
        attempt_count("reset", str(user_id) if user_id else email.strip().lower())
    except TooManyAttempts:
        return  # the mails of before are enough; to say so would tell one who asks for many accounts apart
    memberships = memberships_of(user_id) if user_id else []
    if not memberships or user_id is None:
        return
    for membership in memberships:  # all alike: a tenant learns of no other
        actor = system_actor(tenant_id=membership.tenant_id, request_id=request_id, channel=Channel.WEB)
        with acting(actor):
            record(
                actor=actor,
                verb=Verb.PASSWORD_RESET_ASKED,
                object_type="member",
                object_ids=[membership.member_id],
                detail={"address": address},
            )
            if membership == memberships[0]:
                emit(actor=actor, topic=Topic.PASSWORD_RESET_ASKED, payload={"user": str(user_id)})


def password_reset_token(*, user_id: UUID) -> str:
    """Create a one-time token to be mailed; called by the worker. Writes: PasswordReset."""
    token = link_token_new()
    with no_tenant(), as_person(user_id):
        row = PasswordReset(
            id=uuid7(),
            user_id=user_id,
            token_hash=credential_hash(token),
            expires_at=database_now() + timedelta(hours=settings.PASSWORD_RESET_HOURS),
        )
        row.save(force_insert=True)
    return token


def password_reset_use(*, token: str, new: str, request_id: str, address: str) -> FirstFactor:
    """Set a new password by a mailed link. The link proves the address, so it opens every organisation of its person.

    The link is a first factor too: its person can sign in while somebody guesses the password. All sessions of the
    person end. Raises NotFound (the link is unknown, used or expired); Invalid. Writes: PasswordReset, User,
    BrowserSession …, AuditEntry in each tenant.
    """
    reset_id, user_id = reset_find(token)
    user = person_get(user_id)
    if user is None:
        raise NotFound
    password_check(new, user)
    encoded = make_password(new)
    with no_tenant(), as_person(user_id):
        usable = PasswordReset.objects.filter(id=reset_id, used_at=None, expires_at__gt=database_now())
        if not usable.update(used_at=Now()):
            raise NotFound
        User.objects.filter(id=user_id).update(password=encoded, password_tenant=None)
        BrowserSession.objects.filter(ended_at=None).update(ended_at=Now())
        PasswordReset.objects.filter(used_at=None).update(used_at=Now())
    _record_reset(user_id, request_id, address)
    return FirstFactor(user_id=user_id, bound_to=None, way=Way.RESET)


def _record_reset(user_id: UUID, request_id: str, address: str) -> None:
    person_event_record(
        user_id=user_id, verb=Verb.PASSWORD_SET, request_id=request_id, address=address, detail={"way": "reset"}
    )


def reset_find(token: str) -> tuple[UUID, UUID]:
    """Return (reset id, user id) of a link that still works. Raises NotFound."""
    with no_tenant(), connection.cursor() as cursor:
        cursor.execute("SELECT id, user_id FROM governance_reset_by_hash(%s)", [credential_hash(token)])
        found = cursor.fetchone()
    if found is None:
        raise NotFound
    with no_tenant(), as_person(found[1]):
        if not PasswordReset.objects.filter(id=found[0], used_at=None, expires_at__gt=database_now()).exists():
            raise NotFound
    return found[0], found[1]


def _user_id(email: str) -> UUID | None:
    with no_tenant():
        return user_id_by_email(email.strip())
