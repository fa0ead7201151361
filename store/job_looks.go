package store

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"catalogd/catalog"
	"catalogd/internal/fault"
	"catalogd/maintenance"
)

// lookSpacing is the least time between two looks at a table that commits keep coming to.
const lookSpacing = 2 * time.Second

const sqlLoadTableState = `
SELECT coalesce(m.settings, '{}'), coalesce(m.layout, '{}'), coalesce(m.look, '{}'), m.checked_at, m.look_after,
       m.dirty_since IS NOT NULL, last.finished_at
FROM (SELECT @table::uuid AS id) AS wanted
LEFT JOIN table_maintenance AS m ON m.table_id = wanted.id
LEFT JOIN LATERAL (
    SELECT max(jobs.finished_at) AS finished_at FROM jobs
    WHERE jobs.table_id = wanted.id AND jobs.kind = 'compaction' AND jobs.state IN ('succeeded', 'failed')) AS last ON true`

// LoadTableState gives what is kept of a table's maintenance.
func (s *Store) LoadTableState(ctx context.Context, tableID uuid.UUID) (maintenance.TableState, error) {
	var state maintenance.TableState
	err := s.read(ctx, func(q querier) error {
		var settings, layout, look []byte
		var checked, after, finished *time.Time
		var dirty bool
		err := q.QueryRow(ctx, sqlLoadTableState, pgx.NamedArgs{"table": tableID}).
			Scan(&settings, &layout, &look, &checked, &after, &dirty, &finished)
		if err != nil {
			return err
		}
		state = maintenance.TableState{Dirty: dirty, CheckedAt: timeOrZero(checked), LookAfter: timeOrZero(after), LastFinished: timeOrZero(finished)}
		for text, into := range map[*[]byte]any{&settings: &state.Settings, &layout: &state.Layout, &look: &state.Look} {
			if err := json.Unmarshal(*text, into); err != nil {
				return fmt.Errorf("decode: %w", err)
			}
		}
		return nil
	})
	if err != nil {
		return maintenance.TableState{}, fmt.Errorf("load the maintenance state of table %s: %w", tableID, err)
	}
	return state, nil
}

func timeOrZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

// New settings are looked at at once, whatever an earlier look has put off.
const sqlSaveSettings = `
INSERT INTO table_maintenance (table_id, settings, dirty_since, updated_at)
VALUES (@table, @set::jsonb - @remove::text[], now(), now())
ON CONFLICT (table_id) DO UPDATE
SET settings = (table_maintenance.settings || EXCLUDED.settings) - @remove::text[],
    dirty_since = coalesce(table_maintenance.dirty_since, EXCLUDED.dirty_since), look_after = NULL, checked_at = NULL,
    look_attempts = 0,
    updated_at = EXCLUDED.updated_at
RETURNING settings`

// SaveSettings merges a change into the stored settings.
func (s *Store) SaveSettings(ctx context.Context, tableID uuid.UUID, change map[string]*string, f catalog.Fact) (maintenance.Stored, error) {
	set, remove := map[string]string{}, []string{}
	for key, value := range change {
		if value == nil {
			remove = append(remove, key)
		} else {
			set[key] = *value
		}
	}
	text, err := json.Marshal(set)
	if err != nil {
		return nil, fmt.Errorf("encode settings: %w", err)
	}
	var stored maintenance.Stored
	err = s.InTx(ctx, func(tx pgx.Tx) error {
		var result []byte
		args := pgx.NamedArgs{"table": tableID, "set": string(text), "remove": remove}
		if err := tx.QueryRow(ctx, sqlSaveSettings, args).Scan(&result); err != nil {
			return err
		}
		stored = nil
		if err := json.Unmarshal(result, &stored); err != nil {
			return fmt.Errorf("decode settings: %w", err)
		}
		return writeFact(ctx, tx, f)
	})
	if err != nil {
		return nil, fmt.Errorf("save the maintenance settings of table %s: %w", tableID, err)
	}
	return stored, nil
}

// A table is due when a commit came and nothing puts the look off, or when a time that was set has come. Taking
// dirty_since away before looking keeps a commit during the look from being lost; look_after brings the table back
// should the looker die.
const sqlClaimLooks = `
UPDATE table_maintenance AS m
SET dirty_since = NULL, look_after = now() + @lease::interval, checked_at = now(), look_attempts = m.look_attempts + 1
FROM (
    SELECT due.table_id FROM table_maintenance AS due
    WHERE (due.enabled OR due.settings->>'enabled' = 'true') AND (due.dirty_since IS NOT NULL OR due.look_after IS NOT NULL)
      AND coalesce(due.settings->>'enabled', 'true') = 'true'
      AND (due.look_after <= now()
           OR (due.look_after IS NULL AND coalesce(due.checked_at <= now() - @spacing::interval, true)))
    ORDER BY due.checked_at NULLS FIRST, due.table_id
    LIMIT @limit
    FOR UPDATE SKIP LOCKED) AS due
WHERE m.table_id = due.table_id
RETURNING m.table_id, m.look_attempts`

const sqlForgetLooks = `
UPDATE table_maintenance SET look_after = NULL, look_attempts = 0 WHERE table_id = ANY(@ids::text[]::uuid[])`

// ClaimLooks takes tables that are due for a look. Those that are gone are not looked at again.
func (s *Store) ClaimLooks(ctx context.Context, limit int) ([]maintenance.LookClaim, error) {
	var claims []maintenance.LookClaim
	err := s.InTx(ctx, func(tx pgx.Tx) error {
		claims = nil
		rows, err := tx.Query(ctx, sqlClaimLooks, pgx.NamedArgs{
			"limit": limit, "lease": maintenance.LeaseDuration, "spacing": lookSpacing,
		})
		if err != nil {
			return err
		}
		attempts, ids := map[uuid.UUID]int{}, []uuid.UUID{}
		var id uuid.UUID
		var n int
		if _, err := pgx.ForEachRow(rows, []any{&id, &n}, func() error {
			attempts[id], ids = n, append(ids, id)
			return nil
		}); err != nil || len(ids) == 0 {
			return err
		}
		refs, err := findTableRefs(ctx, tx, ids)
		if err != nil {
			return err
		}
		for _, r := range refs {
			claims = append(claims, maintenance.LookClaim{TableRef: r, Attempts: attempts[r.ID]})
			delete(attempts, r.ID)
		}
		if len(attempts) == 0 {
			return nil
		}
		gone := slices.Collect(maps.Keys(attempts))
		_, err = tx.Exec(ctx, sqlForgetLooks, pgx.NamedArgs{"ids": idTexts(gone)})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("claim tables to look at: %w", err)
	}
	return claims, nil
}

const sqlExtendLook = `
UPDATE table_maintenance SET look_after = now() + @lease::interval
WHERE table_id = @table AND EXISTS (SELECT FROM tables WHERE tables.id = @table)`

// ExtendLook is a look's heartbeat.
func (s *Store) ExtendLook(ctx context.Context, tableID uuid.UUID) error {
	err := s.InTx(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, sqlExtendLook, pgx.NamedArgs{"table": tableID, "lease": maintenance.LeaseDuration})
		if err == nil && tag.RowsAffected() == 0 {
			err = fault.New(fault.NoSuchTable, "the table was dropped")
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("extend the look at table %s: %w", tableID, err)
	}
	return nil
}

const sqlFinishLook = `
UPDATE table_maintenance
SET look = CASE WHEN @released THEN look ELSE @look::jsonb END,
    look_attempts = CASE WHEN @released THEN greatest(look_attempts - 1, 0) WHEN @parked THEN look_attempts ELSE 0 END,
    look_after = CASE WHEN @after::interval > interval '0' THEN now() + @after::interval END
WHERE table_id = @table`

// FinishLook keeps what a look found.
func (s *Store) FinishLook(ctx context.Context, tableID uuid.UUID, r maintenance.LookResult) error {
	r.Report.Reason.Message = storable(r.Report.Reason.Message) // which quotes what clients wrote
	report, err := json.Marshal(r.Report)
	if err != nil {
		return fmt.Errorf("encode a report: %w", err)
	}
	err = s.InTx(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, sqlFinishLook, pgx.NamedArgs{
			"table": tableID, "look": string(report), "after": r.LookAfter, "parked": r.Parked, "released": r.Released,
		})
		return err
	})
	if err != nil {
		return fmt.Errorf("end the look at table %s: %w", tableID, err)
	}
	return nil
}
