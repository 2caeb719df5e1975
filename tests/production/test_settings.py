"""Production settings: strict, and clear about what is missing."""

import pytest

from tests.harness.servers import clean_environ
from tests.production.site import Site, run


@pytest.fixture
def nowhere(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """An installation whose servers never start: settings are read without them."""
    return Site(folder=tmp_path_factory.mktemp("site"))


def test_they_pass_djangos_own_checks_for_deployment(nowhere: Site) -> None:
    done = nowhere.manage("check", "--deploy", "--fail-level", "WARNING")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "name",
    ["DATABASE_URL", "REDIS_URL", "MEMOS_SECRET_KEY", "MEMOS_MASTER_KEY", "MEMOS_ALLOWED_HOSTS", "MEMOS_PUBLIC_URL"],
)
def test_a_missing_setting_is_named_in_one_line_with_exit_code_2(nowhere: Site, name: str) -> None:
    environ = nowhere.environ()
    del environ[name]
    done = nowhere.manage("check", environ=environ)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"memos: {name} ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MEMOS_MASTER_KEY", "c2hvcnQ="),
        ("MEMOS_ALLOWED_HOSTS", "*"),
        ("MEMOS_PUBLIC_URL", "http://memos.example"),
        ("MEMOS_TRUSTED_PROXY", "perhaps"),
        ("DATABASE_URL", "sqlite:///memos"),
    ],
)
def test_a_setting_that_would_not_be_safe_is_refused(nowhere: Site, name: str, value: str) -> None:
    done = nowhere.manage("check", environ=nowhere.environ(**{name: value}))
    assert done.returncode == 2
    assert done.stderr.startswith(f"memos: {name} ")
    assert value not in done.stderr or name != "MEMOS_MASTER_KEY"  # a key is never repeated


def test_the_owner_needs_no_secret_but_its_own_address(nowhere: Site) -> None:
    done = nowhere.manage("check", environ=nowhere.owner_environ())
    assert done.returncode == 0, done.stderr
    environ = nowhere.owner_environ()
    del environ["DATABASE_OWNER_URL"]
    refused = nowhere.manage("check", environ=environ)
    assert (refused.returncode, refused.stderr) == (2, "memos: DATABASE_OWNER_URL must be set in production\n")


def test_the_health_check_fails_while_nothing_serves(nowhere: Site) -> None:
    done = nowhere.healthcheck()
    assert done.returncode == 1
    assert done.stderr.startswith("not ready: ")


def test_the_script_for_the_database_refuses_to_run_without_passwords() -> None:
    done = run(["bash", "deploy/init-database.sh"], clean_environ())
    assert done.returncode != 0
    assert "DATABASE_OWNER_PASSWORD: must be set" in done.stderr
