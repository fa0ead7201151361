package store

import (
	"context"
	"encoding/binary"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"catalogd/auth"
	"catalogd/authz"
	"catalogd/catalog"
	"catalogd/internal/lru"
)

// What a lookup answers beside the table's row changes seldom: warehouse, namespaces, the caller's roles and grants. It
// is kept in memory together with the access epoch that it was read with. Everything that could change it moves the
// epoch in the same transaction (the triggers of migration 0002), and each lookup reads the epoch together with the
// table's row; so what is kept is used while it is exactly what the database would answer, in this server and in all
// others, and never longer.

const (
	// decisionsBytesMax bounds what is kept.
	decisionsBytesMax = 16 << 20
	// decisionOverheadBytes stands for an entry's structs and its place in the cache.
	decisionOverheadBytes = 1024
	// turnSecondsMax is how long a request waits while another asks the same; then it asks too.
	turnSecondsMax = time.Second
)

// decision is a Resolution but for the table or view and the grants on it. Nobody writes to what it points at.
type decision struct {
	epoch int64
	res   catalog.Resolution
	// tableRoles are the acting roles, by id, that have a grant on some table or view.
	tableRoles map[uuid.UUID]string
	// tableRoleIDs are their ids as tableWanted has them.
	tableRoleIDs string
}

// decisions keeps them by who asks for what.
type decisions struct {
	mu     sync.Mutex
	kept   *lru.Cache[string, decision]
	asking map[string]chan struct{} // closed when the answer is there, or none came
}

func newDecisions() *decisions {
	return &decisions{kept: lru.New[string, decision](decisionsBytesMax), asking: map[string]chan struct{}{}}
}

// turn lets one at a time ask for everything: it gets done, which it must call, and whoever comes meanwhile waits for that
// and gets nil. Nobody takes over another's answer, which may be of a moment before he came: he looks at what is kept
// again, as always with an epoch that is read after his coming. Who has waited for long gets nil too.
func (d *decisions) turn(ctx context.Context, key string) (done func(), err error) {
	d.mu.Lock()
	asking, found := d.asking[key]
	if !found {
		asking = make(chan struct{})
		d.asking[key] = asking
	}
	d.mu.Unlock()
	if !found {
		return func() {
			d.mu.Lock()
			defer d.mu.Unlock()
			delete(d.asking, key)
			close(asking)
		}, nil
	}
	longest := time.NewTimer(turnSecondsMax)
	defer longest.Stop()
	select {
	case <-asking:
		return nil, nil
	case <-longest.C:
		return nil, nil
	case <-ctx.Done():
		return nil, translate(ctx.Err())
	}
}

func (d *decisions) find(key string) (decision, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.kept.Find(key)
}

// keep takes what was read, unless what is there was read later.
func (d *decisions) keep(key string, read decision, bytes int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if there, ok := d.kept.Find(key); ok && there.epoch > read.epoch {
		return
	}
	d.kept.Put(key, read, bytes+2*len(key)+decisionOverheadBytes)
}

// decisionKey spells everything of a lookup that its decision depends on. Each part begins with its length, so two
// lookups have one key only when they are the same.
func decisionKey(l catalog.Lookup) string {
	key := make([]byte, 0, 128)
	if l.Principal.Kind == auth.System {
		key = append(key, 'S')
	} else {
		key = append(append(key, 'P'), l.Principal.ID[:]...)
	}
	if l.Principal.Roles.All {
		key = append(key, 'A')
	} else {
		key = append(key, 'N')
		key = appendTexts(key, l.Principal.Roles.Names)
	}
	key = appendTexts(key, l.Principal.Roles.ActiveBrought())
	key = appendTexts(key, []string{l.Warehouse})
	return string(appendTexts(key, l.Namespace))
}

func appendTexts(key []byte, texts []string) []byte {
	key = binary.AppendUvarint(key, uint64(len(texts)))
	for _, text := range texts {
		key = binary.AppendUvarint(key, uint64(len(text)))
		key = append(key, text...)
	}
	return key
}

// split takes the table and the grants on it out of a whole resolution.
func (d *decision) split(whole catalog.Resolution) {
	d.res = whole
	d.res.Table, d.res.View, d.res.Grants = nil, nil, nil
	d.res = d.copied() // whole is the first caller's
	for _, g := range whole.Grants {
		if g.Kind != authz.Table && g.Kind != authz.View {
			d.res.Grants = append(d.res.Grants, g)
		}
	}
}

// wants says what has to be asked beside.
func (d *decision) wants(l catalog.Lookup) tableWanted {
	w := tableWanted{name: lookup(l.Table), roles: d.tableRoleIDs}
	if d.res.Warehouse != nil && d.res.Warehouse.FoldsNames {
		w.name = fold(l.Table)
	}
	if d.res.Namespace != nil && l.Table != "" {
		w.namespace = d.res.Namespace.ID
	}
	return w
}

// copied gives the structs anew, so that a caller may change his own; properties are not for changing.
func (d *decision) copied() catalog.Resolution {
	res := d.res
	res.Grants = res.Grants[:len(res.Grants):len(res.Grants)]
	res.Ancestors = slices.Clone(res.Ancestors)
	if res.Warehouse != nil {
		w := *res.Warehouse
		res.Warehouse = &w
	}
	if res.Namespace != nil {
		n := *res.Namespace
		res.Namespace = &n
	}
	return res
}

// with puts a table or view, and the grants on it, into what is kept.
func (d *decision) with(found tableFound) catalog.Resolution {
	res := d.copied()
	if found.record == nil {
		return res
	}
	record := found.record
	record.Ident.Namespace = res.Namespace.Levels
	if record.Kind == catalog.KindView {
		res.View = record
	} else {
		res.Table = record
	}
	for _, g := range found.grants {
		if name, acts := d.tableRoles[g.RoleID]; acts {
			res.Grants = append(res.Grants, authz.Grant{
				Privilege: g.Privilege, Kind: g.Kind, SecurableID: record.ID, Role: name,
			})
		}
	}
	return res
}
