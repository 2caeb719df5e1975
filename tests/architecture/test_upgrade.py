"""An installation that was used before is brought up to date by `migrate`, with what is in it."""

import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
from psycopg import sql

from tests.harness.servers import ROOT, Servers, clean_environ

pytestmark = pytest.mark.long

FIRST_RELEASE = (("governance", "0003_replies"), ("vault", "0004_embedding_model"))
LIVED_IN = """
INSERT INTO governance_tenant (id, slug, name) VALUES (uuidv7(), 'acme', 'Acme');
INSERT INTO governance_auditentry
  (id, tenant_id, principal_kind, principal_id, verb, outcome, object_type, object_ids, detail, context, request_id)
SELECT uuidv7(), id, 'system', uuidv7(), 'tenant.created', 'done', 'tenant', ARRAY[id], '{}', '{}', 'before'
FROM governance_tenant;
INSERT INTO governance_role (id, tenant_id, name) SELECT uuidv7(), id, 'owner' FROM governance_tenant;
"""


def test_what_was_there_before_stays_and_is_sealed_too(servers: Servers, worker_id: str, tmp_path: Path) -> None:
    name = f"upgraded_{worker_id}"
    with psycopg.connect(servers.postgres.conninfo(), autocommit=True) as maintenance:
        maintenance.execute(sql.SQL("DROP DATABASE IF EXISTS {}").format(sql.Identifier(name)))
        maintenance.execute(sql.SQL("CREATE DATABASE {} OWNER memos_owner").format(sql.Identifier(name)))
    inside = servers.postgres.conninfo(database=name)
    with psycopg.connect(inside, autocommit=True) as superuser:
        superuser.execute((ROOT / "deploy" / "database.sql").read_text(encoding="utf-8"))
    for app, migration in FIRST_RELEASE:
        _migrate(servers, name, tmp_path, app, migration)
    with psycopg.connect(inside, autocommit=True) as superuser:
        superuser.execute(LIVED_IN)
    _migrate(servers, name, tmp_path)
    with psycopg.connect(inside, autocommit=True) as superuser:
        assert superuser.execute("SELECT slug FROM governance_tenant").fetchall() == [("acme",)]
        waiting = "SELECT count(*) FROM governance_auditunsealed JOIN governance_auditentry USING (id)"
        assert superuser.execute(waiting).fetchone() == (1,)


def _migrate(servers: Servers, database: str, data_dir: Path, *target: str) -> None:
    where = f"{quote(str(servers.postgres.socket_dir), safe='')}/{database}"
    environ = clean_environ() | {
        "MEMOS_DATA_DIR": str(data_dir),
        "MEMOS_DATABASE_ROLE": "owner",
        "DATABASE_URL": f"postgresql://memos_app@{where}",
        "DATABASE_OWNER_URL": f"postgresql://memos_owner@{where}",
        "REDIS_URL": "redis://127.0.0.1:6379",  # nobody calls it
        "MEMOS_MASTER_KEY": "A" * 43 + "=",
        "MEMOS_SECRET_KEY": "only-for-this-test" * 4,
        "PATH": os.environ["PATH"],
    }
    command = [sys.executable, "manage.py", "migrate", *target, "--noinput", "--verbosity", "0"]
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
