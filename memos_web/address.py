"""The address at which people open the product, and the settings that follow from it."""

import hashlib
from dataclasses import dataclass
from urllib.parse import urlsplit


@dataclass(frozen=True)
class PublicAddress:
    """`SCHEME://NETLOC/PATH`; path: "" or "/memos"."""

    scheme: str
    netloc: str
    hostname: str
    path: str

    @property
    def origin(self) -> str:
        return f"{self.scheme}://{self.netloc}"


def read_address(url: str) -> PublicAddress:
    """The parts of an address that `memos_web.config` has checked. The port of the scheme itself is left out."""
    parts = urlsplit(url.lower())
    default = {"http": 80, "https": 443}[parts.scheme]
    netloc = parts.netloc.removesuffix(f":{default}") if parts.port == default else parts.netloc
    return PublicAddress(parts.scheme, netloc, parts.hostname or "", urlsplit(url).path)


def address_settings(url: str, secret: str) -> dict[str, object]:
    """Django's settings for an installation at `url`.

    Cookies are named for the installation: browsers send them to every port of a host, so that two installations on one
    machine would end each other's sessions.
    """
    address = read_address(url)
    tag = hashlib.sha256(b"names of cookies" + secret.encode()).hexdigest()[:8]
    is_secure = address.scheme == "https"
    return {
        "FORCE_SCRIPT_NAME": address.path or None,
        "STATIC_URL": f"{address.path}/static/",
        "CSRF_TRUSTED_ORIGINS": [address.origin],
        "INSTALLATION_TAG": tag,
        "SESSION_COOKIE_NAME": f"memos_session_{tag}",
        "CSRF_COOKIE_NAME": f"memos_csrf_{tag}",
        "SESSION_COOKIE_SECURE": is_secure,
        "CSRF_COOKIE_SECURE": is_secure,
        **{f"{kind}_COOKIE_PATH": f"{address.path}/" for kind in ("SESSION", "CSRF", "LANGUAGE")},
    }
