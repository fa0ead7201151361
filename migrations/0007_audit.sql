-- +goose Up
-- The audit says more about each attempt, and audit and events can be followed from one end to the other. Only additions:
-- the binary before this step runs beside it.

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
ALTER TABLE events
    ADD COLUMN principal text NOT NULL DEFAULT '',
    ADD COLUMN position  bigint;

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

-- +goose Down
SELECT 1;
