-- +goose Up
-- What the whole REST catalog keeps beside tables: views (kind 'view' in tables), names that are compared without
-- regard to case, current metadata, idempotency keys, metrics reports, outdated metadata files, and the epoch of
-- everything that a decision about access depends on. Only additions: the binary before this step runs beside it.

-- In a warehouse that folds names, *_key is the name as compared; NULL elsewhere, where names are compared as they are.
ALTER TABLE warehouses ADD COLUMN folds_names boolean NOT NULL DEFAULT false;
ALTER TABLE namespaces ADD COLUMN levels_key text[] COLLATE "C";
CREATE UNIQUE INDEX namespaces_folded_key ON namespaces (warehouse_id, (coalesce(levels_key, levels)));
ALTER TABLE tables ADD COLUMN name_key text COLLATE "C";
CREATE UNIQUE INDEX tables_folded_key ON tables (namespace_id, (coalesce(name_key, name)));
-- Namespace and name in one, folded.
ALTER TABLE staged_tables ADD COLUMN ident_key text[] COLLATE "C";
CREATE INDEX staged_tables_folded ON staged_tables (warehouse_id, ident_key) WHERE ident_key IS NOT NULL;
ALTER TABLE dropped_tables ADD COLUMN ident_key text[] COLLATE "C";
-- Lists of a namespace's children, in order.
CREATE INDEX namespaces_children ON namespaces (warehouse_id, parent_id, levels);

-- The metadata that a pointer names now: its digest, and its text compressed, so that a load needs no object store.
CREATE TABLE table_metadata (
    table_id          uuid PRIMARY KEY REFERENCES tables ON DELETE CASCADE,
    metadata_location text NOT NULL,               -- of which file this is the content
    bytes             bigint NOT NULL,             -- of the text
    checksum          bigint NOT NULL,             -- CRC-32 of the text
    digest            bytea NOT NULL,              -- SHA-256 of the text: the file is believed only if it is that
    packed            bytea                        -- deflate blocks; NULL for a text that is too large to be kept
);
ALTER TABLE table_metadata ALTER COLUMN packed SET STORAGE EXTERNAL; -- it is compressed already

-- One row for each key of a mutation that came to an end, written in the mutation's transaction.
CREATE TABLE idempotency_keys (
    principal_id uuid NOT NULL,
    key          uuid NOT NULL,
    operation    text NOT NULL,
    request_hash bytea NOT NULL,                   -- of method, path and body
    outcome      text NOT NULL,                    -- JSON: what a replay needs; never secrets
    created_at   timestamptz NOT NULL,
    expires_at   timestamptz NOT NULL,
    PRIMARY KEY (principal_id, key)
);
CREATE INDEX idempotency_keys_expiry ON idempotency_keys (expires_at);

-- Clients' scan and commit reports, as they came. Nothing in them is trusted.
CREATE TABLE metrics_reports (
    id          uuid PRIMARY KEY,                  -- time-ordered
    table_id    uuid NOT NULL,
    at          timestamptz NOT NULL,
    principal   text NOT NULL,
    report_type text NOT NULL,
    snapshot_id bigint,
    report      text NOT NULL                      -- JSON
);
CREATE INDEX metrics_reports_table ON metrics_reports (table_id, id DESC);

-- Metadata files that fell out of their table's log and may go when the grace period is over
-- (write.metadata.delete-after-commit.enabled).
CREATE TABLE outdated_metadata (
    metadata_location text PRIMARY KEY,
    warehouse_id      uuid NOT NULL REFERENCES warehouses ON DELETE CASCADE,
    table_id          uuid NOT NULL,
    location          text NOT NULL,               -- of the table: nothing outside it is ever removed
    delete_after      timestamptz NOT NULL,
    claimed_until     timestamptz,                 -- somebody is removing it
    attempts          integer NOT NULL DEFAULT 0
);
CREATE INDEX outdated_metadata_due ON outdated_metadata (delete_after);

-- Moves with every change of what an answer about access depends on: who exists and has which roles, what was granted,
-- warehouses and namespaces. Servers keep such answers in memory with the value that they were read with, and read the
-- value together with each table's pointer. The triggers are deferred: the row is locked at the very end of a
-- transaction, when it needs no other lock any more, and moved once by each. The value follows the clock, so that it
-- never comes again after a restore; without the row nothing is kept in memory.
CREATE TABLE access_epoch (
    only_row   boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    value      bigint NOT NULL,
    changed_by xid8                                -- transaction
);
INSERT INTO access_epoch (value) VALUES (1);

-- +goose StatementBegin
CREATE FUNCTION move_access_epoch() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO catalogd.access_epoch AS e (value, changed_by)
    VALUES ((extract(epoch FROM clock_timestamp()) * 1000000)::bigint, pg_current_xact_id())
    ON CONFLICT (only_row) DO UPDATE SET value = greatest(e.value + 1, EXCLUDED.value), changed_by = EXCLUDED.changed_by
    WHERE e.changed_by IS DISTINCT FROM EXCLUDED.changed_by;
    RETURN NULL;
END
$$;
-- +goose StatementEnd

CREATE CONSTRAINT TRIGGER warehouses_move_epoch AFTER INSERT OR UPDATE OR DELETE ON warehouses
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION move_access_epoch();
CREATE CONSTRAINT TRIGGER namespaces_move_epoch AFTER INSERT OR UPDATE OR DELETE ON namespaces
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION move_access_epoch();
CREATE CONSTRAINT TRIGGER principals_move_epoch AFTER INSERT OR UPDATE OR DELETE ON principals
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION move_access_epoch();
CREATE CONSTRAINT TRIGGER principal_roles_move_epoch AFTER INSERT OR UPDATE OR DELETE ON principal_roles
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION move_access_epoch();
CREATE CONSTRAINT TRIGGER principal_role_members_move_epoch AFTER INSERT OR UPDATE OR DELETE ON principal_role_members
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION move_access_epoch();
CREATE CONSTRAINT TRIGGER catalog_roles_move_epoch AFTER INSERT OR UPDATE OR DELETE ON catalog_roles
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION move_access_epoch();
CREATE CONSTRAINT TRIGGER catalog_role_members_move_epoch AFTER INSERT OR UPDATE OR DELETE ON catalog_role_members
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION move_access_epoch();
CREATE CONSTRAINT TRIGGER grants_move_epoch AFTER INSERT OR UPDATE OR DELETE ON grants
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION move_access_epoch();
-- An unregistered table's location is kept for a while, for nobody but the same table. What a purge has begun with is
-- beyond help: it cannot be registered again.
ALTER TABLE dropped_tables ADD COLUMN unregistered_until timestamptz; -- NULL: it was dropped
ALTER TABLE dropped_tables ADD COLUMN purge_started_at timestamptz;
-- Its files are gone: till then its place is for nobody but its name, while credentials vended before may live.
ALTER TABLE dropped_tables ADD COLUMN purged_until timestamptz;
-- Dropped tables are the namespace's and not its name's. NULL: not known, so nobody's who has no right on everything.
ALTER TABLE dropped_tables ADD COLUMN namespace_id uuid;
ALTER TABLE dropped_tables ADD COLUMN kind text NOT NULL DEFAULT 'table';
CREATE INDEX dropped_tables_lapse ON dropped_tables (coalesce(purged_until, unregistered_until))
    WHERE coalesce(purged_until, unregistered_until) IS NOT NULL;
CREATE INDEX dropped_tables_warehouse ON dropped_tables (warehouse_id, dropped_at DESC);

-- Of a job on a dropped table: where the table was, which decides who may see the job.
ALTER TABLE jobs ADD COLUMN dropped_from text[];

-- Looks at a table since one came to its end: one that ends its worker again and again must not go on for ever.
ALTER TABLE table_maintenance ADD COLUMN look_attempts integer NOT NULL DEFAULT 0;

-- +goose Down
SELECT 1;
