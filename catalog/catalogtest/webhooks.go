package catalogtest

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"catalogd/catalog"
	"catalogd/internal/fault"
)

// webhookLease is how long a claim lasts.
const webhookLease = time.Minute

type webhookRow struct {
	catalog.Webhook
	notBefore, leaseUntil time.Time
	epoch                 int64
}

type deliveryKey struct {
	webhook  uuid.UUID
	position int64
}

func webhookMissing(id uuid.UUID) error {
	return fault.New(fault.NotFound, "there is no webhook %s", id)
}

// counted is a webhook as it is shown.
func (st *state) counted(row webhookRow) catalog.Webhook {
	w := row.Webhook
	w.Warehouse = st.warehouses[w.WarehouseID].Name
	for key, d := range st.deliveries {
		switch {
		case key.webhook != w.ID:
		case d.Dead:
			w.Dead++
		default:
			w.Waiting++
		}
	}
	return w
}

// CreateWebhook makes a webhook that begins with the next event.
func (s *Store) CreateWebhook(ctx context.Context, w catalog.Webhook, f catalog.Fact) error {
	return s.tx(ctx, "CreateWebhook", func(st *state) error {
		if _, there := st.warehouses[w.WarehouseID]; w.WarehouseID != uuid.Nil && !there {
			return fault.New(fault.NoSuchWarehouse, "the warehouse no longer exists: %s", w.Warehouse)
		}
		here := 0
		for _, row := range st.webhooks {
			if w.WarehouseID != uuid.Nil && row.WarehouseID == w.WarehouseID {
				here++
			}
		}
		if len(st.webhooks) >= catalog.WebhooksMax || here >= catalog.WebhooksOfWarehouseMax {
			return catalog.ErrWebhooksMax
		}
		w.Position = st.feeds.eventsGiven
		st.webhooks[w.ID] = webhookRow{Webhook: w, notBefore: st.now}
		return st.write(f)
	})
}

// FindWebhook gives a webhook.
func (s *Store) FindWebhook(ctx context.Context, id uuid.UUID) (w catalog.Webhook, err error) {
	err = s.tx(ctx, "FindWebhook", func(st *state) error {
		row, ok := st.webhooks[id]
		if !ok {
			return webhookMissing(id)
		}
		w = st.counted(row)
		w.Behind = int64(len(st.eventsOf(catalog.EventQuery{EventFilter: w.Events(), After: w.Position, Limit: catalog.WebhookBehindMax})))
		return nil
	})
	return w, err
}

// ListWebhooks gives those of a warehouse, or all.
func (s *Store) ListWebhooks(ctx context.Context, warehouseID uuid.UUID) (all []catalog.Webhook, err error) {
	err = s.tx(ctx, "ListWebhooks", func(st *state) error {
		all = nil
		for _, row := range st.webhooks {
			if warehouseID == uuid.Nil || row.WarehouseID == warehouseID {
				all = append(all, st.counted(row))
			}
		}
		slices.SortFunc(all, func(a, b catalog.Webhook) int {
			return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID.String(), b.ID.String()))
		})
		return nil
	})
	return all, err
}

// UpdateWebhook changes a webhook.
func (s *Store) UpdateWebhook(ctx context.Context, id uuid.UUID, change catalog.WebhookChange, f catalog.Fact) error {
	return s.changeWebhook(ctx, "UpdateWebhook", id, f, func(st *state, row *webhookRow) error {
		if change.URL != nil {
			row.URL = *change.URL
		}
		if change.Filter != nil {
			row.Filter = *change.Filter
		}
		if change.Enabled != nil {
			row.Enabled = *change.Enabled
		}
		row.Failures, row.notBefore = 0, st.now
		row.epoch++
		row.leaseUntil = time.Time{}
		if !row.Enabled {
			return nil
		}
		row.Problem = ""
		for key, d := range st.deliveries {
			if key.webhook == id && !d.Dead {
				d.Next = st.now
				st.deliveries[key] = d
			}
		}
		return nil
	})
}

func (s *Store) changeWebhook(ctx context.Context, method string, id uuid.UUID, f catalog.Fact, change func(st *state, row *webhookRow) error) error {
	return s.tx(ctx, method, func(st *state) error {
		row, ok := st.webhooks[id]
		if !ok {
			return webhookMissing(id)
		}
		if err := change(st, &row); err != nil {
			return err
		}
		st.webhooks[id] = row
		return st.write(f)
	})
}

// DropWebhook forgets a webhook.
func (s *Store) DropWebhook(ctx context.Context, id uuid.UUID, f catalog.Fact) error {
	return s.tx(ctx, "DropWebhook", func(st *state) error {
		if _, ok := st.webhooks[id]; !ok {
			return webhookMissing(id)
		}
		st.forgetWebhook(id)
		return st.write(f)
	})
}

func (st *state) forgetWebhook(id uuid.UUID) {
	delete(st.webhooks, id)
	maps.DeleteFunc(st.deliveries, func(key deliveryKey, _ catalog.Delivery) bool { return key.webhook == id })
}

// ResealWebhook replaces a secret's encrypted form.
func (s *Store) ResealWebhook(ctx context.Context, id uuid.UUID, old, fresh []byte) error {
	return s.tx(ctx, "ResealWebhook", func(st *state) error {
		if row, ok := st.webhooks[id]; ok && slices.Equal(row.Sealed, old) {
			row.Sealed = fresh
			st.webhooks[id] = row
		}
		return nil
	})
}

// RedeliverWebhook lets events be sent once more.
func (s *Store) RedeliverWebhook(ctx context.Context, id, event uuid.UUID, f catalog.Fact) (n int, err error) {
	err = s.changeWebhook(ctx, "RedeliverWebhook", id, f, func(st *state, row *webhookRow) error {
		n = 0
		row.notBefore, row.Failures = st.now, 0
		for _, e := range st.feeds.events {
			key := deliveryKey{id, e.Position}
			dead := st.deliveries[key].Dead
			if event == uuid.Nil && !dead || event != uuid.Nil && (e.ID != event || e.Position > row.Position) ||
				row.WarehouseID != uuid.Nil && row.WarehouseID != e.WarehouseID {
				continue
			}
			n++
			st.deliveries[key] = catalog.Delivery{Position: e.Position, Event: e, Lane: e.SecurableID, FirstAt: st.now, Next: st.now}
		}
		if n == 0 && event != uuid.Nil {
			return fault.New(fault.NotFound, "webhook %s has had no event %s, or it has been removed for its age", id, event)
		}
		return nil
	})
	return n, err
}

// deliveriesOf gives a webhook's, in order, each with its event when that is still there.
func (st *state) deliveriesOf(id uuid.UUID, wanted func(catalog.Delivery) bool) (all []catalog.Delivery) {
	for key, d := range st.deliveries {
		if key.webhook != id || !wanted(d) {
			continue
		}
		i := slices.IndexFunc(st.feeds.events, func(e catalog.EventRow) bool { return e.Position == key.position })
		d.Event = catalog.EventRow{Position: key.position}
		if i >= 0 {
			d.Event = st.feeds.events[i]
			d.Event.Warehouse = st.warehouses[d.Event.WarehouseID].Name
		}
		all = append(all, d)
	}
	slices.SortFunc(all, func(a, b catalog.Delivery) int { return cmp.Compare(a.Position, b.Position) })
	return all
}

// ListDeliveries gives what was given up and what waits.
func (s *Store) ListDeliveries(ctx context.Context, id uuid.UUID, limit int) (all []catalog.Delivery, err error) {
	err = s.tx(ctx, "ListDeliveries", func(st *state) error {
		all = append(st.deliveriesOf(id, func(d catalog.Delivery) bool { return d.Dead }),
			st.deliveriesOf(id, func(d catalog.Delivery) bool { return !d.Dead })...)
		all = all[:min(limit, len(all))]
		return nil
	})
	return all, err
}

// due gives the first deliveries of their lanes that may be tried.
func (st *state) due(id uuid.UUID) (due []catalog.Delivery, blocked []uuid.UUID) {
	for _, d := range st.deliveriesOf(id, func(d catalog.Delivery) bool { return !d.Dead }) {
		if slices.Contains(blocked, d.Lane) {
			continue
		}
		blocked = append(blocked, d.Lane)
		if !d.Next.After(st.now) {
			due = append(due, d)
		}
	}
	return due, blocked
}

// ClaimWebhook takes a webhook that something is to be delivered to.
func (s *Store) ClaimWebhook(ctx context.Context) (claim *catalog.WebhookClaim, err error) {
	err = s.tx(ctx, "ClaimWebhook", func(st *state) error {
		claim = nil
		var free []webhookRow
		for id, row := range st.webhooks {
			due, _ := st.due(id)
			if row.Enabled && !row.notBefore.After(st.now) && row.leaseUntil.Before(st.now) && (row.Position < st.feeds.eventsGiven || len(due) > 0) {
				free = append(free, row)
			}
		}
		if len(free) == 0 {
			return nil
		}
		row := slices.MinFunc(free, func(a, b webhookRow) int {
			return cmp.Or(a.notBefore.Compare(b.notBefore), cmp.Compare(a.ID.String(), b.ID.String()))
		})
		row.epoch++
		row.leaseUntil = st.now.Add(webhookLease)
		row.Warehouse = st.warehouses[row.WarehouseID].Name
		st.webhooks[row.ID] = row
		claim = &catalog.WebhookClaim{Webhook: row.Webhook, Epoch: row.epoch, Through: st.feeds.eventsGiven, Lease: webhookLease}
		return nil
	})
	return claim, err
}

// WebhookWork gives what a claimed webhook is to get.
func (s *Store) WebhookWork(ctx context.Context, c catalog.WebhookClaim, limit int) (work catalog.WebhookWork, err error) {
	err = s.tx(ctx, "WebhookWork", func(st *state) error {
		work = catalog.WebhookWork{Open: true}
		work.Due, work.Blocked = st.due(c.ID)
		work.Due = work.Due[:min(limit, len(work.Due))]
		q := catalog.EventQuery{EventFilter: c.Events(), After: c.Position, Limit: limit}
		work.Fresh = slices.DeleteFunc(st.eventsOf(q), func(e catalog.EventRow) bool { return e.Position > c.Through })
		return nil
	})
	return work, err
}

// MarkWebhook keeps what became of deliveries.
func (s *Store) MarkWebhook(ctx context.Context, c catalog.WebhookClaim, m catalog.WebhookMark) error {
	return s.tx(ctx, "MarkWebhook", func(st *state) error {
		row, ok := st.webhooks[c.ID]
		if !ok || row.epoch != c.Epoch || !row.leaseUntil.After(st.now) {
			return fault.New(fault.VersionConflict, "webhook %s is another deliverer's by now", c.ID)
		}
		row.Position, row.leaseUntil = max(row.Position, m.Position), st.now.Add(webhookLease)
		switch {
		case m.Delivered:
			row.Failures, row.Problem, row.DeliveredAt = 0, "", st.now
		case m.Problem != "":
			row.Failures, row.Problem = row.Failures+1, m.Problem
		}
		st.webhooks[c.ID] = row
		delete(st.deliveries, deliveryKey{c.ID, m.Done})
		for _, d := range m.Put {
			key := deliveryKey{c.ID, d.Position}
			first := st.now
			if before, there := st.deliveries[key]; there {
				first, d.Lane = before.FirstAt, before.Lane
			}
			d.FirstAt, d.Next = first, st.now.Add(m.Delay)
			st.deliveries[key] = d
		}
		return nil
	})
}

// ReleaseWebhook ends a claim.
func (s *Store) ReleaseWebhook(ctx context.Context, c catalog.WebhookClaim, r catalog.WebhookRelease) error {
	return s.tx(ctx, "ReleaseWebhook", func(st *state) error {
		row, ok := st.webhooks[c.ID]
		if !ok || row.epoch != c.Epoch {
			return nil
		}
		row.leaseUntil, row.notBefore = time.Time{}, st.now.Add(r.Delay)
		row.Enabled, row.Problem = row.Enabled && r.Disabled == nil, cmp.Or(r.Problem, row.Problem)
		st.webhooks[c.ID] = row
		if r.Disabled != nil {
			return st.write(*r.Disabled)
		}
		return nil
	})
}
