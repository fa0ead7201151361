-- +goose Up
-- One step for one release: the binary before it runs beside a schema that is one step newer, and refuses any other.

-- What makes a caller's tokens count: when they began to, which were revoked, personal access tokens, and the networks
-- that it may come from. Only additions: the binary before this step runs beside it, and knows nothing of them.
ALTER TABLE principals ADD COLUMN tokens_not_before timestamptz; -- what was issued before counts no more; NULL: all count

-- Access tokens that were revoked one by one, till they end by themselves.
CREATE TABLE revoked_tokens (
    principal_id uuid NOT NULL REFERENCES principals ON DELETE CASCADE,
    token_id     text COLLATE "C" NOT NULL,        -- the token's jti
    expires_at   timestamptz NOT NULL,
    PRIMARY KEY (principal_id, token_id)
);

-- Revoking a personal access token removes its row: the audit keeps that it was there.
CREATE TABLE personal_tokens (
    id              uuid PRIMARY KEY,
    principal_id    uuid NOT NULL REFERENCES principals ON DELETE CASCADE,
    name            text COLLATE "C" NOT NULL,
    secret          bytea NOT NULL,                -- the stored form (hmac-sha256), never the secret
    previous_secret bytea,                         -- of before the last rotation, while it overlaps
    previous_until  timestamptz,
    roles           text[] COLLATE "C" NOT NULL DEFAULT '{}', -- principal roles that it is narrowed to; none: all
    networks        text[] NOT NULL DEFAULT '{}',  -- CIDR; none: all
    created_by      text NOT NULL,
    created_at      timestamptz NOT NULL,
    rotated_at      timestamptz,
    expires_at      timestamptz NOT NULL,
    CONSTRAINT personal_tokens_name_key UNIQUE (principal_id, name)
);

-- Apart, because it is written all the time and decides nothing: it must not move the epoch.
CREATE TABLE personal_token_uses (
    token_id uuid PRIMARY KEY REFERENCES personal_tokens ON DELETE CASCADE,
    used_at  timestamptz NOT NULL,
    address  text NOT NULL,
    client   text NOT NULL                         -- its user agent
);

-- Networks that a principal's requests may come from; with NULL everybody's.
CREATE TABLE network_policies (
    principal_id uuid REFERENCES principals ON DELETE CASCADE,
    allowed      text[] NOT NULL DEFAULT '{}',     -- CIDR; none: all
    blocked      text[] NOT NULL DEFAULT '{}',     -- CIDR; these win
    updated_at   timestamptz NOT NULL,
    CONSTRAINT network_policies_key UNIQUE NULLS NOT DISTINCT (principal_id)
);

CREATE CONSTRAINT TRIGGER principal_secrets_move_epoch AFTER INSERT OR UPDATE OR DELETE ON principal_secrets
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION move_access_epoch();
CREATE CONSTRAINT TRIGGER revoked_tokens_move_epoch AFTER INSERT OR UPDATE OR DELETE ON revoked_tokens
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION move_access_epoch();
CREATE CONSTRAINT TRIGGER personal_tokens_move_epoch AFTER INSERT OR UPDATE OR DELETE ON personal_tokens
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION move_access_epoch();
CREATE CONSTRAINT TRIGGER network_policies_move_epoch AFTER INSERT OR UPDATE OR DELETE ON network_policies
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION move_access_epoch();

-- Signing keys are published before they sign; NULL: from created_at on. The binary before this step signs with a new key
-- at once, which the others find by its id.
ALTER TABLE signing_keys ADD COLUMN signs_from timestamptz;

-- Public keys of principals, which sign in by what they sign with the private halves.
CREATE TABLE principal_keys (
    principal_id uuid NOT NULL REFERENCES principals ON DELETE CASCADE,
    kid          text COLLATE "C" NOT NULL,        -- RFC 7638: the key's own
    algorithm    text NOT NULL,                    -- EdDSA, ES256 or RS256; a key is good for no other
    public_key   bytea NOT NULL,                   -- PKIX
    created_at   timestamptz NOT NULL,
    ends_at      timestamptz,                      -- NULL: it is good until it is removed
    PRIMARY KEY (principal_id, kid)
);
CREATE CONSTRAINT TRIGGER principal_keys_move_epoch AFTER INSERT OR UPDATE OR DELETE ON principal_keys
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION move_access_epoch();

-- What principals have signed in with already, until it would be too old anyway: each counts once, on all servers together.
CREATE TABLE spent_assertions (
    principal_id uuid NOT NULL REFERENCES principals ON DELETE CASCADE,
    mark         bytea NOT NULL,                   -- SHA-256 of the assertion's own id
    ends_at      timestamptz NOT NULL,
    PRIMARY KEY (principal_id, mark)
);
CREATE INDEX spent_assertions_end ON spent_assertions (ends_at);

-- Who an identity provider's subjects are here. Only an addition: the binary before this step runs beside it, and knows
-- nothing of them.
CREATE TABLE federated_identities (
    issuer       text COLLATE "C" NOT NULL,
    subject      text COLLATE "C" NOT NULL,
    principal_id uuid NOT NULL REFERENCES principals ON DELETE CASCADE,
    created_at   timestamptz NOT NULL,
    PRIMARY KEY (issuer, subject)
);
CREATE INDEX federated_identities_principal ON federated_identities (principal_id);
CREATE CONSTRAINT TRIGGER federated_identities_move_epoch AFTER INSERT OR UPDATE OR DELETE ON federated_identities
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION move_access_epoch();

-- The audit says more about each attempt, and audit and events can be followed from one end to the other. Only additions:
-- the binary before this step runs beside it.

-- Events first, as each commit locks them: in the other order the two could wait for each other.
ALTER TABLE events
    ADD COLUMN principal text NOT NULL DEFAULT '',
    ADD COLUMN position  bigint;
ALTER TABLE audit
    ADD COLUMN warehouse_id uuid,                        -- where; NULL: on the service
    ADD COLUMN securable_id uuid,                        -- on what; of a refusal, the securable that the privilege was looked for on
    ADD COLUMN securable    text NOT NULL DEFAULT '',    -- of a refusal: its kind and name
    ADD COLUMN privilege    text NOT NULL DEFAULT '',    -- of a refusal: which was missing
    ADD COLUMN user_agent   text NOT NULL DEFAULT '',
    ADD COLUMN actor        text NOT NULL DEFAULT '',    -- who acted for the principal; '': the principal itself
    ADD COLUMN credential   text NOT NULL DEFAULT '',    -- what the token was obtained with, where that is known; never a secret
    ADD COLUMN repeats      bigint NOT NULL DEFAULT 0,   -- more than 0: the row stands for so many refusals that have none
    ADD COLUMN position     bigint;                      -- as of feeds

-- Numbers of identities are given before their transactions commit, so a reader that remembers the last one would miss
-- what commits later. Positions are given to rows that are there already, by one transaction at a time: a reader that
-- remembers a position misses nothing. Rows wait for theirs until somebody reads.
CREATE TABLE feeds (
    name    text PRIMARY KEY,                            -- audit or events
    last    bigint NOT NULL DEFAULT 0,                   -- the last position that was given
    removed bigint NOT NULL DEFAULT 0                    -- the last position whose row was removed for its age
);
INSERT INTO feeds (name) VALUES ('audit'), ('events');
CREATE INDEX audit_position ON audit (position, id);
CREATE INDEX events_position ON events (position, sequence);

-- Where events are sent.
CREATE TABLE webhooks (
    id           uuid PRIMARY KEY,
    url          text NOT NULL,
    secret       bytea NOT NULL,                         -- encrypted; associated data is table and id
    warehouse_id uuid REFERENCES warehouses ON DELETE CASCADE, -- NULL: of the whole service
    filter       jsonb NOT NULL DEFAULT '{}',
    enabled      boolean NOT NULL DEFAULT true,
    created_by   text NOT NULL,
    created_at   timestamptz NOT NULL,
    position     bigint NOT NULL,                        -- every event up to this one was delivered or is in webhook_deliveries
    failures     integer NOT NULL DEFAULT 0,             -- in a row
    problem      text NOT NULL DEFAULT '',               -- of the last failure
    delivered_at timestamptz,                            -- last success
    not_before   timestamptz NOT NULL,
    epoch        bigint NOT NULL DEFAULT 0,              -- fences a deliverer that lost its lease
    lease_until  timestamptz
);
-- Events whose delivery failed, and those of the same table behind them.
CREATE TABLE webhook_deliveries (
    webhook_id uuid NOT NULL REFERENCES webhooks ON DELETE CASCADE,
    position   bigint NOT NULL,
    event_id   uuid NOT NULL,
    lane       uuid NOT NULL,                            -- the event's securable: deliveries of one keep their order
    state      text NOT NULL,                            -- waiting or dead
    attempts   integer NOT NULL DEFAULT 0,
    problem    text NOT NULL DEFAULT '',
    first_at   timestamptz NOT NULL,
    not_before timestamptz NOT NULL,
    PRIMARY KEY (webhook_id, position)
);
CREATE INDEX webhook_deliveries_lane ON webhook_deliveries (webhook_id, lane, position) WHERE state = 'waiting';

-- Lists of a warehouse's jobs, page by page. The trigger serves the binary before this step too.
ALTER TABLE jobs ADD COLUMN warehouse_id uuid;
-- +goose StatementBegin
CREATE FUNCTION place_job() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.warehouse_id IS NULL THEN
        NEW.warehouse_id := coalesce(
            (SELECT t.warehouse_id FROM catalogd.tables t WHERE t.id = NEW.table_id),
            (SELECT d.warehouse_id FROM catalogd.dropped_tables d WHERE d.id = NEW.table_id));
    END IF;
    RETURN NEW;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER jobs_place BEFORE INSERT ON jobs FOR EACH ROW EXECUTE FUNCTION place_job();
UPDATE jobs SET warehouse_id = coalesce(
    (SELECT t.warehouse_id FROM tables t WHERE t.id = jobs.table_id),
    (SELECT d.warehouse_id FROM dropped_tables d WHERE d.id = jobs.table_id));
CREATE INDEX jobs_warehouse ON jobs (warehouse_id, created_at DESC, id);
CREATE INDEX jobs_finished ON jobs (finished_at) WHERE finished_at IS NOT NULL;

-- Who made a warehouse, a namespace, a table or a view owns it. No foreign key: a principal that is dropped would have to
-- be taken out of all that it ever made; an id that nobody has is nobody's, and ids never come again. What was there
-- before has no owner. Only additions: the binary before this step runs beside it, and makes things without an owner.
ALTER TABLE warehouses ADD COLUMN owner_id uuid;
ALTER TABLE namespaces ADD COLUMN owner_id uuid;
ALTER TABLE tables ADD COLUMN owner_id uuid;
CREATE INDEX warehouses_owner ON warehouses (owner_id) WHERE owner_id IS NOT NULL;
CREATE INDEX namespaces_owner ON namespaces (owner_id) WHERE owner_id IS NOT NULL;
CREATE INDEX tables_owner ON tables (owner_id, namespace_id) WHERE owner_id IS NOT NULL;

-- The epoch tells by its transaction whether the one at hand has moved it already. Transactions are counted anew in a
-- cluster into which a dump was restored: one of them has the very number that the dump brought along. Its own move
-- cannot be older than itself.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION move_access_epoch() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO catalogd.access_epoch AS e (value, changed_by)
    VALUES ((extract(epoch FROM clock_timestamp()) * 1000000)::bigint, pg_current_xact_id())
    ON CONFLICT (only_row) DO UPDATE SET value = greatest(e.value + 1, EXCLUDED.value), changed_by = EXCLUDED.changed_by
    WHERE e.changed_by IS DISTINCT FROM EXCLUDED.changed_by
       OR e.value < (extract(epoch FROM transaction_timestamp()) * 1000000)::bigint;
    RETURN NULL;
END
$$;
-- +goose StatementEnd

-- +goose Down
SELECT 1;
