"""Rotation of the master key and of a tenant's keys in the key store."""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from governance.errors import Conflict, KeyUnavailable
from governance.ids import uuid7
from governance.keys.rules import DataKey, seal, unseal
from governance.keys.store import (
    INSTALLATION,
    KEY_MISSING,
    SealedKeyStore,
    master_of,
    new_secret,
)
from governance.keys.tables import (
    AUDIT_SIGNING,
    EXCHANGE,
    EXPORT_SIGNING,
    RETIRED,
    ROOT_PLACE,
    TENANT_SCOPE,
    TOKENS,
    Session,
    key_row,
    sealing_context,
)

# These scopes keep their keys, so that tokens, signatures and files in transit stay valid.
STABLE_SCOPES = frozenset({TOKENS, AUDIT_SIGNING, EXCHANGE, EXPORT_SIGNING})
NOT_FINISHED = (
    "The last rotation of the master key is not finished: restart the product, then run keys_rotate --finish."
)
FORMER_MASTER = "This is the former master key: run keys_rotate --finish with the next one."


class RotatingKeyStore(SealedKeyStore):
    """A key store whose keys can be rotated while other processes use it."""

    def rotate_master(self, next_master: bytes) -> None:
        """Wrap the keys of all tenants with a new root key, which the current and the next master key open.

        Processes with either master key continue to work. The current one is valid until `drop_masters`. Runs in one
        transaction. Raises KeyUnavailable; Conflict if two master keys are valid already.
        """
        root = DataKey(id=INSTALLATION, secret=new_secret())
        with self._rotation() as db:
            if db.execute("SELECT count(*) FROM root_key").fetchone() == (2,):
                raise Conflict(NOT_FINISHED)
            before = self._root(db)
            tenants = "SELECT id, tenant, wrapped FROM data_key WHERE scope = %s"
            for key_id, tenant, wrapped in db.execute(tenants, (TENANT_SCOPE,)).fetchall():
                place = sealing_context(UUID(bytes=tenant), TENANT_SCOPE)
                again = seal(root, unseal(before, wrapped, place=place), place=place)
                db.execute("UPDATE data_key SET wrapped = %s WHERE id = %s", (again, key_id))
            (store_id,) = db.execute("SELECT id FROM key_store").fetchone()
            db.execute("UPDATE key_store SET proof = %s", (seal(root, b"", place=store_id),))
            db.execute("DELETE FROM root_key")
            for is_next, (name, wrapping) in enumerate((self._master, master_of(next_master))):
                wrapped = seal(wrapping, root.secret, place=ROOT_PLACE)
                db.execute("INSERT INTO root_key VALUES (%s, %s, %s)", (name, wrapped, int(is_next)))

    def opens_with(self, master_key: bytes) -> bool:
        """Return whether `rotate_master` added this master key."""
        self._identify()
        with self._place.open() as db:
            named = (master_of(master_key)[0],)
            return db.execute("SELECT 1 FROM root_key WHERE master = %s", named).fetchone() is not None

    def drop_masters(self) -> int:
        """Make the former master key invalid. Return the number of keys that were removed.

        Raises KeyUnavailable; Conflict if this process uses the former master key.
        """
        self._identify()
        with self._transaction() as db:
            following = db.execute("SELECT master FROM root_key WHERE is_next = 1").fetchone()
            if following is not None and following != (self._master[0],):
                raise Conflict(FORMER_MASTER)
            return db.execute("DELETE FROM root_key WHERE is_next = 0").rowcount

    def rotate_tenant(self, tenant_id: UUID) -> int:
        """Replace a tenant's key, and retire its data keys. Return the number of retired keys.

        A retired key only decrypts; new data keys are made on first use. The keys of STABLE_SCOPES stay. Raises
        KeyUnavailable.
        """
        retired = 0
        with self._rotation() as db:
            row = key_row(db, tenant_id, TENANT_SCOPE)
            if row is None:
                raise KeyUnavailable(KEY_MISSING)
            root, place = self._root(db), sealing_context(tenant_id, TENANT_SCOPE)
            before = DataKey(id=UUID(bytes=row[0]), secret=unseal(root, row[2], place=place))
            after = DataKey(id=uuid7(), secret=new_secret())
            others = "SELECT id, scope, wrapped FROM data_key WHERE tenant = %s AND scope <> %s"
            for key_id, scope, wrapped in db.execute(others, (tenant_id.bytes, TENANT_SCOPE)).fetchall():
                is_retired = scope not in STABLE_SCOPES and RETIRED not in scope
                name = f"{scope}{RETIRED}{key_id.hex()}" if is_retired else scope
                secret = unseal(before, wrapped, place=sealing_context(tenant_id, scope))
                again = seal(after, secret, place=sealing_context(tenant_id, name))
                db.execute("UPDATE data_key SET scope = %s, wrapped = %s WHERE id = %s", (name, again, key_id))
                retired += is_retired
            wrapped = seal(root, after.secret, place=place)
            db.execute("UPDATE data_key SET id = %s, wrapped = %s WHERE id = %s", (after.id.bytes, wrapped, row[0]))
        return retired

    @contextmanager
    def _rotation(self) -> Iterator[Session]:
        """Open a transaction on the store; the database then stores its id, so that older copies of the store are
        refused.
        """
        self._identify()
        with self._transaction() as db:
            db.execute("INSERT INTO rotation VALUES (%s)", (uuid7().bytes,))
            yield db
        self._place.touch()
        self._identified = None
        self._identify()
