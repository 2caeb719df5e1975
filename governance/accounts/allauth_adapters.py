"""Adapters of django-allauth: they seal its secrets, and read its providers from the tenants."""

from base64 import b64decode, b64encode
from functools import lru_cache
from uuid import UUID

from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialApp
from django.http import HttpRequest
from requests import Session

from governance.database import current_person
from governance.keys.rules import DataKey, seal, unseal
from governance.keys.services import SECOND_FACTORS, installation_secret
from governance.requests_adapter import OutgoingSession


class SealedFactors(DefaultMFAAdapter):  # type: ignore[misc]
    """Encrypts TOTP keys and seeds of recovery codes, with a key derived from the master key for the person."""

    def encrypt(self, text: str) -> str:
        return b64encode(seal(_key(), text.encode(), place=_sealing_context())).decode()

    def decrypt(self, encrypted_text: str) -> str:
        """Decrypt a stored secret. Raises SealBroken for a row that was changed or belongs to another person."""
        return unseal(_key(), b64decode(encrypted_text), place=_sealing_context()).decode()


class TenantProviders(DefaultSocialAccountAdapter):  # type: ignore[misc]
    """Returns the provider of the request's tenant, which our view sets; allauth's own rows are not used."""

    def list_apps(
        self, request: HttpRequest, provider: str | None = None, client_id: str | None = None
    ) -> list[SocialApp]:
        app: SocialApp | None = getattr(request, "oidc_app", None)
        return [app] if app is not None and provider in {None, app.provider, app.provider_id} else []

    def get_requests_session(self) -> Session:
        return OutgoingSession()


@lru_cache(maxsize=1)
def _key() -> DataKey:
    return DataKey(id=UUID(int=0), secret=installation_secret(SECOND_FACTORS))


def _sealing_context() -> bytes:
    return b"second factor" + current_person().bytes
