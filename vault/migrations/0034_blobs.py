"""The sealed bytes of a version may lie in the blob store: its row then refers to them."""

from django.db import migrations
from django.db.migrations.operations import RunSQL

# A format byte, the SHA-256 of the bytes and their length (vault/cubes/blobs.py).
REFERENCE = """
CREATE FUNCTION vault_blob_reference(sealed bytea) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
  SELECT '\\x02'::bytea || sha256(sealed) || int4send(octet_length(sealed))
$$
"""

LENGTH = """
CREATE FUNCTION vault_sealed_length(sealed bytea) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN octet_length(sealed) = 37 AND get_byte(sealed, 0) = 2
    THEN ('x' || encode(substr(sealed, 34, 4), 'hex'))::bit(32)::bigint ELSE octet_length(sealed) END
$$
"""

# As before; and the words, as they are, may go to the blob store and come back.
VERSION_IS_IMMUTABLE = """
CREATE OR REPLACE FUNCTION vault_version_is_immutable() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.sealed <> ''::bytea AND NEW.sealed <> ''::bytea
     AND (NEW.sealed = public.vault_blob_reference(OLD.sealed) OR OLD.sealed = public.vault_blob_reference(NEW.sealed))
     AND to_jsonb(NEW) - 'sealed' IS NOT DISTINCT FROM to_jsonb(OLD) - 'sealed' THEN
    RETURN NEW;
  END IF;
  IF NEW.sealed <> ''::bytea OR NEW.terms <> '{}' OR NEW.tags NOT IN ('{}', OLD.tags)
     OR to_jsonb(NEW) - 'sealed' - 'terms' - 'tags' IS DISTINCT FROM to_jsonb(OLD) - 'sealed' - 'terms' - 'tags' THEN
    RAISE EXCEPTION 'a version never changes' USING ERRCODE = 'insufficient_privilege';
  END IF;
  RETURN NEW;
END $$
"""


class Migration(migrations.Migration):
    dependencies = [("vault", "0033_index_of_the_trash")]

    operations = [
        RunSQL(REFERENCE, "DROP FUNCTION vault_blob_reference(bytea)"),
        RunSQL(LENGTH, "DROP FUNCTION vault_sealed_length(bytea)"),
        RunSQL(VERSION_IS_IMMUTABLE, RunSQL.noop),
    ]
