"""A small OpenID Connect server on loopback: discovery, keys, codes for tokens; it can be told to misbehave."""

import json
import threading
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

CLIENT_ID, SECRET = "memos", "the secret of the client"
KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)


@dataclass
class OidcServer:
    """`claims`: what it says of whoever signs in. `asked`: the last request of a browser, as its parameters."""

    port: int
    claims: dict[str, Any] = field(default_factory=dict)
    token: dict[str, Any] = field(default_factory=dict)  # of the id token, over what is right
    issuer_told: str = ""
    signs_with: Any = KEY
    algorithm: str = "RS256"
    asked: dict[str, str] = field(default_factory=dict)
    token_requests: list[dict[str, str]] = field(default_factory=list)

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def authorize(self, address: str) -> str:
        """Return the callback's path and query after a browser visits `address`."""
        self.asked = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        back = urlsplit(self.asked["redirect_uri"])
        return f"{back.path}?code=the-code&state={self.asked['state']}"

    def answer(self, path: str, body: dict[str, str]) -> tuple[int, dict[str, Any]]:
        if path == "/.well-known/openid-configuration":
            return 200, self._discovery()
        if path == "/keys":
            public = json.loads(RSAAlgorithm.to_jwk(KEY.public_key()))
            return 200, {"keys": [{**public, "kid": "1", "alg": "RS256", "use": "sig"}]}
        if path == "/token":
            return self._token(body)
        return 404, {}

    def _discovery(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer_told or self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            "token_endpoint_auth_methods_supported": ["client_secret_post"],
        }

    def _token(self, body: dict[str, str]) -> tuple[int, dict[str, Any]]:
        self.token_requests.append(body)
        challenge = urlsafe_b64encode(sha256(body.get("code_verifier", "").encode()).digest()).rstrip(b"=").decode()
        right = (body.get("client_secret"), body.get("code"), challenge)
        if right != (SECRET, "the-code", self.asked.get("code_challenge")):
            return 400, {"error": "invalid_grant"}
        claims = {
            "iss": self.issuer,
            "aud": CLIENT_ID,
            "exp": int(time.time()) + 300,
            "iat": int(time.time()),
            "nonce": self.asked.get("nonce"),
            **self.claims,
            **self.token,
        }
        signed = jwt.encode(claims, self.signs_with, algorithm=self.algorithm, headers={"kid": "1"})
        return 200, {"access_token": "a", "token_type": "Bearer", "id_token": signed}


@contextmanager
def oidc_server() -> Iterator[OidcServer]:
    """One that runs until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._send(*told.answer(self.path, {}))

        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length", "0"))
            parsed = parse_qs(self.rfile.read(length).decode())
            self._send(*told.answer(self.path, {name: values[0] for name, values in parsed.items()}))

        def _send(self, status: int, body: dict[str, Any]) -> None:
            content = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            """Write no line to standard error."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    told = OidcServer(port=server.server_port)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield told
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=5)
