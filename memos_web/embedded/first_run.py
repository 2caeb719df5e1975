"""The record of the first start: `first-run.json`, readable by its owner only."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from memos_web.embedded.errors import StartError

TENANT_CREATE = ("tenant_create", "home", "--owner", "owner@localhost", "--name", "Home", "--json")


@dataclass(frozen=True)
class FirstRun:
    """The fields of the record. tenant: its slug."""

    url: str
    sign_in_link: str
    api_key: str
    tenant: str
    email: str


def parse(output: str, *, url: str) -> FirstRun:
    """Parse the output of `tenant_create --json`. Raises StartError if it is invalid."""
    try:
        made = json.loads(output)
        return FirstRun(
            url=url,
            sign_in_link=made["sign_in_link"],
            api_key=made["api_key"],
            tenant=made["tenant"]["slug"],
            email=made["owner"]["email"],
        )
    except (ValueError, KeyError, TypeError) as error:
        raise StartError("tenant_create did not answer with its JSON line") from error


def write(first_run: FirstRun, path: Path) -> None:
    """Write the record completely or not at all, with mode 0600 from the first byte."""
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(asdict(first_run), file, indent=2)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
