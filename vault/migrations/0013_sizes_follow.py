"""The triggers by which the size of a namespace follows what becomes of the cubes that it counts."""

from django.db import migrations
from django.db.migrations.operations import RunSQL

# Of deleted cubes nothing is counted. What a search never asks of a cube changes no size.
WITHOUT = "SELECT -1 AS sign, former.* FROM former WHERE former.deleted_at IS NULL"
INSTEAD = """
    SELECT one.* FROM former JOIN present USING (tenant_id, id) CROSS JOIN LATERAL (
      SELECT -1 AS sign, (former).* UNION ALL SELECT 1, (present).*) AS one
    WHERE (former.namespace_id, former.term_count, former.expires_at, former.deleted_at)
      IS DISTINCT FROM (present.namespace_id, present.term_count, present.expires_at, present.deleted_at)
      AND one.deleted_at IS NULL"""

# Sizes are held in one order, before it is asked when they were counted; that there is none yet is held, too. A change
# is written even where it comes to nothing: by it is seen that what is hidden of a size may be another.
FOLLOW = """
CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
  IF NOT EXISTS ({changed}) THEN
    RETURN NULL;
  END IF;
  INSERT INTO vault_namespacesize (tenant_id, namespace_id, cubes, words, refreshed_at)
  SELECT DISTINCT changed.tenant_id, changed.namespace_id, 0, 0, timestamptz 'epoch' FROM ({changed}) AS changed
  ORDER BY changed.tenant_id, changed.namespace_id
  ON CONFLICT (tenant_id, namespace_id) DO UPDATE SET cubes = vault_namespacesize.cubes WHERE false;
  UPDATE vault_namespacesize AS size
  SET cubes = greatest(0, size.cubes + change.cubes), words = greatest(0, size.words + change.words)
  FROM (
    SELECT cube.tenant_id, cube.namespace_id, sum(cube.sign) AS cubes, sum(cube.sign * cube.term_count) AS words
    FROM ({changed}) AS cube JOIN vault_namespacesize AS size
      ON size.tenant_id = cube.tenant_id AND size.namespace_id = cube.namespace_id
    WHERE cube.created_at < size.refreshed_at AND (cube.expires_at IS NULL OR cube.expires_at > size.refreshed_at)
    GROUP BY cube.tenant_id, cube.namespace_id) AS change
  WHERE size.tenant_id = change.tenant_id AND size.namespace_id = change.namespace_id;
  RETURN NULL;
END $$
"""
FOLLOWING = {
    "vault_sizes_follow_a_change": (INSTEAD, "UPDATE", "OLD TABLE AS former NEW TABLE AS present"),
    "vault_sizes_follow_a_loss": (WITHOUT, "DELETE", "OLD TABLE AS former"),
}


class Migration(migrations.Migration):
    dependencies = [("vault", "0012_cube_by_time")]

    operations = [
        RunSQL(
            [
                FOLLOW.format(name=name, changed=changed),
                f"CREATE TRIGGER {name.removeprefix('vault_')} AFTER {event} ON vault_cube REFERENCING {rows} "
                f"FOR EACH STATEMENT EXECUTE FUNCTION {name}()",
            ],
            [f"DROP TRIGGER {name.removeprefix('vault_')} ON vault_cube", f"DROP FUNCTION {name}()"],
        )
        for name, (changed, event, rows) in FOLLOWING.items()
    ]
