"""The environment: what is unknown or unusable is refused, by name."""

import base64
import socket
import ssl
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any

import psycopg
import pytest
from kombu.connection import Connection
from kombu.exceptions import OperationalError
from redis import RedisError

from memos_web.config import LONGEST_SOCKET_PATH, ConfigError, read_config
from memos_web.installation import address_write, missing, public_url, secrets_make
from memos_web.settings.databases import broker_settings, databases, redis_address
from tests.harness.cases import each_case
from tests.harness.reverse_proxy import certificate_make
from tests.harness.servers import ROOT, Servers

KEY = base64.b64encode(bytes(32)).decode()


def test_an_empty_environment_is_a_working_installation() -> None:
    config = read_config({})
    assert (config.host, config.port, config.database_role) == ("127.0.0.1", 8000, "app")
    assert config.address == "http://127.0.0.1:8000"
    assert config.embedder.family == "universal-sentence-encoder"
    assert (config.llm.url, config.master_key, config.trusted_proxy) == ("", None, False)


@pytest.mark.parametrize("name", ["MEMOS_PROT", "MEMOS_", "MEMOS_LLM", "MEMOS_port"])
def test_an_unknown_setting_is_refused_by_name(name: str) -> None:
    with pytest.raises(ConfigError, match=f"unknown setting {name};.*MEMOS_PORT"):
        read_config({name: "1"})


def test_the_settings_of_a_client_in_the_same_shell_are_ignored() -> None:
    assert read_config({"MEMOS_URL": "http://127.0.0.1:8000", "MEMOS_API_KEY": "mos_x"}).port == 8000


def test_the_default_data_directory_is_the_projects_wherever_one_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert read_config({}).data_dir == ROOT / "var"
    assert read_config({"MEMOS_DATA_DIR": "here"}).data_dir == tmp_path / "here"


@pytest.mark.parametrize(
    ("host", "allowed", "address"),
    [
        ("0.0.0.0", "", "http://127.0.0.1:8000"),
        ("0.0.0.0", "*, .example.org, memos.lan", "http://memos.lan:8000"),
        ("::", "", "http://[::1]:8000"),
        ("::", "[fd00::7]", "http://[fd00::7]:8000"),
        ("fd00::7", "memos.lan", "http://[fd00::7]:8000"),
        ("127.0.0.1", "memos.lan", "http://127.0.0.1:8000"),
    ],
)
def test_the_address_in_links_can_be_opened(host: str, allowed: str, address: str) -> None:
    assert read_config({"MEMOS_HOST": host, "MEMOS_ALLOWED_HOSTS": allowed}).address == address


def test_links_use_the_servers_own_address_unless_configured(tmp_path: Path) -> None:
    folder = {"MEMOS_DATA_DIR": str(tmp_path)}
    address_write(read_config({**folder, "MEMOS_PORT": "8300"}))
    assert public_url(read_config(folder)) == "http://127.0.0.1:8300"
    assert public_url(read_config({**folder, "MEMOS_PORT": "8301"})) == "http://127.0.0.1:8300"
    assert public_url(read_config({**folder, "MEMOS_PUBLIC_URL": "https://a.example"})) == "https://a.example"


def test_an_installation_has_both_secrets_and_keeps_them(tmp_path: Path) -> None:
    config = read_config({"MEMOS_DATA_DIR": str(tmp_path)})
    assert str(tmp_path) in missing(config)
    secrets_make(config)
    made = {path.name: path.read_text(encoding="utf-8") for path in (tmp_path / "keys").iterdir()}
    assert set(made) == {"master.key", "django.key"}
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "keys").iterdir()} == {0o600}
    secrets_make(config)
    assert {path.name: path.read_text(encoding="utf-8") for path in (tmp_path / "keys").iterdir()} == made
    assert missing(config) == ""
    (tmp_path / "keys" / "django.key").unlink()
    assert missing(config) != ""
    (tmp_path / "keys" / "keystore.sqlite3").touch()
    assert "sign in again" in secrets_make(config)
    assert secrets_make(config) == ""
    (tmp_path / "keys" / "django.key").unlink()
    assert missing(read_config({"MEMOS_DATA_DIR": str(tmp_path), "MEMOS_SECRET_KEY": "given"})) == ""


def test_other_programs_settings_are_none_of_its_business() -> None:
    assert read_config({"PATH": "/bin", "NOT_MEMOS_PORT": "x"}).port == 8000


@each_case(
    ("name", "value"),
    [
        ("MEMOS_PORT", "0"),
        ("MEMOS_PORT", "65536"),
        ("MEMOS_PORT", "-1"),
        ("MEMOS_PORT", "http"),
        ("MEMOS_PORT", ""),
        ("MEMOS_PORT", "²"),
        ("MEMOS_TRUSTED_PROXY", "maybe"),
        ("MEMOS_DATABASE_ROLE", "superuser"),
        ("MEMOS_ALLOW_PRIVATE_ADDRESSES", "perhaps"),
        ("MEMOS_MAIL_URL", "mail.example"),
        ("MEMOS_MAIL_URL", "http://mail.example"),
        ("MEMOS_MAIL_URL", "smtp://mail.example:many"),
        ("MEMOS_EMBEDDER", "magic"),
        ("MEMOS_EMBEDDER", ""),
        ("MEMOS_EMBEDDER", "sentence-transformers"),
        ("MEMOS_EMBEDDER", "openai"),
        ("MEMOS_EMBEDDER", "openai/text-embedding"),  # and no address
        ("MEMOS_MASTER_KEY", "short"),
        ("MEMOS_MASTER_KEY", KEY[:-4]),
        ("MEMOS_MASTER_KEY", "☃"),
        ("REDIS_URL", "redis://127.0.0.1:6379/2"),
        ("REDIS_URL", "redis://127.0.0.1:6379?db=2"),
        ("REDIS_URL", "redis://[::1"),
        ("REDIS_URL", "memcached://127.0.0.1"),
        ("REDIS_URL", "sentinel://127.0.0.1"),
        ("REDIS_URL", "sentinel://127.0.0.1/memos/2"),
        ("REDIS_URL", "sentinel://127.0.0.1,/memos"),
        ("REDIS_URL", "sentinel://127.0.0.1/memos?password=p"),
        ("REDIS_URL", "redis+cluster://127.0.0.1:6379"),
    ],
)
def test_a_bad_value_is_one_line_that_names_the_setting(name: str, value: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        read_config({name: value})
    message = str(refusal.value)
    assert name in message
    assert "\n" not in message
    if name == "MEMOS_MASTER_KEY":
        assert value not in message


def test_values_are_read_as_what_they_are() -> None:
    config = read_config(
        {
            "MEMOS_PORT": "9000",
            "MEMOS_HOST": "0.0.0.0",
            "MEMOS_TRUSTED_PROXY": "YES",
            "MEMOS_ALLOWED_HOSTS": "a.example, b.example",
            "MEMOS_PUBLIC_URL": "https://a.example/",
            "MEMOS_MASTER_KEY": KEY,
            "MEMOS_EMBEDDER": "openai/small",
            "MEMOS_LLM_URL": "http://127.0.0.1:1/v1",
            "MEMOS_LLM_KEY": "k",
            "MEMOS_LLM_MODEL": "m",
        }
    )
    assert (config.port, config.trusted_proxy, config.allowed_hosts) == (9000, True, ("a.example", "b.example"))
    assert (config.public_url, config.master_key) == ("https://a.example", bytes(32))
    assert (config.embedder.model, config.embedder.url, config.embedder.key) == (
        "small",
        "http://127.0.0.1:1/v1",
        "k",
    )


def test_the_socket_lies_in_the_data_directory_unless_its_path_is_too_long(tmp_path: Path) -> None:
    assert read_config({"MEMOS_DATA_DIR": "/srv/memos"}).socket_dir == Path("/srv/memos/run")
    long = read_config({"MEMOS_DATA_DIR": f"/srv/{'x' * LONGEST_SOCKET_PATH}"}).socket_dir
    assert len(str(long)) <= LONGEST_SOCKET_PATH
    assert long != read_config({"MEMOS_DATA_DIR": f"/srv/{'y' * LONGEST_SOCKET_PATH}"}).socket_dir


@pytest.mark.parametrize(
    ("environ", "name"),
    [
        ({"DATABASE_URL": "mysql://a@b/c"}, "DATABASE_URL"),
        ({"DATABASE_URL": "nonsense"}, "DATABASE_URL"),
        ({"DATABASE_URL": "postgresql://a@b/c", "MEMOS_DATABASE_ROLE": "owner"}, "DATABASE_OWNER_URL"),
        ({"DATABASE_URL": "postgresql://a@b:port/c"}, "DATABASE_URL"),
    ],
)
def test_a_database_address_that_is_none_is_refused_by_name(environ: dict[str, str], name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        databases(read_config(environ))


def test_address_of_several_hosts_is_read_as_libpq_does() -> None:
    hosts = "postgresql://memos_app:a%40b@one:5433,two:5434/memos"
    url = f"{hosts}?target_session_attrs=read-write&sslmode=verify-full"
    entry = databases(read_config({"DATABASE_URL": url}))["default"]
    assert (entry["HOST"], entry["PORT"], entry["NAME"]) == ("one,two", "5433,5434", "memos")
    assert (entry["USER"], entry["PASSWORD"]) == ("memos_app", "a@b")
    assert (entry["OPTIONS"]["target_session_attrs"], entry["OPTIONS"]["sslmode"]) == ("read-write", "verify-full")


def test_first_host_that_answers_is_used(servers: Servers) -> None:
    place = servers.postgres
    url = f"postgresql://memos_app@/postgres?host={place.folder},{place.socket_dir}&port=1,{place.port}"
    entry = databases(read_config({"DATABASE_URL": url}))["default"]
    with psycopg.connect(host=entry["HOST"], port=entry["PORT"], user=entry["USER"], dbname=entry["NAME"]) as session:
        assert session.info.host == str(place.socket_dir)


def test_the_owner_is_connected_only_where_it_is_asked_for() -> None:
    environ = {
        "DATABASE_URL": "postgresql://memos_app@db/memos",
        "DATABASE_OWNER_URL": "postgresql://memos_owner@db/memos",
    }
    assert databases(read_config(environ))["default"]["USER"] == "memos_app"
    as_owner = databases(read_config({**environ, "MEMOS_DATABASE_ROLE": "owner"}))["default"]
    assert (as_owner["USER"], "pool" in as_owner["OPTIONS"]) == ("memos_owner", False)


def test_redis_is_the_given_one_or_the_embedded_one() -> None:
    given = read_config({"REDIS_URL": "redis://:p@cache:6379/"})
    assert redis_address(given, 1) == "redis://:p@cache:6379/1"
    assert broker_settings(given)["CELERY_BROKER_URL"] == "redis://:p@cache:6379/0"
    embedded = read_config({"MEMOS_DATA_DIR": "/srv/memos"})
    assert redis_address(embedded, 1) == "unix:///srv/memos/run/redis.sock?db=1"


def test_sentinels_name_the_primary_for_all_uses_of_redis() -> None:
    given = read_config({"REDIS_URL": "sentinel://:p%40ss@one,two:26380,[::1]/memos?sentinel_password=s"})
    assert redis_address(given, 1) == "sentinel://:p%40ss@one,two:26380,[::1]/memos/1?sentinel_password=s"
    celery = broker_settings(given)
    addresses = [f"sentinel://:p%40ss@{host}/0" for host in ("one:26379", "two:26380", "[::1]:26379")]
    assert celery["CELERY_BROKER_URL"] == ";".join(addresses)
    options = celery["CELERY_BROKER_TRANSPORT_OPTIONS"]
    assert (options["master_name"], options["sentinel_kwargs"]["password"]) == ("memos", "s")


@pytest.mark.parametrize("address", ["rediss://:p@127.0.0.1:{}", "sentinels://:p@127.0.0.1:{}/memos"])
def test_celery_speaks_with_a_redis_whose_certificate_is_trusted_and_with_no_other(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("redis.retry.sleep", lambda _: None)
    made, greeted = certificate_make(tmp_path, "127.0.0.1"), list[bool]()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        Thread(target=_greet, args=(listener, made.context, greeted), daemon=True).start()
        settings = broker_settings(read_config({"REDIS_URL": address.format(listener.getsockname()[1])}))
        _connect_celery(settings)
        assert greeted
        assert not any(greeted), "nobody vouches for this certificate"
        monkeypatch.setenv("SSL_CERT_FILE", str(made.file))
        _connect_celery(settings)
        assert greeted[-1]


def _greet(listener: socket.socket, context: ssl.SSLContext, greeted: list[bool]) -> None:
    """Begin TLS with whoever comes, until the listener is closed. greeted: whether each took the certificate."""
    with suppress(OSError):
        while True:
            peer, _ = listener.accept()
            with peer:
                try:
                    with context.wrap_socket(peer, server_side=True) as secured:
                        secured.recv(1)  # a client that refuses says so after its part
                    greeted.append(True)
                except OSError:
                    greeted.append(False)


def _connect_celery(settings: dict[str, Any]) -> None:
    """Connect to what is no Redis, which fails in any case."""
    options = {**settings["CELERY_BROKER_TRANSPORT_OPTIONS"], "max_retries": 1, "interval_start": 0}
    with (
        Connection(  # type: ignore[no-untyped-call]
            settings["CELERY_BROKER_URL"], ssl=settings["CELERY_BROKER_USE_SSL"], transport_options=options
        ) as connection,
        pytest.raises((RedisError, OperationalError, OSError)),
    ):
        connection.default_channel.client.ping()


def test_a_model_without_a_name_is_refused_at_the_start() -> None:
    with pytest.raises(ConfigError, match="MEMOS_LLM_MODEL"):
        read_config({"MEMOS_LLM_URL": "http://127.0.0.1:1/v1"})


def test_no_secret_stands_in_its_repr() -> None:
    secret = "hush-hush"
    shown = repr(
        read_config(
            {
                "DATABASE_URL": f"postgresql://memos_app:{secret}@db/memos",
                "DATABASE_OWNER_URL": f"postgresql://memos_owner:{secret}@db/memos",
                "REDIS_URL": f"redis://:{secret}@cache:6379",
                "MEMOS_LLM_KEY": secret,
                "MEMOS_EMBEDDER_KEY": secret,
                "MEMOS_SECRET_KEY": secret,
                "MEMOS_MASTER_KEY": KEY,
            }
        )
    )
    assert secret not in shown
    assert "master_key" not in shown


@pytest.mark.parametrize(
    ("url", "port", "tls", "starttls"),
    [
        ("smtp://me:p%40ss@mail.example", 587, False, True),
        ("smtps://me:p%40ss@mail.example", 465, True, False),
        ("smtp://me:p%40ss@localhost:25", 25, False, False),
    ],
)
def test_mail_goes_to_the_configured_server_and_is_encrypted_off_this_machine(
    url: str, port: int, tls: bool, starttls: bool
) -> None:
    mail = read_config({"MEMOS_MAIL_URL": url}).mail
    assert (mail.port, mail.tls, mail.starttls, mail.user, mail.password) == (port, tls, starttls, "me", "p@ss")
    assert "p@ss" not in repr(mail)


def test_mail_without_a_server_is_written_to_files() -> None:
    assert "filebased" in read_config({"MEMOS_MAIL_FROM": ""}).mail.backend
    assert read_config({"MEMOS_MAIL_FROM": ""}).mail.sender == "memos@localhost"
