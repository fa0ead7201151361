-- What all migrations together make. Written by `go test ./store -run TestSchema -rewrite`; do not edit.

CREATE TABLE access_epoch (
    only_row boolean NOT NULL DEFAULT true,
    value bigint NOT NULL,
    changed_by xid8,
    CONSTRAINT access_epoch_pkey PRIMARY KEY (only_row),
    CONSTRAINT access_epoch_only_row_check CHECK (only_row)
);

CREATE TABLE audit (
    id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    at timestamp with time zone NOT NULL,
    event_id uuid,
    request_id text NOT NULL DEFAULT ''::text,
    principal text NOT NULL,
    token_id text NOT NULL DEFAULT ''::text,
    client text NOT NULL DEFAULT ''::text,
    operation text NOT NULL,
    subject text NOT NULL,
    allowed boolean NOT NULL,
    reason text NOT NULL DEFAULT ''::text,
    warehouse_id uuid,
    securable_id uuid,
    securable text NOT NULL DEFAULT ''::text,
    privilege text NOT NULL DEFAULT ''::text,
    user_agent text NOT NULL DEFAULT ''::text,
    actor text NOT NULL DEFAULT ''::text,
    credential text NOT NULL DEFAULT ''::text,
    repeats bigint NOT NULL DEFAULT 0,
    position bigint,
    CONSTRAINT audit_pkey PRIMARY KEY (id)
);
CREATE INDEX audit_at ON audit USING btree (at);
CREATE INDEX audit_position ON audit USING btree ("position", id);

CREATE TABLE catalog_role_members (
    catalog_role_id uuid NOT NULL,
    principal_role_id uuid NOT NULL,
    CONSTRAINT catalog_role_members_pkey PRIMARY KEY (principal_role_id, catalog_role_id),
    CONSTRAINT catalog_role_members_catalog_role_id_fkey FOREIGN KEY (catalog_role_id) REFERENCES catalog_roles(id) ON DELETE CASCADE,
    CONSTRAINT catalog_role_members_move_epoch TRIGGER DEFERRABLE INITIALLY DEFERRED,
    CONSTRAINT catalog_role_members_principal_role_id_fkey FOREIGN KEY (principal_role_id) REFERENCES principal_roles(id) ON DELETE CASCADE
);
CREATE INDEX catalog_role_members_role ON catalog_role_members USING btree (catalog_role_id);

CREATE TABLE catalog_roles (
    id uuid NOT NULL,
    warehouse_id uuid NOT NULL,
    name text COLLATE "C" NOT NULL,
    properties jsonb NOT NULL DEFAULT '{}'::jsonb,
    version bigint NOT NULL DEFAULT 1,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    CONSTRAINT catalog_roles_pkey PRIMARY KEY (id),
    CONSTRAINT catalog_roles_move_epoch TRIGGER DEFERRABLE INITIALLY DEFERRED,
    CONSTRAINT catalog_roles_name_key UNIQUE (warehouse_id, name),
    CONSTRAINT catalog_roles_warehouse_id_fkey FOREIGN KEY (warehouse_id) REFERENCES warehouses(id) ON DELETE CASCADE
);

CREATE TABLE dropped_tables (
    id uuid NOT NULL,
    warehouse_id uuid NOT NULL,
    namespace text[] NOT NULL,
    name text NOT NULL,
    table_uuid uuid NOT NULL,
    location text NOT NULL,
    metadata_location text NOT NULL,
    purge_requested boolean NOT NULL,
    dropped_at timestamp with time zone NOT NULL,
    ident_key text[] COLLATE "C",
    unregistered_until timestamp with time zone,
    purge_started_at timestamp with time zone,
    purged_until timestamp with time zone,
    namespace_id uuid,
    kind text NOT NULL DEFAULT 'table'::text,
    CONSTRAINT dropped_tables_pkey PRIMARY KEY (id),
    CONSTRAINT dropped_tables_warehouse_id_fkey FOREIGN KEY (warehouse_id) REFERENCES warehouses(id) ON DELETE CASCADE
);
CREATE INDEX dropped_tables_lapse ON dropped_tables USING btree (COALESCE(purged_until, unregistered_until)) WHERE (COALESCE(purged_until, unregistered_until) IS NOT NULL);
CREATE INDEX dropped_tables_warehouse ON dropped_tables USING btree (warehouse_id, dropped_at DESC);

CREATE TABLE events (
    id uuid NOT NULL,
    sequence bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    at timestamp with time zone NOT NULL,
    operation text NOT NULL,
    warehouse_id uuid,
    securable_id uuid,
    subject text NOT NULL DEFAULT ''::text,
    details jsonb NOT NULL DEFAULT '{}'::jsonb,
    principal text NOT NULL DEFAULT ''::text,
    position bigint,
    turn bigint,
    CONSTRAINT events_pkey PRIMARY KEY (id)
);
CREATE INDEX events_position ON events USING btree ("position", sequence);
CREATE INDEX events_sequence ON events USING btree (sequence);

CREATE TABLE federated_identities (
    issuer text COLLATE "C" NOT NULL,
    subject text COLLATE "C" NOT NULL,
    principal_id uuid NOT NULL,
    created_at timestamp with time zone NOT NULL,
    CONSTRAINT federated_identities_pkey PRIMARY KEY (issuer, subject),
    CONSTRAINT federated_identities_move_epoch TRIGGER DEFERRABLE INITIALLY DEFERRED,
    CONSTRAINT federated_identities_principal_id_fkey FOREIGN KEY (principal_id) REFERENCES principals(id) ON DELETE CASCADE
);
CREATE INDEX federated_identities_principal ON federated_identities USING btree (principal_id);

CREATE TABLE feeds (
    name text NOT NULL,
    last bigint NOT NULL DEFAULT 0,
    removed bigint NOT NULL DEFAULT 0,
    turn bigint NOT NULL DEFAULT 0,
    CONSTRAINT feeds_pkey PRIMARY KEY (name)
);

CREATE TABLE grants (
    role_id uuid NOT NULL,
    warehouse_id uuid,
    securable_kind text NOT NULL,
    securable_id uuid NOT NULL,
    privilege text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    namespace_id uuid,
    CONSTRAINT grants_pkey PRIMARY KEY (role_id, securable_id, privilege, securable_kind),
    CONSTRAINT grants_move_epoch TRIGGER DEFERRABLE INITIALLY DEFERRED,
    CONSTRAINT grants_warehouse_id_fkey FOREIGN KEY (warehouse_id) REFERENCES warehouses(id) ON DELETE CASCADE
);
CREATE INDEX grants_inside ON grants USING btree (role_id, namespace_id) WHERE (namespace_id IS NOT NULL);
CREATE INDEX grants_securable ON grants USING btree (securable_id);
CREATE TRIGGER grants_place BEFORE INSERT ON grants FOR EACH ROW WHEN ((new.securable_kind = ANY (ARRAY['table'::text, 'view'::text]))) EXECUTE FUNCTION place_grant();

CREATE TABLE idempotency_keys (
    principal_id uuid NOT NULL,
    key uuid NOT NULL,
    operation text NOT NULL,
    request_hash bytea NOT NULL,
    outcome text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    CONSTRAINT idempotency_keys_pkey PRIMARY KEY (principal_id, key)
);
CREATE INDEX idempotency_keys_expiry ON idempotency_keys USING btree (expires_at);

CREATE TABLE job_files (
    job_id uuid NOT NULL,
    path text NOT NULL,
    CONSTRAINT job_files_pkey PRIMARY KEY (job_id, path),
    CONSTRAINT job_files_job_id_fkey FOREIGN KEY (job_id) REFERENCES jobs(id) ON DELETE CASCADE
);

CREATE TABLE jobs (
    id uuid NOT NULL,
    kind text NOT NULL,
    table_id uuid NOT NULL,
    warehouse text NOT NULL,
    subject text NOT NULL,
    state text NOT NULL,
    trigger text NOT NULL,
    requested_by text NOT NULL DEFAULT ''::text,
    phase text NOT NULL DEFAULT ''::text,
    progress double precision NOT NULL DEFAULT 0,
    settings jsonb NOT NULL DEFAULT '{}'::jsonb,
    outcome jsonb NOT NULL DEFAULT '{}'::jsonb,
    reason_code text NOT NULL DEFAULT ''::text,
    reason text NOT NULL DEFAULT ''::text,
    attempts integer NOT NULL DEFAULT 0,
    epoch bigint NOT NULL DEFAULT 0,
    worker text NOT NULL DEFAULT ''::text,
    lease_until timestamp with time zone,
    not_before timestamp with time zone NOT NULL,
    created_at timestamp with time zone NOT NULL,
    started_at timestamp with time zone,
    finished_at timestamp with time zone,
    dropped_from text[],
    warehouse_id uuid,
    CONSTRAINT jobs_pkey PRIMARY KEY (id)
);
CREATE INDEX jobs_claim ON jobs USING btree (not_before) WHERE (state = ANY (ARRAY['queued'::text, 'running'::text]));
CREATE INDEX jobs_finished ON jobs USING btree (finished_at) WHERE (finished_at IS NOT NULL);
CREATE UNIQUE INDEX jobs_open ON jobs USING btree (table_id, kind) WHERE (state = ANY (ARRAY['queued'::text, 'running'::text]));
CREATE INDEX jobs_table ON jobs USING btree (table_id, created_at DESC);
CREATE INDEX jobs_warehouse ON jobs USING btree (warehouse_id, created_at DESC, id);
CREATE TRIGGER jobs_place BEFORE INSERT ON jobs FOR EACH ROW EXECUTE FUNCTION place_job();

CREATE TABLE locations (
    location text COLLATE "C" NOT NULL,
    warehouse_id uuid NOT NULL,
    owner_kind text NOT NULL,
    owner_id uuid NOT NULL,
    CONSTRAINT locations_pkey PRIMARY KEY (location),
    CONSTRAINT locations_warehouse_id_fkey FOREIGN KEY (warehouse_id) REFERENCES warehouses(id) ON DELETE CASCADE
);
CREATE INDEX locations_owner ON locations USING btree (owner_id);

CREATE TABLE metrics_reports (
    id uuid NOT NULL,
    table_id uuid NOT NULL,
    at timestamp with time zone NOT NULL,
    principal text NOT NULL,
    report_type text NOT NULL,
    snapshot_id bigint,
    report text NOT NULL,
    CONSTRAINT metrics_reports_pkey PRIMARY KEY (id)
);
CREATE INDEX metrics_reports_table ON metrics_reports USING btree (table_id, id DESC);

CREATE TABLE namespaces (
    id uuid NOT NULL,
    warehouse_id uuid NOT NULL,
    parent_id uuid,
    levels text[] COLLATE "C" NOT NULL,
    properties jsonb NOT NULL DEFAULT '{}'::jsonb,
    version bigint NOT NULL DEFAULT 1,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    levels_key text[] COLLATE "C",
    owner_id uuid,
    CONSTRAINT namespaces_pkey PRIMARY KEY (id),
    CONSTRAINT namespaces_levels_key UNIQUE (warehouse_id, levels),
    CONSTRAINT namespaces_move_epoch TRIGGER DEFERRABLE INITIALLY DEFERRED,
    CONSTRAINT namespaces_parent_fkey FOREIGN KEY (parent_id) REFERENCES namespaces(id) ON DELETE RESTRICT,
    CONSTRAINT namespaces_warehouse_fkey FOREIGN KEY (warehouse_id) REFERENCES warehouses(id) ON DELETE RESTRICT
);
CREATE INDEX namespaces_children ON namespaces USING btree (warehouse_id, parent_id, levels);
CREATE UNIQUE INDEX namespaces_folded_key ON namespaces USING btree (warehouse_id, COALESCE(levels_key, levels));
CREATE INDEX namespaces_owner ON namespaces USING btree (owner_id) WHERE (owner_id IS NOT NULL);
CREATE INDEX namespaces_parent ON namespaces USING btree (parent_id);
CREATE INDEX namespaces_top ON namespaces USING btree (warehouse_id, levels) WHERE (parent_id IS NULL);

CREATE TABLE network_policies (
    principal_id uuid,
    allowed text[] NOT NULL DEFAULT '{}'::text[],
    blocked text[] NOT NULL DEFAULT '{}'::text[],
    updated_at timestamp with time zone NOT NULL,
    CONSTRAINT network_policies_key UNIQUE NULLS NOT DISTINCT (principal_id),
    CONSTRAINT network_policies_move_epoch TRIGGER DEFERRABLE INITIALLY DEFERRED,
    CONSTRAINT network_policies_principal_id_fkey FOREIGN KEY (principal_id) REFERENCES principals(id) ON DELETE CASCADE
);

CREATE TABLE outdated_metadata (
    metadata_location text NOT NULL,
    warehouse_id uuid NOT NULL,
    table_id uuid NOT NULL,
    location text NOT NULL,
    delete_after timestamp with time zone NOT NULL,
    claimed_until timestamp with time zone,
    attempts integer NOT NULL DEFAULT 0,
    CONSTRAINT outdated_metadata_pkey PRIMARY KEY (metadata_location),
    CONSTRAINT outdated_metadata_warehouse_id_fkey FOREIGN KEY (warehouse_id) REFERENCES warehouses(id) ON DELETE CASCADE
);
CREATE INDEX outdated_metadata_due ON outdated_metadata USING btree (delete_after);

CREATE TABLE personal_token_uses (
    token_id uuid NOT NULL,
    used_at timestamp with time zone NOT NULL,
    address text NOT NULL,
    client text NOT NULL,
    CONSTRAINT personal_token_uses_pkey PRIMARY KEY (token_id),
    CONSTRAINT personal_token_uses_token_id_fkey FOREIGN KEY (token_id) REFERENCES personal_tokens(id) ON DELETE CASCADE
);

CREATE TABLE personal_tokens (
    id uuid NOT NULL,
    principal_id uuid NOT NULL,
    name text COLLATE "C" NOT NULL,
    secret bytea NOT NULL,
    previous_secret bytea,
    previous_until timestamp with time zone,
    roles text[] COLLATE "C" NOT NULL DEFAULT '{}'::text[],
    networks text[] NOT NULL DEFAULT '{}'::text[],
    created_by text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    rotated_at timestamp with time zone,
    expires_at timestamp with time zone NOT NULL,
    CONSTRAINT personal_tokens_pkey PRIMARY KEY (id),
    CONSTRAINT personal_tokens_move_epoch TRIGGER DEFERRABLE INITIALLY DEFERRED,
    CONSTRAINT personal_tokens_name_key UNIQUE (principal_id, name),
    CONSTRAINT personal_tokens_principal_id_fkey FOREIGN KEY (principal_id) REFERENCES principals(id) ON DELETE CASCADE
);

CREATE TABLE principal_keys (
    principal_id uuid NOT NULL,
    kid text COLLATE "C" NOT NULL,
    algorithm text NOT NULL,
    public_key bytea NOT NULL,
    created_at timestamp with time zone NOT NULL,
    ends_at timestamp with time zone,
    CONSTRAINT principal_keys_pkey PRIMARY KEY (principal_id, kid),
    CONSTRAINT principal_keys_move_epoch TRIGGER DEFERRABLE INITIALLY DEFERRED,
    CONSTRAINT principal_keys_principal_id_fkey FOREIGN KEY (principal_id) REFERENCES principals(id) ON DELETE CASCADE
);

CREATE TABLE principal_role_members (
    principal_role_id uuid NOT NULL,
    principal_id uuid NOT NULL,
    CONSTRAINT principal_role_members_pkey PRIMARY KEY (principal_id, principal_role_id),
    CONSTRAINT principal_role_members_move_epoch TRIGGER DEFERRABLE INITIALLY DEFERRED,
    CONSTRAINT principal_role_members_principal_id_fkey FOREIGN KEY (principal_id) REFERENCES principals(id) ON DELETE CASCADE,
    CONSTRAINT principal_role_members_principal_role_id_fkey FOREIGN KEY (principal_role_id) REFERENCES principal_roles(id) ON DELETE CASCADE
);
CREATE INDEX principal_role_members_role ON principal_role_members USING btree (principal_role_id);

CREATE TABLE principal_roles (
    id uuid NOT NULL,
    name text COLLATE "C" NOT NULL,
    properties jsonb NOT NULL DEFAULT '{}'::jsonb,
    federated boolean NOT NULL DEFAULT false,
    version bigint NOT NULL DEFAULT 1,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    CONSTRAINT principal_roles_pkey PRIMARY KEY (id),
    CONSTRAINT principal_roles_move_epoch TRIGGER DEFERRABLE INITIALLY DEFERRED,
    CONSTRAINT principal_roles_name_key UNIQUE (name)
);

CREATE TABLE principal_secrets (
    principal_id uuid NOT NULL,
    algorithm text NOT NULL,
    secret bytea NOT NULL,
    rotation_required boolean NOT NULL DEFAULT false,
    created_at timestamp with time zone NOT NULL,
    CONSTRAINT principal_secrets_pkey PRIMARY KEY (principal_id),
    CONSTRAINT principal_secrets_move_epoch TRIGGER DEFERRABLE INITIALLY DEFERRED,
    CONSTRAINT principal_secrets_principal_id_fkey FOREIGN KEY (principal_id) REFERENCES principals(id) ON DELETE CASCADE
);

CREATE TABLE principals (
    id uuid NOT NULL,
    name text COLLATE "C" NOT NULL,
    client_id text COLLATE "C" NOT NULL,
    kind text NOT NULL,
    properties jsonb NOT NULL DEFAULT '{}'::jsonb,
    version bigint NOT NULL DEFAULT 1,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    tokens_not_before timestamp with time zone,
    CONSTRAINT principals_pkey PRIMARY KEY (id),
    CONSTRAINT principals_client_id_key UNIQUE (client_id),
    CONSTRAINT principals_move_epoch TRIGGER DEFERRABLE INITIALLY DEFERRED,
    CONSTRAINT principals_name_key UNIQUE (name)
);

CREATE TABLE revoked_tokens (
    principal_id uuid NOT NULL,
    token_id text COLLATE "C" NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    CONSTRAINT revoked_tokens_pkey PRIMARY KEY (principal_id, token_id),
    CONSTRAINT revoked_tokens_move_epoch TRIGGER DEFERRABLE INITIALLY DEFERRED,
    CONSTRAINT revoked_tokens_principal_id_fkey FOREIGN KEY (principal_id) REFERENCES principals(id) ON DELETE CASCADE
);

CREATE TABLE signing_keys (
    kid text NOT NULL,
    algorithm text NOT NULL,
    public_key bytea NOT NULL,
    private_key bytea NOT NULL,
    created_at timestamp with time zone NOT NULL,
    retired_at timestamp with time zone,
    signs_from timestamp with time zone,
    CONSTRAINT signing_keys_pkey PRIMARY KEY (kid)
);

CREATE TABLE spent_assertions (
    principal_id uuid NOT NULL,
    mark bytea NOT NULL,
    ends_at timestamp with time zone NOT NULL,
    CONSTRAINT spent_assertions_pkey PRIMARY KEY (principal_id, mark),
    CONSTRAINT spent_assertions_principal_id_fkey FOREIGN KEY (principal_id) REFERENCES principals(id) ON DELETE CASCADE
);
CREATE INDEX spent_assertions_end ON spent_assertions USING btree (ends_at);

CREATE TABLE staged_tables (
    table_uuid uuid NOT NULL,
    warehouse_id uuid NOT NULL,
    namespace text[] COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    location text NOT NULL,
    principal_id uuid NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    ident_key text[] COLLATE "C",
    CONSTRAINT staged_tables_pkey PRIMARY KEY (table_uuid),
    CONSTRAINT staged_tables_warehouse_id_fkey FOREIGN KEY (warehouse_id) REFERENCES warehouses(id) ON DELETE CASCADE
);
CREATE INDEX staged_tables_expiry ON staged_tables USING btree (expires_at);
CREATE INDEX staged_tables_folded ON staged_tables USING btree (warehouse_id, ident_key) WHERE (ident_key IS NOT NULL);
CREATE INDEX staged_tables_name ON staged_tables USING btree (warehouse_id, namespace, name);

CREATE TABLE table_maintenance (
    table_id uuid NOT NULL,
    settings jsonb NOT NULL DEFAULT '{}'::jsonb,
    layout jsonb NOT NULL DEFAULT '{}'::jsonb,
    enabled boolean NOT NULL DEFAULT false,
    dirty_since timestamp with time zone,
    look_after timestamp with time zone,
    look jsonb NOT NULL DEFAULT '{}'::jsonb,
    checked_at timestamp with time zone,
    updated_at timestamp with time zone NOT NULL,
    look_attempts integer NOT NULL DEFAULT 0,
    CONSTRAINT table_maintenance_pkey PRIMARY KEY (table_id)
);
CREATE INDEX table_maintenance_due ON table_maintenance USING btree (table_id) WHERE ((enabled OR ((settings ->> 'enabled'::text) = 'true'::text)) AND ((dirty_since IS NOT NULL) OR (look_after IS NOT NULL)));

CREATE TABLE table_metadata (
    table_id uuid NOT NULL,
    metadata_location text NOT NULL,
    bytes bigint NOT NULL,
    checksum bigint NOT NULL,
    digest bytea NOT NULL,
    packed bytea,
    CONSTRAINT table_metadata_pkey PRIMARY KEY (table_id),
    CONSTRAINT table_metadata_table_id_fkey FOREIGN KEY (table_id) REFERENCES tables(id) ON DELETE CASCADE
);

CREATE TABLE tables (
    id uuid NOT NULL,
    warehouse_id uuid NOT NULL,
    namespace_id uuid NOT NULL,
    kind text NOT NULL DEFAULT 'table'::text,
    name text COLLATE "C" NOT NULL,
    table_uuid uuid NOT NULL,
    location text NOT NULL,
    metadata_location text NOT NULL,
    format_version integer NOT NULL,
    version bigint NOT NULL DEFAULT 1,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    name_key text COLLATE "C",
    owner_id uuid,
    CONSTRAINT tables_pkey PRIMARY KEY (id),
    CONSTRAINT tables_namespace_fkey FOREIGN KEY (namespace_id) REFERENCES namespaces(id) ON DELETE RESTRICT,
    CONSTRAINT tables_warehouse_fkey FOREIGN KEY (warehouse_id) REFERENCES warehouses(id) ON DELETE RESTRICT
);
CREATE UNIQUE INDEX tables_folded_key ON tables USING btree (namespace_id, COALESCE(name_key, name));
CREATE UNIQUE INDEX tables_name_key ON tables USING btree (namespace_id, name) INCLUDE (kind);
CREATE INDEX tables_owner ON tables USING btree (owner_id, namespace_id) WHERE (owner_id IS NOT NULL);
CREATE INDEX tables_warehouse ON tables USING btree (warehouse_id);
CREATE TRIGGER tables_move_grants AFTER UPDATE OF namespace_id ON tables FOR EACH ROW WHEN ((new.namespace_id IS DISTINCT FROM old.namespace_id)) EXECUTE FUNCTION move_grants();

CREATE TABLE warehouses (
    id uuid NOT NULL,
    name text COLLATE "C" NOT NULL,
    location text NOT NULL,
    properties jsonb NOT NULL DEFAULT '{}'::jsonb,
    storage jsonb NOT NULL,
    version bigint NOT NULL DEFAULT 1,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    folds_names boolean NOT NULL DEFAULT false,
    owner_id uuid,
    CONSTRAINT warehouses_pkey PRIMARY KEY (id),
    CONSTRAINT warehouses_move_epoch TRIGGER DEFERRABLE INITIALLY DEFERRED,
    CONSTRAINT warehouses_name_key UNIQUE (name)
);
CREATE INDEX warehouses_owner ON warehouses USING btree (owner_id) WHERE (owner_id IS NOT NULL);

CREATE TABLE webhook_deliveries (
    webhook_id uuid NOT NULL,
    position bigint NOT NULL,
    event_id uuid NOT NULL,
    lane uuid NOT NULL,
    state text NOT NULL,
    attempts integer NOT NULL DEFAULT 0,
    problem text NOT NULL DEFAULT ''::text,
    first_at timestamp with time zone NOT NULL,
    not_before timestamp with time zone NOT NULL,
    CONSTRAINT webhook_deliveries_pkey PRIMARY KEY (webhook_id, "position"),
    CONSTRAINT webhook_deliveries_webhook_id_fkey FOREIGN KEY (webhook_id) REFERENCES webhooks(id) ON DELETE CASCADE
);
CREATE INDEX webhook_deliveries_lane ON webhook_deliveries USING btree (webhook_id, lane, "position") WHERE (state = 'waiting'::text);

CREATE TABLE webhooks (
    id uuid NOT NULL,
    url text NOT NULL,
    secret bytea NOT NULL,
    warehouse_id uuid,
    filter jsonb NOT NULL DEFAULT '{}'::jsonb,
    enabled boolean NOT NULL DEFAULT true,
    created_by text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    position bigint NOT NULL,
    failures integer NOT NULL DEFAULT 0,
    problem text NOT NULL DEFAULT ''::text,
    delivered_at timestamp with time zone,
    not_before timestamp with time zone NOT NULL,
    epoch bigint NOT NULL DEFAULT 0,
    lease_until timestamp with time zone,
    CONSTRAINT webhooks_pkey PRIMARY KEY (id),
    CONSTRAINT webhooks_warehouse_id_fkey FOREIGN KEY (warehouse_id) REFERENCES warehouses(id) ON DELETE CASCADE
);
