"""The second factor: a code of an authenticator app (TOTP, RFC 6238) or a recovery code, both stored by django-allauth.

A code works once: its time step is stored with the key, in a row that is locked during the check.
"""

from dataclasses import dataclass
from uuid import UUID

from allauth.core.internal.cryptokit import compare_user_code
from allauth.mfa.adapter import get_adapter
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import (
    TOTP,
    format_hotp_value,
    generate_totp_secret,
    hotp_value,
    yield_hotp_counters_from_time,
)
from django.db.models.functions import Now
from django.utils.safestring import SafeString

from governance.accounts.attempts import attempt_count, attempts_forget
from governance.accounts.person_events import person_event_record
from governance.accounts.rules import FirstFactor, SignedIn
from governance.accounts.selectors import is_membership_proved, require_proved_address
from governance.audit.services import record
from governance.database import acting, as_person, no_tenant
from governance.errors import Conflict, FieldError, Forbidden, Invalid, NotFound
from governance.models import BrowserSession, User
from governance.vocabulary import Outcome, Verb

PLACE = "second factor"
WRONG = "this code is wrong, or was used already"


@dataclass(frozen=True)
class FactorView:
    """The second factor of a person. `codes_left`: the number of unused recovery codes."""

    active: bool
    codes_left: int


def second_factor_is_due(first: FirstFactor) -> bool:
    """Return whether the person must show a second factor now, because they have one.

    A sign-in bound to one tenant asks none of a member who never signed in there by themselves: the question would tell
    that tenant that the person has an account elsewhere.
    """
    if first.bound_to is not None and not is_membership_proved(user_id=first.user_id, tenant_id=first.bound_to):
        return False
    with no_tenant(), as_person(first.user_id):
        return _totp() is not None


def factor_get(*, person: SignedIn) -> FactorView:
    with acting(person.actor), as_person(person.user_id):
        codes = Authenticator.objects.filter(type=Authenticator.Type.RECOVERY_CODES).first()
        return FactorView(
            active=_totp() is not None, codes_left=len(RecoveryCodes(codes).get_unused_codes()) if codes else 0
        )


def second_factor_secret() -> str:
    """Return a new TOTP key; a code of it must confirm the key before anything is stored."""
    secret: str = generate_totp_secret()
    return secret


def second_factor_picture(*, email: str, secret: str) -> SafeString:
    """Return the key as a QR code that an authenticator app scans: an SVG of black squares."""
    adapter = get_adapter()
    url: str = adapter.build_totp_url(User(email=email), secret)
    return SafeString(adapter.build_totp_svg(url).partition("?>")[2])


def second_factor_add(*, person: SignedIn, secret: str, code: str) -> list[str]:
    """Require a second factor from now on; return the recovery codes, which are shown only once.

    Raises Invalid (the code is wrong); Conflict (there is one already); AddressNotProved. Writes: Authenticator × 2,
    AuditEntry. The person's other sessions end, because they began without a second factor.
    """
    require_proved_address(person)
    attempt_count(PLACE, str(person.user_id))
    step = _find_time_step(secret, code, after=0)
    if step is None:
        raise Invalid(errors=[FieldError("code", WRONG)])
    with acting(person.actor), as_person(person.user_id):
        if _totp() is not None:
            raise Conflict("There is a second factor already.")
        user = User.objects.get(id=person.user_id)
        made = TOTP.activate(user, secret).instance
        made.data["last_step"] = step
        made.save(update_fields=["data"])
        codes: list[str] = RecoveryCodes.activate(user).generate_codes()
        BrowserSession.objects.exclude(id=person.session_id).filter(ended_at=None).update(ended_at=Now())
        _record_change(person, Verb.SECOND_FACTOR_ADDED)
    attempts_forget(PLACE, str(person.user_id))
    return codes


def second_factor_pass(*, first: FirstFactor, code: str, request_id: str, address: str) -> None:
    """Check the second factor of a sign-in. Raises Invalid; TooManyAttempts.

    Writes: Authenticator; AuditEntry in each tenant, if the code is refused or is a recovery code.
    """
    last = attempt_count(PLACE, str(first.user_id))
    with no_tenant(), as_person(first.user_id):
        how = _use_code(code)
    if how == Authenticator.Type.TOTP:
        attempts_forget(PLACE, str(first.user_id))
        return
    refused = Verb.SIGN_IN_LOCKED if last else Verb.SIGN_IN_FAILED
    person_event_record(
        user_id=first.user_id,
        verb=Verb.RECOVERY_CODE_USED if how else refused,
        request_id=request_id,
        address=address,
        detail={"way": "second factor"},
        outcome=Outcome.DONE if how else Outcome.DENIED,
    )
    if how is None:
        raise Invalid(errors=[FieldError("code", WRONG)])
    attempts_forget(PLACE, str(first.user_id))


def second_factor_remove(*, person: SignedIn, code: str) -> None:
    """Remove the second factor. Raises Invalid; AddressNotProved; Forbidden where the organisation requires one.

    Writes: AuditEntry.
    """
    require_proved_address(person)
    if person.second_factor_required:
        raise Forbidden("This organisation requires a second factor.", rule="second_factor")
    _check_code(person, code)
    with acting(person.actor), as_person(person.user_id):
        Authenticator.objects.all().delete()  # the policy shows the person's own alone
        _record_change(person, Verb.SECOND_FACTOR_REMOVED)


def recovery_codes_renew(*, person: SignedIn, code: str) -> list[str]:
    """Create new recovery codes and return them; the former ones stop working. Raises Invalid; AddressNotProved.

    Writes: Authenticator, AuditEntry.
    """
    require_proved_address(person)
    _check_code(person, code)
    with acting(person.actor), as_person(person.user_id):
        Authenticator.objects.filter(type=Authenticator.Type.RECOVERY_CODES).delete()
        codes: list[str] = RecoveryCodes.activate(User.objects.get(id=person.user_id)).generate_codes()
        _record_change(person, Verb.RECOVERY_CODES_RENEWED)
    return codes


def factors_forget(*, user_id: UUID) -> bool:
    """Remove the second factor of a person who lost it; only the operator calls this. Writes: AuditEntry in each
    tenant.
    """
    with no_tenant(), as_person(user_id):
        removed, _ = Authenticator.objects.all().delete()
    if removed:
        person_event_record(
            user_id=user_id,
            verb=Verb.SECOND_FACTOR_REMOVED,
            request_id="cli-second-factor",
            address="",
            detail={"by": "operator"},
        )
    return bool(removed)


def _check_code(person: SignedIn, code: str) -> None:
    attempt_count(PLACE, str(person.user_id))
    with acting(person.actor), as_person(person.user_id):
        how = _use_code(code)
    if how is None:
        raise Invalid(errors=[FieldError("code", WRONG)])
    attempts_forget(PLACE, str(person.user_id))


def _totp() -> Authenticator | None:
    return Authenticator.objects.filter(type=Authenticator.Type.TOTP).first()


def _use_code(code: str) -> str | None:
    """Use up a code and return its kind of factor, or None if the code is wrong."""
    row = Authenticator.objects.select_for_update().filter(type=Authenticator.Type.TOTP).first()
    if row is None:
        raise NotFound
    step = _find_time_step(get_adapter().decrypt(row.data["secret"]), code, after=row.data.get("last_step", 0))
    if step is not None:
        row.data["last_step"] = step
        row.save(update_fields=["data"])
        return str(Authenticator.Type.TOTP)
    codes = Authenticator.objects.filter(type=Authenticator.Type.RECOVERY_CODES).first()
    spent = codes is not None and RecoveryCodes(codes).validate_code(code)
    return str(Authenticator.Type.RECOVERY_CODES) if spent else None


def _find_time_step(secret: str, code: str, *, after: int) -> int | None:
    """Return the time step later than `after` whose code this is, or None."""
    for step in yield_hotp_counters_from_time():
        right: bool = compare_user_code(actual=code, expected=format_hotp_value(hotp_value(secret, step)))
        if right and step > after:
            return int(step)
    return None


def _record_change(person: SignedIn, verb: Verb) -> None:
    record(actor=person.actor, verb=verb, object_type="member", object_ids=[person.actor.principal_id])
