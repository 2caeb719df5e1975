"""Dockerfile and docker-compose.yml: no engine is needed to see that they keep their promises."""

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from fnmatch import fnmatch
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from governance.vocabulary import Weight
from memos_web.config import KNOWN_VARIABLES
from tests.harness.servers import ROOT, clean_environ
from tests.production.site import VOLUMES

COMPOSE = ROOT / "docker-compose.yml"
ADDRESSES = {"DATABASE_URL", "DATABASE_DIRECT_URL", "DATABASE_READ_URL", "DATABASE_OWNER_URL", "REDIS_URL"}
OF_UVICORN = {"FORWARDED_ALLOW_IPS"}
OF_TELEMETRY = {
    "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_HEADERS",
    "OTEL_SERVICE_NAME", "OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG", "OTEL_SDK_DISABLED",
}  # fmt: skip
# Read, and not for the containers that serve: the image or the compose file decides them.
NOT_PASSED = {"MEMOS_DATABASE_ROLE", "MEMOS_DATA_DIR", "MEMOS_HOST", "MEMOS_PORT", "MEMOS_WEB_PROCESSES"}
# Whoever serves cannot delete backups.
OF_BACKUPS = {"MEMOS_BACKUP_STORE_KEY", "MEMOS_BACKUP_STORE_REGION", "MEMOS_BACKUP_STORE_URL"}
OF_CLIENTS = {"MEMOS_URL", "MEMOS_API_KEY"}
OF_ENGINE = {"MEMOS_ENGINE_MODEL"}  # read by the local engine, which is a program of its own
SERVING = ("web", "worker", "worker-heavy", "beat")


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))
    return found


@pytest.fixture(scope="module")
def dockerfile() -> list[str]:
    """Its instructions, continued lines joined."""
    text = re.sub(r"\\\n\s*", "", (ROOT / "Dockerfile").read_text(encoding="utf-8"))
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def test_the_compose_file_follows_the_official_schema(compose: dict[str, Any]) -> None:
    spec = importlib.util.find_spec("check_jsonschema")  # the package carries the schema
    assert spec is not None
    assert spec.origin is not None
    schema = Path(spec.origin).parent / "builtin_schemas" / "vendor" / "compose-spec.json"
    jsonschema.validate(compose, json.loads(schema.read_text(encoding="utf-8")))


def test_only_migrate_knows_the_owners_address(compose: dict[str, Any]) -> None:
    services = compose["services"]
    knowing = {name for name, service in services.items() if "DATABASE_OWNER_URL" in service.get("environment", {})}
    assert knowing == {"migrate"}
    for name in SERVING:
        assert "memos_owner" not in json.dumps(services[name])
        assert "MEMOS_DATABASE_ROLE" not in services[name]["environment"]


def test_migrate_knows_no_key(compose: dict[str, Any]) -> None:
    assert set(compose["services"]["migrate"]["environment"]) == {"MEMOS_DATABASE_ROLE", "DATABASE_OWNER_URL"}


def test_the_product_starts_after_its_tables_and_its_servers(compose: dict[str, Any]) -> None:
    for name in SERVING:
        conditions = {other: how["condition"] for other, how in compose["services"][name]["depends_on"].items()}
        assert conditions == {
            "postgres": "service_healthy",
            "redis": "service_healthy",
            "migrate": "service_completed_successfully",
        }


def test_every_service_tells_how_it_fares_or_says_that_it_cannot(compose: dict[str, Any]) -> None:
    for name, service in compose["services"].items():
        own = "healthcheck" in service
        assert own or name == "web", name  # web has the image's


def test_the_workers_take_every_queue_once(compose: dict[str, Any]) -> None:
    commands = [compose["services"][name]["command"] for name in ("worker", "worker-heavy")]
    taken = [queue for command in commands for queue in command[command.index("-Q") + 1].split(",")]
    assert sorted(taken) == sorted(Weight)


def test_every_variable_given_to_the_product_is_one_that_it_reads(compose: dict[str, Any]) -> None:
    for name in (*SERVING, "migrate"):
        given = set(compose["services"][name]["environment"])
        assert given <= (KNOWN_VARIABLES - OF_BACKUPS) | ADDRESSES | OF_UVICORN | OF_TELEMETRY


@pytest.mark.parametrize("name", [*SERVING, "backup"])
def test_every_variable_that_the_product_reads_is_given_to_its_containers(compose: dict[str, Any], name: str) -> None:
    given = set(compose["services"][name]["environment"])
    assert (KNOWN_VARIABLES | OF_TELEMETRY) - NOT_PASSED - given == (set() if name == "backup" else OF_BACKUPS)


def test_every_variable_of_the_documents_is_one_that_is_read(compose: dict[str, Any]) -> None:
    """A name that is misspelt in a document would be set in vain."""
    documents = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    named = {name for path in documents for name in re.findall(r"\b(?:MEMOS|OTEL)_[A-Z_]*[A-Z]\b", path.read_text())}
    assert {"MEMOS_MASTER_KEY", "OTEL_SERVICE_NAME"} <= named, "the search finds what is there"
    assert named - KNOWN_VARIABLES - OF_TELEMETRY - OF_CLIENTS - OF_ENGINE == set()


def test_the_server_of_the_database_logs_no_content(compose: dict[str, Any]) -> None:
    command = compose["services"]["postgres"]["command"]
    assert {"log_min_error_statement=panic", "log_error_verbosity=terse", "jit=off"} <= set(command)


def test_backups_are_written_where_the_compose_file_mounts_them(compose: dict[str, Any]) -> None:
    backup = compose["services"]["backup"]
    _, script, folder, copies, *_ = backup["command"]
    assert (ROOT / script).is_file()
    assert backup["volumes"][: len(VOLUMES)] == compose["services"]["web"]["volumes"]
    mounted = [volume.rpartition(":")[2] for volume in backup["volumes"][len(VOLUMES) :]]
    assert [f"${{BACKUP_PLACE:-{mounted[0]}}}", f"${{KEY_COPIES_PLACE:-{mounted[1]}}}"] == [folder, copies]
    assert backup["healthcheck"]["test"] == ["CMD", "python", script, folder, copies, "--check"]


def test_every_secret_comes_from_the_environment_and_must_be_set() -> None:
    text = COMPOSE.read_text(encoding="utf-8")
    asked = re.findall(r"\$\{(\w*(?:PASSWORD|SECRET_KEY|MASTER_KEY))(\S)", text)
    assert {name for name, _ in asked} >= {"POSTGRES_PASSWORD", "REDIS_PASSWORD", "MEMOS_MASTER_KEY"}
    optional = {"DATABASE_BACKUP_PASSWORD", "MEMOS_NEXT_MASTER_KEY"}  # of one profile, and of a rotation
    assert {mark for _, mark in asked} == {":"}
    required = [name for name, _ in asked if name not in optional]
    assert len(re.findall(r"\$\{\w*(?:PASSWORD|SECRET_KEY|MASTER_KEY):\?", text)) == len(required)
    assert not re.search(r"(?:PASSWORD|_KEY): [^$\s]", text)


def test_data_and_keys_outlive_their_containers(compose: dict[str, Any]) -> None:
    services = compose["services"]
    assert set(compose["volumes"]) == {"postgres", "redis", "backups", "key-copies", *VOLUMES}
    assert "postgres:/var/lib/postgresql" in services["postgres"]["volumes"]
    assert "redis:/data" in services["redis"]["volumes"]
    for name in SERVING:
        assert services[name]["volumes"] == [f"{volume}:/data/{volume}" for volume in VOLUMES]


# None of them in a container; the engine on the same machine leaves its token.
OF_EMBEDDED_SERVERS = {"pg", "redis", "run", "logs", "first-run.json", "address", "lock", "engine-token"}


def test_every_folder_of_the_data_directory_that_code_names_is_a_volume() -> None:
    """Else its first write fails in a container, whose other files are read-only."""
    named = re.compile(r"(?:DATA_DIR\)?|data_dir) / \"([^\"]+)\"")
    found = {
        name: path.relative_to(ROOT)
        for package in ("governance", "vault", "memos_web")
        for path in (ROOT / package).rglob("*.py")
        for name in named.findall(path.read_text(encoding="utf-8"))
    }
    assert {"keys", "checkpoints", "receipts"} <= found.keys(), "the search finds what is there"
    assert set(found) - OF_EMBEDDED_SERVERS <= set(VOLUMES), found


def test_a_proxy_on_this_machine_is_believed_and_nobody_else(compose: dict[str, Any]) -> None:
    (network,) = compose["networks"]["default"]["ipam"]["config"]
    (gateway,) = re.fullmatch(r"\$\{CONTAINER_GATEWAY:-(.+)\}", network["gateway"]).groups()  # type: ignore[union-attr]
    (subnet,) = re.fullmatch(r"\$\{CONTAINER_SUBNET:-(.+)\}", network["subnet"]).groups()  # type: ignore[union-attr]
    assert ip_address(gateway) in ip_network(subnet)
    believed = compose["services"]["web"]["environment"]["FORWARDED_ALLOW_IPS"]
    assert believed == f"${{FORWARDED_ALLOW_IPS:-${{CONTAINER_GATEWAY:-{gateway}}}}}"


def test_folders_of_the_volumes_belong_to_the_account_of_the_image(dockerfile: list[str]) -> None:
    """A new volume takes its owner from the folder that it hides."""
    (made,) = [line for line in dockerfile if "install --directory" in line]
    assert "--owner memos" in made
    assert {*(f"/data/{volume}" for volume in VOLUMES), "/backups", "/key-copies"} <= set(made.split())


def test_only_the_web_server_is_published_and_only_on_loopback(compose: dict[str, Any]) -> None:
    published = {name: service["ports"] for name, service in compose["services"].items() if "ports" in service}
    assert list(published) == ["web"]
    assert all(port.startswith("127.0.0.1:") for port in published["web"])


def test_every_path_that_is_mounted_from_the_project_exists(compose: dict[str, Any]) -> None:
    mounted = [volume for service in compose["services"].values() for volume in service.get("volumes", [])]
    here = [volume.split(":")[0] for volume in mounted if volume.startswith("./")]
    assert here
    assert all((ROOT / path).exists() for path in here)


def test_the_script_for_the_database_may_be_executed() -> None:
    assert (ROOT / "deploy" / "init-database.sh").stat().st_mode & 0o111 == 0o111


def test_the_image_installs_by_hash_and_runs_as_nobody_special(dockerfile: list[str]) -> None:
    assert all(line.startswith(("FROM python:3.11-slim", "FROM packages")) for line in dockerfile if "FROM" in line[:5])
    install = next(line for line in dockerfile if "pip install" in line)
    assert "--require-hashes" in install
    copied = next(line for line in dockerfile if line.startswith("COPY requirements/"))
    locks = [ROOT / word for word in copied.split() if word.endswith(".txt")]
    packages = {path.stem: set(re.findall(r"(?m)^([a-z0-9.-]+)==", path.read_text(encoding="utf-8"))) for path in locks}
    assert packages["milvus"] >= packages["base"] | {"pymilvus"}, "the image of installations with Milvus"
    user = next(index for index, line in enumerate(dockerfile) if line == "USER 10001:10001")
    assert any("--uid 10001 --user-group" in line for line in dockerfile), "the number is that of the account"
    assert all(not line.startswith(("RUN", "COPY")) for line in dockerfile[user:])
    assert any("DJANGO_SETTINGS_MODULE=memos_web.settings.production" in line for line in dockerfile)


def test_no_secret_is_part_of_the_image(dockerfile: list[str]) -> None:
    assert not [line for line in dockerfile if re.search(r"(PASSWORD|SECRET|MASTER_KEY|_URL)\b", line)]
    allowed = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert "*" in allowed
    named = {line[1:] for line in allowed if line.startswith("!")}
    assert all((ROOT / name).exists() for name in named)
    assert not [name for name in named if name.startswith((".", "var"))]


def test_what_the_image_runs_is_in_it(dockerfile: list[str]) -> None:
    check = next(line for line in dockerfile if line.startswith("HEALTHCHECK"))
    assert "deploy/healthcheck.py" in check
    assert (ROOT / "deploy" / "healthcheck.py").exists()
    command = next(line for line in dockerfile if line.startswith("CMD"))
    assert json.loads(command.removeprefix("CMD "))[:2] == ["uvicorn", "memos_web.asgi:application"]


def test_every_command_of_the_image_finds_what_it_imports(tmp_path: Path) -> None:
    """`help` loads them all. `benchmark` and `train` need a checkout, and are no commands of the image."""
    app = tmp_path / "app"
    _copy_context(app)
    for words, code in (("help",), 0), (("benchmark", "ingest"), 1):
        done = subprocess.run(
            [sys.executable, "manage.py", *words],
            cwd=app,
            env=clean_environ(),
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        assert ("Unknown command: 'benchmark'" in done.stderr) == (words[0] == "benchmark")
        assert not re.search(r"^ +(?:benchmark|train) ", done.stdout, flags=re.MULTILINE)


def _copy_context(folder: Path) -> None:
    """Copy what `COPY .` takes: the files that .dockerignore lets in."""
    lines = [line for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines() if line[0] != "#"]
    refused = [line.removeprefix("**/") for line in lines if not line.startswith("!") and line != "*"]

    def list_ignored(place: str, names: list[str]) -> list[str]:
        within = Path(place).relative_to(ROOT)
        return [
            name
            for name in names
            if any(fnmatch(path, line) for path in (name, str(within / name)) for line in refused)
        ]

    for path in (ROOT / line[1:] for line in lines if line.startswith("!")):
        target = folder / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            shutil.copytree(path, target, ignore=list_ignored)
        else:
            shutil.copy(path, target)
