"""A small reverse proxy on loopback, with TLS or without, and with the faults of real configurations."""

import datetime
import http.client
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

HOP = frozenset({"connection", "transfer-encoding", "keep-alive", "host", "x-forwarded-proto", "x-forwarded-for"})


@dataclass(frozen=True)
class Manners:
    """The effects of a configuration. path: of the location; strips: removes it; host: `$http_host`, `$host` or `` for
    the address of the server behind; lacks: headers that do not arrive there."""

    path: str = ""
    strips: bool = False
    host: str = "$http_host"
    lacks: frozenset[str] = frozenset()


@contextmanager
def reverse_proxy(port: int, behind: int, manners: Manners, tls: ssl.SSLContext | None = None) -> Iterator[None]:
    """Serve 127.0.0.1:`port` from 127.0.0.1:`behind`."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Log nothing: tests read the answers."""

        def pass_on(self) -> None:
            if not self.path.startswith(f"{manners.path}/"):
                self.send_error(404)
                return
            connection = http.client.HTTPConnection("127.0.0.1", behind, timeout=30)
            path = self.path.removeprefix(manners.path) if manners.strips else self.path
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            connection.putrequest(self.command, path, skip_host=True, skip_accept_encoding=True)
            for name, value in headers_of(self, behind, manners, "https" if tls else "http"):
                connection.putheader(name, value)
            connection.endheaders(body)
            answer = connection.getresponse()
            content = answer.read()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in HOP | {"content-length", "date", "server"}:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)
            connection.close()

        do_GET = do_HEAD = do_POST = do_PATCH = do_DELETE = do_OPTIONS = pass_on  # noqa: N815

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def headers_of(
    request: BaseHTTPRequestHandler, behind: int, manners: Manners, scheme: str
) -> Iterator[tuple[str, str]]:
    asked = request.headers.get("host", "")
    hosts = {"$http_host": asked, "$host": asked.partition(":")[0], "": f"127.0.0.1:{behind}"}
    sent = [(name, value) for name, value in request.headers.items() if name.lower() not in HOP]
    sent += [("Host", hosts[manners.host]), ("X-Forwarded-Proto", scheme)]
    sent += [("X-Forwarded-For", str(request.client_address[0]))]
    return (item for item in sent if item[0].lower() not in manners.lacks)


@dataclass(frozen=True)
class Certificate:
    """One that signs itself, of a host. file: what its clients trust."""

    file: Path
    context: ssl.SSLContext


def certificate_make(folder: Path, host: str) -> Certificate:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.DNSName(host), x509.IPAddress(ip_address("127.0.0.1"))]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file, secret = folder / "proxy.pem", folder / "proxy.key"
    file.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    secret.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file, secret)
    return Certificate(file, context)
