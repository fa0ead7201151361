-- +goose Up
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
