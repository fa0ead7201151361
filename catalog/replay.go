package catalog

import (
	"context"

	"github.com/google/uuid"

	"catalogd/authz"
	"catalogd/catalog/commit"
	"catalogd/internal/fault"
	"catalogd/vending"
)

// A replay answers a request whose change has landed before. It changes nothing and runs nothing again, but it asks for
// the caller's rights as they are now, and whatever is secret in its answer is made for it afresh.

// replayed is a table or a view as a mutation left it, with what the caller may do now.
type replayed[D metadataText] struct {
	res      Resolution
	path     []authz.Securable // of the thing while it has its name, else of what it lay in
	there    bool              // it still has its name
	record   TableRecord
	document D
}

// mutation is one of a table or a view that has landed and whose request came again: the right that it wants, and what is
// kept of its outcome.
type mutation struct {
	kind      Kind
	warehouse string
	ident     Identifier
	need      need
	outcome   Outcome
}

// replayMade reads what a mutation left of a table or a view. The right is asked for on it, or, when it is one to create,
// on what it lies in. It may have got another name since, or be gone; its files stay for a while.
func replayMade[D metadataText](ctx context.Context, s *Service, c Caller, was mutation, parse func([]byte) (D, error)) (replayed[D], error) {
	none, made := replayed[D]{}, was.outcome.Table
	res, err := s.resolve(ctx, c, Lookup{Warehouse: was.warehouse, Namespace: was.ident.Namespace, Table: was.ident.Name})
	if err != nil {
		return none, err
	}
	now := was.kind.of(res)
	r := replayed[D]{res: res, path: res.Path(), there: now != nil && made != nil && now.ID == made.ID}
	if !r.there && (res.Table != nil || res.View != nil) {
		r.path = parentPath(r.path)
	}
	asked := r.path
	if was.need.wanted == rightsOf[was.kind].create && r.there {
		asked = parentPath(r.path)
	}
	if err := s.require(ctx, c, res, asked, was.need); err != nil {
		return none, err
	}
	if made == nil {
		return none, gone(was.ident)
	}
	r.record = TableRecord{
		ID: made.ID, Kind: was.kind, Ident: was.ident, UUID: made.UUID,
		Location: made.Location, MetadataLocation: made.MetadataLocation,
	}
	r.document, err = current(ctx, s, *res.Warehouse, r.record, parse)
	if fault.Is(err, fault.FileNotFound) { // it fell out of the log and was deleted, or all of the table was
		if !r.there {
			return none, gone(was.ident)
		}
		// What others made of it since is for those to see who may load it.
		read := need{was.need.operation, was.need.subject, rightsOf[was.kind].read}
		if err := s.require(ctx, c, res, r.path, read); err != nil {
			return none, err
		}
		r.record = *now
		r.document, err = current(ctx, s, *res.Warehouse, r.record, parse)
	}
	return r, err
}

// gone must not be a 4xx: a client would take that for a commit that never landed, and delete its files.
func gone(id Identifier) error {
	return fault.New(fault.CommitUnknown, "this request has been carried out, but what it made of %s is not there any more: "+
		"load it to see what is", id)
}

// replayCommit answers the repeat of a commit to one table, with the metadata that the commit made.
func (s *Service) replayCommit(ctx context.Context, c Caller, r CommitTableRequest, o Outcome) (LoadedTable, error) {
	n := need{"commit-table", r.Ident.String(), authz.TableReadProperties}
	if r.Change.Creates() {
		n.wanted = authz.TableCreate
	}
	made, err := replayMade(ctx, s, c, mutation{KindTable, r.Warehouse, r.Ident, n, o}, commit.Parse)
	if fault.Is(err, fault.Forbidden) {
		err = landedBefore(err)
	}
	if err != nil {
		return LoadedTable{}, err
	}
	return s.committed(ctx, c, r.Ident, plan[*commit.Document]{warehouse: *made.res.Warehouse, record: made.record, document: made.document}), nil
}

// replayCreate answers the repeat of a create. A table that is gone has no credentials.
func (s *Service) replayCreate(ctx context.Context, c Caller, r CreateTableRequest, id Identifier, o Outcome) (LoadedTable, error) {
	n := need{"create-table", id.String(), authz.TableCreate}
	made, err := replayMade(ctx, s, c, mutation{KindTable, r.Warehouse, id, n, o}, commit.Parse)
	if err != nil {
		return LoadedTable{}, err
	}
	access := vending.None
	if made.there {
		access = s.accessFor(made.res, made.path, r.Delegated)
	}
	return s.created(ctx, c, createdTable{
		warehouse: *made.res.Warehouse, record: made.record, document: made.document, delegated: r.Delegated, access: access,
	}), nil
}

// replayView answers the repeat of a view's creation or replacement.
func (s *Service) replayView(ctx context.Context, c Caller, was mutation) (LoadedView, error) {
	made, err := replayMade(ctx, s, c, was, commit.ParseView)
	if err != nil {
		return LoadedView{}, err
	}
	return loadedView(made.record, made.document), nil
}

// replayNamespace answers the repeat of a namespace's creation with the properties that it was made with.
func (s *Service) replayNamespace(
	ctx context.Context, c Caller, warehouse string, ns Namespace, properties map[string]string, o Outcome,
) (map[string]string, error) {
	res, err := s.resolveNewNamespace(ctx, c, warehouse, ns)
	if err != nil {
		return nil, err
	}
	if o.Namespace == nil {
		return nil, fault.New(fault.Internal, "the outcome that is kept of the creation of namespace %s has no id", ns)
	}
	record, err := newNamespace(res, *o.Namespace, ns, properties)
	if err != nil {
		return nil, err
	}
	return shownProperties(*res.Warehouse, record), nil
}

// onceSilent is once for what answers nothing. Who asks again must still be there, and so must the warehouse.
func (s *Service) onceSilent(ctx context.Context, c Caller, warehouse string, run func() (*Outcome, error)) error {
	_, err := once(ctx, s, c, func() (struct{}, *Outcome, error) {
		left, err := run()
		return struct{}{}, left, err
	}, func(Outcome) (struct{}, error) {
		_, err := s.resolve(ctx, c, Lookup{Warehouse: warehouse})
		return struct{}{}, err
	})
	return err
}

// tableOutcome is what is kept of a table that was made or changed.
func tableOutcome(r TableRecord) Outcome {
	return Outcome{Table: &TableOutcome{ID: r.ID, UUID: r.UUID, Location: r.Location, MetadataLocation: r.MetadataLocation}}
}

// namespaceOutcome is what is kept of a namespace that was made.
func namespaceOutcome(id uuid.UUID) Outcome { return Outcome{Namespace: &id} }
