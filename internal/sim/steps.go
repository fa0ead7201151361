package sim

import (
	"context"
	"encoding/json"
	"fmt"

	"catalogd/catalog"
	"catalogd/catalog/commit"
	"catalogd/internal/fault"
)

var background = context.Background()

func (h *history) create() error {
	id := h.freshName()
	body, err := commit.DecodeCreate([]byte(fmt.Sprintf(
		`{"name":%q,"schema":{"type":"struct","fields":[{"id":1,"name":"id","type":"long","required":false}]}}`, id.Name)))
	if err != nil {
		return err
	}
	loaded, err := h.service.CreateTable(background, caller, catalog.CreateTableRequest{
		Warehouse: warehouse, Namespace: id.Namespace, Body: body,
	})
	h.note("create %s: %v", id, err)
	if err == nil {
		h.tables = append(h.tables, &table{ident: id, uuid: loaded.Document.UUID(), doubtful: map[int64]bool{}})
		return nil
	}
	return unlessRetryable(err)
}

func unlessRetryable(err error) error {
	if err == nil || retryable(err) {
		return nil
	}
	return err
}

// head loads a table in calm, as a client that got an answer.
func (h *history) head(t *table) (*commit.Document, error) {
	h.calm = true
	defer func() { h.calm = false }()
	loaded, err := h.service.LoadTable(background, caller, catalog.LoadTableRequest{Warehouse: warehouse, Ident: t.ident})
	return loaded.Document, err
}

// appendRequest adds one snapshot on the head of d, or, stale, with a requirement that cannot hold.
func (h *history) appendRequest(d *commit.Document, stale bool) (commit.Request, int64, error) {
	h.snapshot++
	id := h.snapshot
	snapshot := map[string]any{
		"snapshot-id": id, "sequence-number": d.LastSequenceNumber() + 1, "timestamp-ms": h.now.UnixMilli(),
		"manifest-list": fmt.Sprintf("%s/metadata/snap-%d.avro", d.Location(), id), "schema-id": 0,
		"summary": map[string]string{"operation": "append"},
	}
	var before any
	if current, ok := d.CurrentSnapshotID(); ok {
		snapshot["parent-snapshot-id"], before = current, current
	}
	if stale {
		before = id + 1_000_000
	}
	raw, err := json.Marshal(map[string]any{
		"requirements": []any{
			map[string]any{"type": "assert-table-uuid", "uuid": d.UUID()},
			map[string]any{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": before},
		},
		"updates": []any{
			map[string]any{"action": "add-snapshot", "snapshot": snapshot},
			map[string]any{"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": id},
		},
	})
	if err != nil {
		return commit.Request{}, 0, err
	}
	r, err := commit.DecodeRequest(raw)
	return r, id, err
}

func (h *history) append(t *table, stale bool) error {
	d, err := h.head(t)
	if err != nil {
		return err
	}
	r, id, err := h.appendRequest(d, stale)
	if err != nil {
		return err
	}
	_, err = h.service.CommitTable(background, caller, catalog.CommitTableRequest{Warehouse: warehouse, Ident: t.ident, Change: r})
	h.note("append %d to %s (stale %v): %v", id, t.ident, stale, err)
	switch {
	case err == nil && stale:
		return fmt.Errorf("a stale append was taken")
	case err == nil:
		t.acknowledged, t.last = append(t.acknowledged, id), r
		return nil
	case fault.Is(err, fault.CommitUnknown):
		t.doubtful[id] = true
	}
	return unlessRetryable(err)
}

// repeat sends the last acknowledged append again: it is answered as landed and changes nothing.
func (h *history) repeat(t *table) error {
	if len(t.last.Updates) == 0 {
		return nil
	}
	_, err := h.service.CommitTable(background, caller, catalog.CommitTableRequest{Warehouse: warehouse, Ident: t.ident, Change: t.last})
	h.note("repeat on %s: %v", t.ident, err)
	if fault.Is(err, fault.CommitConflict) {
		return fmt.Errorf("the repeat of a landed commit was refused: %w", err)
	}
	return unlessRetryable(err)
}

func (h *history) properties(t *table) error {
	r, err := commit.DecodeRequest([]byte(fmt.Sprintf(
		`{"requirements":[],"updates":[{"action":"set-properties","updates":{"n":"%d"}}]}`, h.rnd.IntN(1000))))
	if err != nil {
		return err
	}
	_, err = h.service.CommitTable(background, caller, catalog.CommitTableRequest{Warehouse: warehouse, Ident: t.ident, Change: r})
	h.note("properties of %s: %v", t.ident, err)
	return unlessRetryable(err)
}

// transaction appends to two tables, or to one when there is no second: all or none.
func (h *history) transaction() error {
	chosen := []*table{h.pick()}
	if other := h.pick(); other != chosen[0] {
		chosen = append(chosen, other)
	}
	var changes []catalog.TableChange
	ids := make([]int64, len(chosen))
	stale := h.rnd.IntN(4) == 0
	for i, t := range chosen {
		d, err := h.head(t)
		if err != nil {
			return err
		}
		r, id, err := h.appendRequest(d, stale && i == len(chosen)-1)
		if err != nil {
			return err
		}
		ids[i] = id
		changes = append(changes, catalog.TableChange{Ident: t.ident, Change: r})
	}
	err := h.service.CommitTransaction(background, caller, warehouse, changes)
	h.note("transaction %v on %d tables (stale %v): %v", ids, len(chosen), stale, err)
	for i, t := range chosen {
		if err == nil {
			t.acknowledged, t.last = append(t.acknowledged, ids[i]), changes[i].Change
		} else if fault.Is(err, fault.CommitUnknown) {
			t.doubtful[ids[i]] = true
		}
	}
	if err == nil && stale {
		return fmt.Errorf("a stale transaction was taken")
	}
	return unlessRetryable(err)
}

func (h *history) rename(t *table) error {
	to := h.freshName()
	h.calm = true // a rename whose answer is lost leaves the model without a name to look for
	err := h.service.RenameTable(background, caller, catalog.RenameTableRequest{Warehouse: warehouse, From: t.ident, To: to})
	h.calm = false
	h.note("rename %s to %s: %v", t.ident, to, err)
	if err == nil {
		t.ident = to
	}
	return err
}

func (h *history) drop(i int) error {
	h.calm = true
	err := h.service.DropTable(background, caller, catalog.DropTableRequest{Warehouse: warehouse, Ident: h.tables[i].ident})
	h.calm = false
	h.note("drop %s: %v", h.tables[i].ident, err)
	h.tables = append(h.tables[:i], h.tables[i+1:]...)
	return err
}
