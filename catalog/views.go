package catalog

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"catalogd/authz"
	"catalogd/catalog/commit"
	"catalogd/internal/deflate"
)

// viewFormatVersion is the only one that there is.
const viewFormatVersion = 1

// LoadedView is the answer to a load, a create and a replace of a view. A view has no files but its metadata, so no
// credentials ever go with it.
type LoadedView struct {
	MetadataLocation string
	Metadata         []byte         // JSON, as it goes to the client
	Packed           deflate.Packed // of Metadata; the zero value when it is not there packed
	View             *commit.View
}

// ListViews gives the views of a namespace by name, all of one moment.
func (s *Service) ListViews(ctx context.Context, c Caller, warehouse string, ns Namespace, p Page, each EachNames) error {
	return s.listKind(ctx, c, KindView, Lookup{Warehouse: warehouse, Namespace: ns}, p, each)
}

// ViewExists is nil when the view is there and the caller may list it.
func (s *Service) ViewExists(ctx context.Context, c Caller, warehouse string, id Identifier) error {
	_, err := s.resolveView(ctx, c, warehouse, id, need{"view-exists", id.String(), authz.ViewList})
	return err
}

// LoadView answers a view's metadata. No file is looked at for it while memory or the database has the text, whatever
// the warehouse says of tables: engines load all views of a namespace to list their columns, and nothing but this text
// belongs to a view.
func (s *Service) LoadView(ctx context.Context, c Caller, warehouse string, id Identifier) (LoadedView, error) {
	res, err := s.resolveView(ctx, c, warehouse, id, need{"load-view", id.String(), authz.ViewReadProperties})
	if err != nil {
		return LoadedView{}, err
	}
	v, entry, err := currentEntry(ctx, s, *res.Warehouse, *res.View, commit.ParseView)
	if err != nil {
		return LoadedView{}, err
	}
	loaded := loadedView(*res.View, v)
	loaded.Packed = entry.packed
	return loaded, nil
}

func loadedView(record TableRecord, v *commit.View) LoadedView {
	return LoadedView{MetadataLocation: record.MetadataLocation, Metadata: v.JSON(), View: v}
}

// CreateView makes a view. Its location obeys the rules of tables' locations: what may write there may replace the
// metadata of whatever lies there.
func (s *Service) CreateView(ctx context.Context, c Caller, r CreateViewRequest) (LoadedView, error) {
	id := Identifier{Namespace: r.Namespace, Name: r.Body.Name}
	if err := id.Validate(); err != nil {
		return LoadedView{}, err
	}
	return once(ctx, s, c, func() (LoadedView, *Outcome, error) {
		made, err := s.createView(ctx, c, r, id)
		return made, nil, err
	}, func(o Outcome) (LoadedView, error) {
		n := need{"create-view", id.String(), authz.ViewCreate}
		return s.replayView(ctx, c, mutation{KindView, r.Warehouse, id, n, o})
	})
}

func (s *Service) createView(ctx context.Context, c Caller, r CreateViewRequest, id Identifier) (LoadedView, error) {
	if err := checkProperties(r.Body.Properties); err != nil {
		return LoadedView{}, err
	}
	res, err := s.resolveForCreate(ctx, c, KindView, r.Warehouse, id, "create-view")
	if err != nil {
		return LoadedView{}, err
	}
	w := *res.Warehouse
	viewUUID := uuid.New()
	location, err := res.newLocation(r.Body.Location, viewUUID)
	if err != nil {
		return LoadedView{}, err
	}
	v, err := commit.CreateView(r.Body, commit.CreateStamp{
		Now: s.Now(), UUID: viewUUID.String(), Location: location, Presets: w.viewPresets(),
	})
	if err != nil {
		return LoadedView{}, fmt.Errorf("create view %s: %w", id, err)
	}
	if err := res.checkDocument(v, location); err != nil {
		return LoadedView{}, err
	}
	record, err := s.createOnce(ctx, w, func() pending {
		return s.creation(c, "create-view", res, newRecord(res, KindView, id, v, viewFormatVersion), v)
	})
	if err != nil {
		return LoadedView{}, err
	}
	return loadedView(record, v), nil
}

// ReplaceView applies changes to one view. Lost races are tried again here, on the view as it is then; failed
// requirements go to the client. After the pointer has moved, nothing can fail the answer.
func (s *Service) ReplaceView(ctx context.Context, c Caller, r ReplaceViewRequest) (LoadedView, error) {
	return once(ctx, s, c, func() (LoadedView, *Outcome, error) {
		pass, err := s.turn(ctx, r.Warehouse, r.Ident)
		if err != nil {
			return LoadedView{}, nil, err
		}
		defer pass()
		p, err := carryOut(ctx, s, r.Fence, func() (plan[*commit.View], error) { return s.planReplace(ctx, c, r) })
		if err != nil {
			return LoadedView{}, nil, err
		}
		return loadedView(p.record, p.document), p.left(), nil
	}, func(o Outcome) (LoadedView, error) {
		n := need{"replace-view", r.Ident.String(), authz.ViewReadProperties}
		return s.replayView(ctx, c, mutation{KindView, r.Warehouse, r.Ident, n, o})
	})
}

// planReplace authorises, checks and applies a change to the view as it is now. It writes nothing.
func (s *Service) planReplace(ctx context.Context, c Caller, r ReplaceViewRequest) (plan[*commit.View], error) {
	none := plan[*commit.View]{}
	n := need{"replace-view", r.Ident.String(), authz.ViewWriteProperties}
	res, err := s.resolveView(ctx, c, r.Warehouse, r.Ident, n)
	if err != nil {
		return none, err
	}
	if err := checkProperties(r.Change.NewProperties()); err != nil {
		return none, err
	}
	w, record := *res.Warehouse, *res.View
	base, err := current(ctx, s, w, record, commit.ParseView)
	if err != nil {
		return none, err
	}
	if err := commit.CheckView(base, r.Change); err != nil {
		return none, err
	}
	next, changed, err := commit.ApplyView(base, r.Change, commit.Stamp{Now: s.Now(), MetadataLocation: record.MetadataLocation})
	if err != nil {
		return none, err
	}
	p := plan[*commit.View]{warehouse: w, record: record, document: next}
	if !changed {
		return p, nil
	}
	if err := res.checkDocument(next, record.Location); err != nil {
		return none, err
	}
	p.work = s.swap(c, n.operation, w, record, next)
	p.work.change.Restores = restores(res)
	return p, nil
}

// DropView takes a view out of its namespace. Its metadata files stay, for who wants to register it again.
func (s *Service) DropView(ctx context.Context, c Caller, warehouse string, id Identifier) error {
	return s.onceSilent(ctx, c, warehouse, func() (*Outcome, error) {
		return nil, s.retryRaces(ctx, func() error { return s.dropView(ctx, c, warehouse, id) })
	})
}

func (s *Service) dropView(ctx context.Context, c Caller, warehouse string, id Identifier) error {
	res, err := s.resolveView(ctx, c, warehouse, id, need{"drop-view", id.String(), authz.ViewDrop})
	if err != nil {
		return err
	}
	f := remember(s.fact(c, "drop-view", id.String(), res.Warehouse.ID, res.View.ID), Outcome{})
	f.Details = map[string]any{"view-uuid": res.View.UUID.String()}
	err = s.Store.DropTable(ctx, TableDrop{ID: res.View.ID, Kind: KindView, Ident: id, From: res.View.place(), Fact: f})
	if err != nil {
		return fmt.Errorf("drop view %s: %w", id, err)
	}
	return nil
}

// RenameView gives a view another name. No file moves; uuid, location and grants stay.
func (s *Service) RenameView(ctx context.Context, c Caller, r RenameTableRequest) error {
	return s.renameKind(ctx, c, KindView, r)
}
