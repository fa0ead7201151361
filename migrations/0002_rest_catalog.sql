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

-- The metadata that a pointer names now, compressed, so that a load needs no object store. Larger documents than the
-- store's limit have no row.
CREATE TABLE table_metadata (
    table_id          uuid PRIMARY KEY REFERENCES tables ON DELETE CASCADE,
    metadata_location text NOT NULL,               -- of which file this is the content
    bytes             bigint NOT NULL,             -- of the text
    checksum          bigint NOT NULL,             -- CRC-32 of the text
    packed            bytea NOT NULL               -- deflate blocks
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
    delete_after      timestamptz NOT NULL
);
CREATE INDEX outdated_metadata_due ON outdated_metadata (delete_after);

-- +goose Down
SELECT 1;
