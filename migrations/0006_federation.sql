-- +goose Up
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

-- +goose Down
SELECT 1;
