"""Moving a key store to another place, and copying it, while other processes use it. Free of Django."""

from collections.abc import Collection
from pathlib import Path

from governance.errors import Conflict, KeyUnavailable
from governance.keys.places import Place
from governance.keys.rotation import RotatingKeyStore
from governance.keys.rules import seal
from governance.keys.store import MOVE_PLACE, SAME_DATABASE
from governance.keys.tables import COMING, FORMER, MOVED, SCHEMA, Session

COLUMNS = {
    "key_store": ("id", "proof"),
    "root_key": ("master", "wrapped", "is_next"),
    "rotation": ("id",),
    "destroyed_scope": ("tenant", "scope"),
    "destroyed_key": ("id",),
    "data_key": ("id", "tenant", "scope", "wrapped"),
}
MOVE_TABLE = SCHEMA[-1]
EMPTIED = ("data_key", "destroyed_key", "destroyed_scope")  # the former place has no keys after a move
OTHER_STORE = "There is another key store in the new place: name an empty one."
DIFFERENT = "The copy differs from the key store: run keystore_move again."
Contents = dict[str, set[tuple[object, ...]]]


class RelocatableKeyStore(RotatingKeyStore):
    """A key store that can be moved while other processes use it: they follow to its new place."""

    def move(self, to: Place) -> int | None:
        """Move all keys to another place. Return their number, or None if they are there already.

        Almost all rows are copied first. Then other processes wait, the copy is completed and compared, and the
        former place names the new one and loses its keys. A killed move changed nothing, or is completed by the next
        process. Raises KeyUnavailable; Conflict if another key store is in the new place.
        """
        self.check()
        if is_same_place(self._place, to):
            return None
        if to.database() is not None and to.database() == self._registry.database():
            raise KeyUnavailable(SAME_DATABASE)
        former = self.fingerprints()
        with self._place.open() as old:
            copy_contents(contents_of(old), to, coming_from=former)
        with self._transaction() as old:
            contents = contents_of(old)
            copy_contents(contents, to, coming_from=former)
            with to.open() as new:
                if contents_of(new) != contents:
                    raise KeyUnavailable(DIFFERENT)
            self._leave(old, to)
        self._place.purge()
        self._identify(is_fresh=True)
        return len(contents["data_key"])

    def fingerprints(self) -> frozenset[str]:
        """Return the fingerprints of the place and of those from which it was moved, whose processes follow here."""
        self._identify()
        with self._place.open() as db:
            moves = db.execute("SELECT state FROM move").fetchall() if "move" in db.tables() else []
        former = {state.removeprefix(FORMER) for (state,) in moves if state.startswith(FORMER)}
        return frozenset({self._place.fingerprint(), *former})

    def _leave(self, old: Session, to: Place) -> None:
        """Name the new place in the former one, and remove the keys from it."""
        if "move" not in old.tables():
            old.execute(MOVE_TABLE)
        (store_id,) = old.execute("SELECT id FROM key_store").fetchone()
        address = seal(self._root(old), to.address.encode(), place=MOVE_PLACE + store_id)
        old.execute("INSERT INTO move VALUES (%s, %s)", (MOVED, address))
        for table in EMPTIED:
            old.execute(f"DELETE FROM {table}")


def contents_of(db: Session) -> Contents:
    """Return the rows of each table, of which the keys are sealed."""
    return {
        table: set(db.execute(f"SELECT {', '.join(columns)} FROM {table}").fetchall())
        for table, columns in COLUMNS.items()
    }


def copy_contents(contents: Contents, to: Place, *, coming_from: Collection[str] = ()) -> None:
    """Make a place hold these rows and no others. coming_from: the fingerprints of the places of a
    store that is moved, which serves nobody until the move is complete.

    Raises Conflict if another key store is there.
    """
    if to.make(lambda db: _fill(db, contents, coming_from)):
        return
    with to.transaction() as db:
        if "move" not in db.tables():
            db.execute(MOVE_TABLE)
        _fill(db, contents, coming_from)


def _fill(db: Session, contents: Contents, coming_from: Collection[str]) -> None:
    present = contents_of(db)
    if {row[0] for row in present["key_store"]} - {row[0] for row in contents["key_store"]}:
        raise Conflict(OTHER_STORE)
    db.execute("DELETE FROM move")
    states = {COMING, *(f"{FORMER}{place}" for place in coming_from)} if coming_from else set()
    db.execute_each("INSERT INTO move VALUES (%s, %s)", [(state, b"") for state in states])
    for table, columns in COLUMNS.items():
        where = " AND ".join(f"{column} = %s" for column in columns)
        db.execute_each(f"DELETE FROM {table} WHERE {where}", present[table] - contents[table])
        values = ", ".join(["%s"] * len(columns))
        db.execute_each(f"INSERT INTO {table} VALUES ({values})", contents[table] - present[table])


def is_same_place(first: Place, second: Place) -> bool:
    if first.database() is None or second.database() is None:
        return Path(first.address).resolve() == Path(second.address).resolve()
    return first.database() == second.database()
