package rest

import (
	"context"
	"net/http"

	"catalogd/api"
	"catalogd/catalog"
	"catalogd/internal/fault"
)

// What the routes of tables and of views have in common: they differ in how a body is read, which operation is called and
// how its outcome is answered.

// create makes a table or a view in the namespace of the path.
func create[Body interface{ NewName() string }, Loaded any](
	w http.ResponseWriter, r *http.Request, decode func([]byte) (Body, error),
	operation func(context.Context, catalog.Caller, catalog.CreateRequest[Body]) (Loaded, error),
	answer func(http.ResponseWriter, *http.Request, Loaded) error,
) error {
	warehouse, ns, err := namespaceOf(r)
	if err != nil {
		return err
	}
	body, err := bodyOf(r, decode)
	if err != nil {
		return err
	}
	api.Annotate(r, warehouse, catalog.Identifier{Namespace: ns, Name: body.NewName()}.String())
	loaded, err := operation(r.Context(), api.CallerOf(r), catalog.CreateRequest[Body]{
		Warehouse: warehouse, Namespace: ns, Delegated: delegated(r), Body: body,
	})
	if err != nil {
		return err
	}
	return answer(w, r, loaded)
}

// change applies a commit to one table or view. The path names it, under param; the identifier that some clients repeat in
// the body is not looked at.
func change[Change, Loaded any](
	w http.ResponseWriter, r *http.Request, param string, decode func([]byte) (Change, error),
	operation func(context.Context, catalog.Caller, catalog.ChangeRequest[Change]) (Loaded, error),
	answer func(http.ResponseWriter, *http.Request, Loaded) error,
) error {
	warehouse, ident, err := identifierOf(r, param)
	if err != nil {
		return err
	}
	body, err := bodyOf(r, decode)
	if err != nil {
		return err
	}
	loaded, err := operation(r.Context(), api.CallerOf(r), catalog.ChangeRequest[Change]{Warehouse: warehouse, Ident: ident, Change: body})
	if err != nil {
		return err
	}
	return answer(w, r, loaded)
}

// bodyOf reads a body of the protocol's own, whose text is more than encoding/json can keep.
func bodyOf[Body any](r *http.Request, decode func([]byte) (Body, error)) (Body, error) {
	text, err := api.ReadBody(r)
	if err != nil {
		var none Body
		return none, err
	}
	return decode(text)
}

// onName does something to the table or view that the path names and has nothing to answer. param is the name's place in
// the pattern.
func onName(
	w http.ResponseWriter, r *http.Request, param string, do func(context.Context, catalog.Caller, string, catalog.Identifier) error,
) error {
	warehouse, ident, err := identifierOf(r, param)
	if err != nil {
		return err
	}
	if err := do(r.Context(), api.CallerOf(r), warehouse, ident); err != nil {
		return err
	}
	return api.NoContent(w)
}

type renameTableRequest struct {
	Source      *catalog.Identifier `json:"source"`
	Destination *catalog.Identifier `json:"destination"`
}

// rename moves a table's or a view's name, within the warehouse.
func rename(w http.ResponseWriter, r *http.Request, do func(context.Context, catalog.Caller, catalog.RenameTableRequest) error) error {
	warehouse, err := warehouseOf(r)
	if err != nil {
		return err
	}
	var request renameTableRequest
	if err := api.DecodeJSON(r, &request); err != nil {
		return err
	}
	if request.Source == nil || request.Destination == nil {
		return fault.New(fault.BadRequest, "source and destination are required")
	}
	api.Annotate(r, warehouse, request.Source.String())
	err = do(r.Context(), api.CallerOf(r), catalog.RenameTableRequest{
		Warehouse: warehouse, From: *request.Source, To: *request.Destination,
	})
	if err != nil {
		return err
	}
	return api.NoContent(w)
}
