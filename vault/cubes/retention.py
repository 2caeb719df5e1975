"""Retention of memories: the expiry that policies set on a write, and the longest expiry that they allow."""

from datetime import datetime

from governance.errors import FieldError, Invalid, NotFound
from governance.policies.active import ActivePolicies, policies_in_force
from governance.policies.rules import Expiry, Facts, Lifetime, exceeds, expiry_under, lifetime_of
from vault.models import Cube


def facts_of(cube: Cube) -> Facts:
    """Return the facts that policies compare; the cube's namespace is loaded with it."""
    return Facts(
        namespace=cube.namespace.path,
        type=cube.type,
        semantic_type=cube.semantic_type,
        sensitivity=cube.sensitivity,
        tags=frozenset(cube.tags),
    )


def expiry_settle(policies: ActivePolicies, cube: Cube, *, born: datetime, asked: bool) -> None:
    """Set expiry and retention class of a cube before it is written.

    asked: the call itself sets `expires_at`. Raises Invalid if that is later than the policies allow.
    """
    if asked:
        cube.expiry_policy = None
    if not policies.retention and cube.expiry_policy is None:
        return
    lifetime = lifetime_of(policies.retention, facts_of(cube))
    if asked and cube.expires_at is not None and lifetime is not None:
        _refuse_longer(lifetime, born=born, at=cube.expires_at)
    expiry = expiry_under(lifetime, born=born, present=Expiry(cube.expires_at, cube.expiry_policy))
    cube.expires_at, cube.expiry_policy = expiry.at, expiry.policy_id
    cube.retention_class = lifetime.retention_class if lifetime else ""


def refuse_after_grace(cube: Cube, now: datetime) -> None:
    """Raise NotFound if a policy gives deleted cubes a shorter grace period, and that of this cube has ended."""
    lifetime = lifetime_of(policies_in_force().retention, facts_of(cube))
    grace = lifetime.grace if lifetime else None
    if grace is not None and cube.deleted_at is not None and now > cube.deleted_at + grace:
        raise NotFound


def _refuse_longer(lifetime: Lifetime, *, born: datetime, at: datetime) -> None:
    if exceeds(lifetime, born=born, at=at) and lifetime.maximum is not None:
        latest = (born + lifetime.maximum).isoformat(timespec="seconds")
        raise Invalid(errors=[FieldError("expires_at", f"at the latest {latest}, by {lifetime.rule}")])
