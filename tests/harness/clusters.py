"""Cache of the files of a migrated PostgreSQL between test runs, until one of their sources changes."""

import ast
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OURS = ("governance", "memos_web", "vault")  # packages
MOST = 8  # cached clusters: work alternates between branches
MAKERS = (  # besides the migrations and what they import
    "deploy/*.sql",
    "memos_web/embedded/bootstrap.py",
    "memos_web/embedded/postgres.py",
    "memos_web/settings/*.py",
    "requirements/base.txt",
)


def cached_cluster(make: Callable[[int], AbstractContextManager[Path]], release: int) -> Path:
    """The folder of a cached cluster; if there is none, it is copied from the one that `make` gives."""
    folder = _cluster_folder() / f"{digest()}-{release}"
    if not folder.is_dir():
        draft = Path(tempfile.mkdtemp(dir=folder.parent))
        with make(release) as made:
            shutil.copytree(made, draft, dirs_exist_ok=True)
        try:
            draft.rename(folder)
        except OSError:  # another run was faster
            shutil.rmtree(draft)
    os.utime(folder)
    _forget_old(folder.parent)
    return folder


def _cluster_folder() -> Path:
    """A folder that only this user may enter."""
    place = Path(tempfile.gettempdir()) / f"memos-clusters-{os.geteuid()}"
    place.mkdir(mode=0o700, exist_ok=True)
    assert place.stat().st_uid == os.geteuid(), f"{place} belongs to another user"
    return place


def _forget_old(place: Path) -> None:
    for folder in sorted(place.iterdir(), key=lambda folder: folder.stat().st_mtime)[:-MOST]:
        shutil.rmtree(folder, ignore_errors=True)


def digest() -> str:
    """Return the hash of all sources that a migrated cluster is made from."""
    made_of = hashlib.sha256()
    for path in sorted(_makers()):
        made_of.update(f"{path.relative_to(ROOT)}\0{path.read_text(encoding='utf-8')}\0".encode())
    return made_of.hexdigest()[:32]


def _makers() -> set[Path]:
    """The migrations with every module of ours that they import, and MAKERS."""
    found = {path for pattern in MAKERS for path in ROOT.glob(pattern)}
    waiting = [path for package in OURS for path in ROOT.glob(f"{package}/migrations/*.py")]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting += _list_imports(path)
    return found


def _list_imports(path: Path) -> Iterator[Path]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{name}" for name in names)]
        for name in names:
            if name.split(".")[0] in OURS:
                module = ROOT / name.replace(".", "/")
                yield from (path for path in (module.with_suffix(".py"), module / "__init__.py") if path.exists())
