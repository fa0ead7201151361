-- +goose Up
-- Events are shown with numbers that order those of one thing and tell nothing of how many others there were, as
-- positions would. Only additions: rows that the binary before this step places have no number, and are shown with
-- one of their time.
ALTER TABLE events ADD COLUMN turn bigint;                    -- of two events of one securable the later has the greater
ALTER TABLE feeds ADD COLUMN turn bigint NOT NULL DEFAULT 0;  -- the greatest that was given

-- +goose Down
SELECT 1;
