-- +goose Up
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

-- +goose Down
SELECT 1;
