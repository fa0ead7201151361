-- +goose Up
-- Names are compared byte by byte (COLLATE "C"), as the REST protocol wants. Texts that Go checks (kinds,
-- privileges, job states) stay text: a new one needs no migration.

CREATE TABLE warehouses (
    id         uuid PRIMARY KEY,
    name       text COLLATE "C" NOT NULL CONSTRAINT warehouses_name_key UNIQUE,
    location   text NOT NULL,                      -- base of new tables, no trailing slash
    properties jsonb NOT NULL DEFAULT '{}',
    storage    jsonb NOT NULL,                     -- vending.Profile
    version    bigint NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);

CREATE TABLE namespaces (
    id           uuid PRIMARY KEY,
    warehouse_id uuid NOT NULL CONSTRAINT namespaces_warehouse_fkey REFERENCES warehouses ON DELETE RESTRICT,
    parent_id    uuid CONSTRAINT namespaces_parent_fkey REFERENCES namespaces ON DELETE RESTRICT,
    levels       text[] COLLATE "C" NOT NULL,
    properties   jsonb NOT NULL DEFAULT '{}',
    version      bigint NOT NULL DEFAULT 1,
    created_at   timestamptz NOT NULL,
    updated_at   timestamptz NOT NULL,
    CONSTRAINT namespaces_levels_key UNIQUE (warehouse_id, levels)
);
CREATE INDEX namespaces_parent ON namespaces (parent_id);

-- Tables and, later, views: one namespace of names for both.
CREATE TABLE tables (
    id                uuid PRIMARY KEY,            -- ours; stays over renames
    warehouse_id      uuid NOT NULL CONSTRAINT tables_warehouse_fkey REFERENCES warehouses ON DELETE RESTRICT,
    namespace_id      uuid NOT NULL CONSTRAINT tables_namespace_fkey REFERENCES namespaces ON DELETE RESTRICT,
    kind              text NOT NULL DEFAULT 'table',
    name              text COLLATE "C" NOT NULL,
    table_uuid        uuid NOT NULL,               -- the metadata's
    location          text NOT NULL,               -- no trailing slash
    metadata_location text NOT NULL,
    format_version    int NOT NULL,
    version           bigint NOT NULL DEFAULT 1,   -- moves with every change of the row
    created_at        timestamptz NOT NULL,
    updated_at        timestamptz NOT NULL
);
CREATE UNIQUE INDEX tables_name_key ON tables (namespace_id, name);
CREATE INDEX tables_warehouse ON tables (warehouse_id);

-- Soft-deleted tables keep what a purge or an undrop needs. Their locations stay reserved.
CREATE TABLE dropped_tables (
    id                uuid PRIMARY KEY,
    warehouse_id      uuid NOT NULL REFERENCES warehouses ON DELETE CASCADE,
    namespace         text[] NOT NULL,
    name              text NOT NULL,
    table_uuid        uuid NOT NULL,
    location          text NOT NULL,
    metadata_location text NOT NULL,
    purge_requested   boolean NOT NULL,
    dropped_at        timestamptz NOT NULL
);

-- Every location that somebody owns, with a trailing slash and in one spelling (s3a and s3n are s3).
-- Checked for overlap in the transaction that adds a row.
CREATE TABLE locations (
    location     text COLLATE "C" PRIMARY KEY,
    warehouse_id uuid NOT NULL REFERENCES warehouses ON DELETE CASCADE,
    owner_kind   text NOT NULL,                    -- table, staged, namespace
    owner_id     uuid NOT NULL
);
CREATE INDEX locations_owner ON locations (owner_id);

-- A staged create takes no name and writes no file; this row lets its credentials be refreshed.
CREATE TABLE staged_tables (
    table_uuid   uuid PRIMARY KEY,
    warehouse_id uuid NOT NULL REFERENCES warehouses ON DELETE CASCADE,
    namespace    text[] COLLATE "C" NOT NULL,
    name         text COLLATE "C" NOT NULL,
    location     text NOT NULL,
    principal_id uuid NOT NULL,
    expires_at   timestamptz NOT NULL
);
CREATE INDEX staged_tables_name ON staged_tables (warehouse_id, namespace, name);
CREATE INDEX staged_tables_expiry ON staged_tables (expires_at);

-- Who may ask.
CREATE TABLE principals (
    id         uuid PRIMARY KEY,
    name       text COLLATE "C" NOT NULL CONSTRAINT principals_name_key UNIQUE,
    client_id  text COLLATE "C" NOT NULL CONSTRAINT principals_client_id_key UNIQUE,
    kind       text NOT NULL,
    properties jsonb NOT NULL DEFAULT '{}',
    version    bigint NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);

CREATE TABLE principal_secrets (
    principal_id uuid PRIMARY KEY REFERENCES principals ON DELETE CASCADE,
    algorithm    text NOT NULL,                    -- hmac-sha256 or argon2id
    secret       bytea NOT NULL,                   -- the stored form, never the secret
    rotation_required boolean NOT NULL DEFAULT false,
    created_at   timestamptz NOT NULL
);

CREATE TABLE principal_roles (
    id         uuid PRIMARY KEY,
    name       text COLLATE "C" NOT NULL CONSTRAINT principal_roles_name_key UNIQUE,
    properties jsonb NOT NULL DEFAULT '{}',
    federated  boolean NOT NULL DEFAULT false,
    version    bigint NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);

CREATE TABLE principal_role_members (
    principal_role_id uuid NOT NULL REFERENCES principal_roles ON DELETE CASCADE,
    principal_id      uuid NOT NULL REFERENCES principals ON DELETE CASCADE,
    PRIMARY KEY (principal_id, principal_role_id)
);
CREATE INDEX principal_role_members_role ON principal_role_members (principal_role_id);

CREATE TABLE catalog_roles (
    id           uuid PRIMARY KEY,
    warehouse_id uuid NOT NULL REFERENCES warehouses ON DELETE CASCADE,
    name         text COLLATE "C" NOT NULL,
    properties   jsonb NOT NULL DEFAULT '{}',
    version      bigint NOT NULL DEFAULT 1,
    created_at   timestamptz NOT NULL,
    updated_at   timestamptz NOT NULL,
    CONSTRAINT catalog_roles_name_key UNIQUE (warehouse_id, name)
);

CREATE TABLE catalog_role_members (
    catalog_role_id   uuid NOT NULL REFERENCES catalog_roles ON DELETE CASCADE,
    principal_role_id uuid NOT NULL REFERENCES principal_roles ON DELETE CASCADE,
    PRIMARY KEY (principal_role_id, catalog_role_id)
);
CREATE INDEX catalog_role_members_role ON catalog_role_members (catalog_role_id);

-- Grants go to catalog roles; those on the root (service administration) to principal roles. One role column
-- serves both, so a decision needs one index.
CREATE TABLE grants (
    role_id        uuid NOT NULL,                  -- catalog_roles.id or principal_roles.id
    warehouse_id   uuid REFERENCES warehouses ON DELETE CASCADE,
    securable_kind text NOT NULL,
    securable_id   uuid NOT NULL,
    privilege      text NOT NULL,
    created_at     timestamptz NOT NULL,
    PRIMARY KEY (role_id, securable_id, privilege, securable_kind)
);
CREATE INDEX grants_securable ON grants (securable_id);

CREATE TABLE signing_keys (
    kid         text PRIMARY KEY,
    algorithm   text NOT NULL,
    public_key  bytea NOT NULL,
    private_key bytea NOT NULL,                    -- encrypted; associated data is table and kid
    created_at  timestamptz NOT NULL,
    retired_at  timestamptz
);

-- Facts. An event's id is the commit's id: whoever inserts it first, the commit or the question whether it
-- landed, settles the outcome (operation 'commit-abandoned' means that it did not and never will).
CREATE TABLE events (
    id           uuid PRIMARY KEY,
    sequence     bigint GENERATED ALWAYS AS IDENTITY,
    at           timestamptz NOT NULL,
    operation    text NOT NULL,
    warehouse_id uuid,
    securable_id uuid,
    subject      text NOT NULL DEFAULT '',
    details      jsonb NOT NULL DEFAULT '{}'
);
CREATE INDEX events_sequence ON events (sequence);

CREATE TABLE audit (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at           timestamptz NOT NULL,
    event_id     uuid,
    request_id   text NOT NULL DEFAULT '',
    principal    text NOT NULL,
    token_id     text NOT NULL DEFAULT '',
    client       text NOT NULL DEFAULT '',         -- address
    operation    text NOT NULL,
    subject      text NOT NULL,
    allowed      boolean NOT NULL,
    reason       text NOT NULL DEFAULT ''
);
CREATE INDEX audit_at ON audit (at);

-- Work on tables. The database's clock decides leases; the epoch fences a worker that lost its lease.
CREATE TABLE jobs (
    id           uuid PRIMARY KEY,
    kind         text NOT NULL,
    table_id     uuid NOT NULL,
    warehouse    text NOT NULL,
    subject      text NOT NULL,                    -- ns.table, for people
    state        text NOT NULL,                    -- queued running succeeded nothing_to_do refused failed
    trigger      text NOT NULL,                    -- on-demand or automatic
    requested_by text NOT NULL DEFAULT '',         -- principal that asked
    phase        text NOT NULL DEFAULT '',
    progress     double precision NOT NULL DEFAULT 0,
    settings     jsonb NOT NULL DEFAULT '{}',
    outcome      jsonb NOT NULL DEFAULT '{}',      -- figures before and after
    reason_code  text NOT NULL DEFAULT '',
    reason       text NOT NULL DEFAULT '',
    attempts     int NOT NULL DEFAULT 0,
    epoch        bigint NOT NULL DEFAULT 0,
    worker       text NOT NULL DEFAULT '',
    lease_until  timestamptz,
    not_before   timestamptz NOT NULL,
    created_at   timestamptz NOT NULL,
    started_at   timestamptz,
    finished_at  timestamptz
);
-- One open job of a kind for a table.
CREATE UNIQUE INDEX jobs_open ON jobs (table_id, kind) WHERE state IN ('queued', 'running');
CREATE INDEX jobs_claim ON jobs (not_before) WHERE state IN ('queued', 'running');
CREATE INDEX jobs_table ON jobs (table_id, created_at DESC);

-- Files that a job is about to write, recorded before they are: after a crash exactly these are removed.
CREATE TABLE job_files (
    job_id uuid NOT NULL REFERENCES jobs ON DELETE CASCADE,
    path   text NOT NULL,
    PRIMARY KEY (job_id, path)
);

-- Per table: settings made by command, what the last runs left behind, and when to look again. A commit sets enabled
-- (as its table's properties say) and dirty_since; the worker takes dirty_since away before it looks, so that a commit
-- in the meantime is never lost, and leaves look_after as the time to look again if it dies.
CREATE TABLE table_maintenance (
    table_id     uuid PRIMARY KEY,
    settings     jsonb NOT NULL DEFAULT '{}',      -- made by command; they win over properties
    layout       jsonb NOT NULL DEFAULT '{}',      -- which of our runs wrote which layout
    enabled      boolean NOT NULL DEFAULT false,   -- as the table's properties say; settings->>'enabled' wins
    dirty_since  timestamptz,                      -- a commit moved the table since the last look
    look_after   timestamptz,                      -- not before; alone (without dirty_since): look then anyway
    look         jsonb NOT NULL DEFAULT '{}',      -- what the last look found, for people
    checked_at   timestamptz,
    updated_at   timestamptz NOT NULL
);
CREATE INDEX table_maintenance_due ON table_maintenance (table_id)
    WHERE (enabled OR settings->>'enabled' = 'true') AND (dirty_since IS NOT NULL OR look_after IS NOT NULL);

-- +goose Down
SELECT 1;
