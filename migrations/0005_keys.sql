-- +goose Up
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

-- +goose Down
SELECT 1;
