package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

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
	var made string
	err, broken := h.sent(fmt.Sprintf("create %s", id), func(c catalog.Caller) (string, error) {
		loaded, err := h.service.CreateTable(background, c, catalog.CreateTableRequest{
			Warehouse: warehouse, Namespace: id.Namespace, Body: body,
		})
		if err == nil {
			made = loaded.Document.UUID()
		}
		return loaded.MetadataLocation, err
	})
	if err == nil {
		h.tables = append(h.tables, &table{ident: id, uuid: made, doubtful: map[int64]bool{}})
	}
	return errors.Join(broken, unlessRetryable(err))
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
	err, broken := h.sent(fmt.Sprintf("append %d to %s (stale %v)", id, t.ident, stale), h.commits(t, r))
	switch {
	case broken != nil:
		return broken
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

// commits is the commit of a change to a table.
func (h *history) commits(t *table, r commit.Request) func(catalog.Caller) (string, error) {
	return func(c catalog.Caller) (string, error) {
		loaded, err := h.service.CommitTable(background, c, catalog.CommitTableRequest{Warehouse: warehouse, Ident: t.ident, Change: r})
		return loaded.MetadataLocation, err
	}
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
	err, broken := h.sent(fmt.Sprintf("properties of %s", t.ident), h.commits(t, r))
	return errors.Join(broken, unlessRetryable(err))
}

// transaction appends to several tables, and sometimes makes one with them: all or none.
func (h *history) transaction() error {
	var chosen []*table
	for range 1 + h.rnd.IntN(4) {
		if t := h.pick(); !slices.Contains(chosen, t) {
			chosen = append(chosen, t)
		}
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
	made, err := h.createdWith(&changes)
	if err != nil {
		return err
	}
	err, broken := h.sent(fmt.Sprintf("transaction %v on %d tables (stale %v)", ids, len(changes), stale), func(c catalog.Caller) (string, error) {
		return "", h.service.CommitTransaction(background, c, warehouse, changes)
	})
	for i, t := range chosen {
		if err == nil {
			t.acknowledged, t.last = append(t.acknowledged, ids[i]), changes[i].Change
		} else if fault.Is(err, fault.CommitUnknown) {
			t.doubtful[ids[i]] = true
		}
	}
	if made != nil {
		broken = errors.Join(broken, h.madeInTransaction(made, err))
	}
	if err == nil && stale {
		return fmt.Errorf("a stale transaction was taken")
	}
	return errors.Join(broken, unlessRetryable(err))
}

// createdWith adds the creation of a table to a transaction, sometimes; nil when it does not.
func (h *history) createdWith(changes *[]catalog.TableChange) (*table, error) {
	if h.rnd.IntN(3) > 0 {
		return nil, nil
	}
	made := &table{ident: h.freshName(), uuid: h.newKey().String(), doubtful: map[int64]bool{}}
	r, err := commit.DecodeRequest([]byte(fmt.Sprintf(`{"requirements":[{"type":"assert-create"}],"updates":[{"action":"assign-uuid","uuid":%q},
		{"action":"add-schema","schema":{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","type":"long","required":false}]}},
		{"action":"set-current-schema","schema-id":-1},{"action":"add-spec","spec":{"spec-id":0,"fields":[]}},
		{"action":"set-default-spec","spec-id":-1},{"action":"add-sort-order","sort-order":{"order-id":0,"fields":[]}},
		{"action":"set-default-sort-order","sort-order-id":-1}]}`, made.uuid)))
	*changes = append(*changes, catalog.TableChange{Ident: made.ident, Change: r})
	return made, err
}

// madeInTransaction holds a table that a transaction was to make against the transaction's answer.
func (h *history) madeInTransaction(made *table, answer error) error {
	_, err := h.head(made)
	switch {
	case answer == nil:
		h.tables = append(h.tables, made)
		return err
	case err == nil && !fault.Is(answer, fault.CommitUnknown):
		return fmt.Errorf("%s was made by a transaction that was refused: %w", made.ident, answer)
	case err == nil:
		h.tables = append(h.tables, made)
	}
	return nil
}

// rename moves a table. With a key alone the model learns for certain what became of a lost answer.
func (h *history) rename(t *table) error {
	to := h.freshName()
	err, broken := h.sentWithKey(fmt.Sprintf("rename %s to %s", t.ident, to), func(c catalog.Caller) (string, error) {
		return "", h.service.RenameTable(background, c, catalog.RenameTableRequest{Warehouse: warehouse, From: t.ident, To: to})
	})
	if err == nil {
		t.ident = to
	}
	return errors.Join(broken, err)
}

func (h *history) drop(i int) error {
	id := h.tables[i].ident
	err, broken := h.sentWithKey(fmt.Sprintf("drop %s", id), func(c catalog.Caller) (string, error) {
		return "", h.service.DropTable(background, c, catalog.DropTableRequest{Warehouse: warehouse, Ident: id})
	})
	h.tables = append(h.tables[:i], h.tables[i+1:]...)
	return errors.Join(broken, err)
}
