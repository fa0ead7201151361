-- +goose Up
-- A grant on a table or a view has its namespace beside it, so that a list of what somebody may see in a namespace reads
-- no grant on anything elsewhere. The database keeps it: the binary before this step grants and renames too. A grant
-- waits for a rename that is under way and the other way round, so none is missed. Tables are locked before grants and
-- grants before events, as all transactions do.
-- +goose StatementBegin
CREATE FUNCTION place_grant() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    SELECT tables.namespace_id INTO NEW.namespace_id FROM catalogd.tables WHERE tables.id = NEW.securable_id FOR KEY SHARE;
    RETURN NEW;
END
$$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE FUNCTION move_grants() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE catalogd.grants SET namespace_id = NEW.namespace_id WHERE grants.securable_id = NEW.id;
    RETURN NULL;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER tables_move_grants AFTER UPDATE OF namespace_id ON tables
    FOR EACH ROW WHEN (NEW.namespace_id IS DISTINCT FROM OLD.namespace_id) EXECUTE FUNCTION move_grants();
ALTER TABLE grants ADD COLUMN namespace_id uuid; -- where the table or view is, NULL for all else
CREATE TRIGGER grants_place BEFORE INSERT ON grants
    FOR EACH ROW WHEN (NEW.securable_kind IN ('table', 'view')) EXECUTE FUNCTION place_grant();
-- Nobody's rights change by this.
ALTER TABLE grants DISABLE TRIGGER grants_move_epoch;
UPDATE grants SET namespace_id = tables.namespace_id
FROM tables WHERE tables.id = grants.securable_id AND grants.securable_kind IN ('table', 'view');
ALTER TABLE grants ENABLE TRIGGER grants_move_epoch;
CREATE INDEX grants_inside ON grants (role_id, namespace_id) WHERE namespace_id IS NOT NULL;

-- Events are shown with numbers that order those of one thing and tell nothing of how many others there were, as
-- positions would. Only additions: rows that the binary before this step places have no number, and are shown with
-- one of their time.
ALTER TABLE events ADD COLUMN turn bigint;                    -- of two events of one securable the later has the greater
ALTER TABLE feeds ADD COLUMN turn bigint NOT NULL DEFAULT 0;  -- the greatest that was given

-- +goose Down
SELECT 1;
