"""The units of deploy/systemd, read and, where systemd is installed, checked by it. None is started."""

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from governance.vocabulary import Weight
from memos_web.config import KNOWN_VARIABLES
from tests.harness.servers import ROOT
from tests.production.test_containers import ADDRESSES, NOT_PASSED, OF_BACKUPS, OF_TELEMETRY, OF_UVICORN

FOLDER = ROOT / "deploy" / "systemd"
SERVICES = sorted(FOLDER.glob("*.service"))
PROGRAMS = "/opt/memos/.venv/bin/"


def settings_of(path: Path) -> dict[str, list[str]]:
    """Values by their name; a name may come several times."""
    found: dict[str, list[str]] = {}
    for name, value in re.findall(r"^(\w+)=(.*)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE):
        found.setdefault(name, []).append(value)
    return found


def command_of(name: str) -> list[str]:
    (line,) = settings_of(FOLDER / name)["ExecStart"]
    assert line.startswith(PROGRAMS)
    return shlex.split(line.removeprefix(PROGRAMS))


def names_in(file: str) -> set[str]:
    return set(re.findall(r"^#?([A-Z_]+)=", (FOLDER / file).read_text(encoding="utf-8"), flags=re.MULTILINE))


def test_commands_are_those_of_the_containers() -> None:
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))["services"]
    assert command_of("memos-migrate.service") == services["migrate"]["command"]
    assert command_of("memos-beat.service") == services["beat"]["command"]
    assert command_of("memos-backup.service")[:2] == services["backup"]["command"][:2]
    worker = [word.replace("heavy", "%i") for word in services["worker-heavy"]["command"]]
    assert command_of("memos-worker@.service") == [*worker[:4], "-n", "%i@%H", *worker[4:]]
    (image,) = re.findall(r"^CMD (\[.+\])$", (ROOT / "Dockerfile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert command_of("memos-web.service") == [word.replace("0.0.0.0", "127.0.0.1") for word in json.loads(image)]


def test_the_target_starts_a_worker_for_every_queue() -> None:
    (wanted,) = settings_of(FOLDER / "memos.target")["Wants"]
    assert sorted(re.findall(r"memos-worker@(\w+)\.service", wanted)) == sorted(Weight)
    templates = {re.sub(r"@\w+", "@", name) for name in wanted.split()}
    assert templates == {path.name for path in SERVICES} - {"memos-migrate.service", "memos-backup.service"}
    assert (FOLDER / "memos-backup.timer").is_file()


def test_every_unit_runs_without_privileges_and_writes_one_folder() -> None:
    for path in SERVICES:
        settings = settings_of(path)
        assert settings["User"] == settings["Group"] == ["memos"], path.name
        assert settings["NoNewPrivileges"] == ["yes"]
        assert settings["ProtectSystem"] == ["strict"]
        assert settings["CapabilityBoundingSet"] == [""]
        assert settings["StateDirectory"] == ["memos"]
        assert "MEMOS_DATA_DIR=/var/lib/memos" in " ".join(settings["Environment"])


def test_the_parts_start_after_migrations_and_have_time_to_stop() -> None:
    for path in SERVICES:
        settings = settings_of(path)
        if path.name != "memos-migrate.service":
            assert settings["Requires"] == ["memos-migrate.service"]
            assert "memos-migrate.service" in settings["After"][0]
            assert int(settings["TimeoutStopSec"][0]) >= 30
            files = ["/etc/memos/memos.env", "/etc/memos/backup.env"]
            assert settings["EnvironmentFile"] == files[: 2 if path.name == "memos-backup.service" else 1]
    assert settings_of(FOLDER / "memos-migrate.service")["EnvironmentFile"] == ["/etc/memos/migrate.env"]


def test_the_environment_files_name_what_is_read_and_only_migrate_knows_the_owner() -> None:
    names = names_in("memos.env.example")
    assert (KNOWN_VARIABLES | OF_TELEMETRY) - NOT_PASSED - OF_BACKUPS - names == set()
    assert names <= (KNOWN_VARIABLES | ADDRESSES | OF_UVICORN | OF_TELEMETRY) - NOT_PASSED - {"DATABASE_OWNER_URL"}
    assert names_in("migrate.env.example") == {"MEMOS_DATABASE_ROLE", "DATABASE_OWNER_URL"}
    of_backup = set(re.findall(r"\$\{(\w+)\}", " ".join(command_of("memos-backup.service"))))
    assert names_in("backup.env.example") == {"DATABASE_BACKUP_URL", *OF_BACKUPS, *of_backup}


@pytest.mark.apart(shutil.which("systemd-analyze") is not None, "systemd-analyze")
def test_systemd_understands_every_unit(tmp_path: Path) -> None:
    """Their programs are not installed here: a program that exists stands in their place."""
    others = [FOLDER / "memos.target", FOLDER / "memos-backup.timer"]
    for path in [*SERVICES, *others]:
        text = re.sub(rf"{PROGRAMS}\w+", "/bin/true", path.read_text(encoding="utf-8"))
        (tmp_path / path.name).write_text(text.replace("/opt/memos", "/"), encoding="utf-8")
    units = [str(tmp_path / path.name).replace("@.", "@heavy.") for path in SERVICES]
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *units, *(str(tmp_path / path.name) for path in others)],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    wrong = [line for line in done.stderr.splitlines() if str(tmp_path) in line or "memos" in line]
    assert wrong == [], done.stderr
    assert done.returncode == 0, done.stderr
