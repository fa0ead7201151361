package catalogtest

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"catalogd/catalog"
)

// Names lists a page at once.
func Names(ctx context.Context, s catalog.NameStore, w catalog.NamesWanted) (names []string, err error) {
	err = s.ListNames(ctx, w, func(piece []string) bool {
		names = append(names, piece...)
		return true
	})
	return names, err
}

// ListNames gives a page of names of one moment, all at once.
func (s *Store) ListNames(ctx context.Context, w catalog.NamesWanted, each func(names []string) bool) error {
	var found []string
	err := s.tx(ctx, "ListNames", func(st *state) error {
		found = st.names(w)
		return nil
	})
	if err == nil && len(found) > 0 {
		each(found)
	}
	return err
}

// ResolveNames is Resolve and ListNames in one moment.
func (s *Store) ResolveNames(
	ctx context.Context, l catalog.Lookup, names func(catalog.Resolution) (catalog.NamesWanted, bool), each func(names []string) bool,
) (catalog.Resolution, error) {
	var res catalog.Resolution
	var found []string
	err := s.tx(ctx, "ResolveNames", func(st *state) error {
		res, found = st.resolve(l), nil
		if w, ok := names(res); ok {
			found = st.names(w)
		}
		return nil
	})
	if err == nil && len(found) > 0 {
		each(found)
	}
	return res, err
}

func (st *state) names(w catalog.NamesWanted) []string {
	var names []string
	for _, n := range st.namespaces {
		if w.Kind == catalog.KindNamespace && n.warehouse == w.WarehouseID && n.parent == w.In {
			names = append(names, n.Levels[len(n.Levels)-1])
		}
	}
	for _, t := range st.tables {
		if t.NamespaceID == w.In && (t.Kind == w.Kind || w.Kind == "") && (w.GrantedTo == nil || st.grantedOn(t, *w.GrantedTo)) {
			names = append(names, t.Ident.Name)
		}
	}
	slices.Sort(names)
	first, found := slices.BinarySearch(names, w.Page.After)
	if found {
		first++
	}
	names = names[first:]
	if w.Page.Limit > 0 {
		names = names[:min(len(names), w.Page.Limit)]
	}
	return names
}

// grantedOn tells whether somebody has a right on a table or view by a grant on that very thing.
func (st *state) grantedOn(t tableRow, to catalog.GrantedTo) bool {
	if owns(to.Principal, t.OwnerID) {
		return true
	}
	roles := st.withCatalogRoles(st.activeRoles(to.Principal), t.warehouse)
	for row := range st.grants {
		_, acts := roles[row.role]
		if acts && row.securable == t.ID && string(row.kind) == string(t.Kind) && slices.Contains(to.Privileges, row.privilege) {
			return true
		}
	}
	return false
}

// inNamespace asks for the names of a kind in a namespace.
func inNamespace(id uuid.UUID, kind catalog.Kind, p catalog.Page) catalog.NamesWanted {
	return catalog.NamesWanted{In: id, Kind: kind, Page: p}
}

// names lists a page of the bench's store at once.
func (b *bench) names(w catalog.NamesWanted) []string {
	b.Helper()
	names, err := Names(b.Context(), b.store, w)
	b.must(err)
	return names
}
