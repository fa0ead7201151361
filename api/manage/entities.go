package manage

import (
	"context"
	"net/http"

	"catalogd/api"
	"catalogd/catalog"
)

// Principals, roles and catalogs are loaded, updated and dropped in one way: name reads the name from the path, the
// operation is the domain's, answer writes what it gave.

type nameFunc[Name any] func(*http.Request) (Name, error)

type answerFunc[Record any] func(http.ResponseWriter, *http.Request, Record) error

// named reads a name that is one segment of the path.
func named(segment string) nameFunc[string] {
	return func(r *http.Request) (string, error) { return param(r, segment) }
}

// shown answers 200 with what shape makes of a record.
func shown[Record, Shape any](shape func(Record) Shape) answerFunc[Record] {
	return func(w http.ResponseWriter, r *http.Request, record Record) error {
		return api.JSON(w, r, http.StatusOK, shape(record))
	}
}

// load answers what is there under a name: one thing or a list.
func load[Name, Record any](
	name nameFunc[Name], find func(context.Context, catalog.Caller, Name) (Record, error), answer answerFunc[Record],
) api.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		n, err := name(r)
		if err != nil {
			return err
		}
		found, err := find(r.Context(), api.CallerOf(r), n)
		if err != nil {
			return err
		}
		return answer(w, r, found)
	}
}

// update replaces the properties of what has the name.
func update[Name, Record any](
	name nameFunc[Name], change func(context.Context, catalog.Caller, Name, catalog.Update) (Record, error), answer answerFunc[Record],
) api.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		n, err := name(r)
		if err != nil {
			return err
		}
		var body updateBody
		if err := api.DecodeJSON(r, &body); err != nil {
			return err
		}
		wanted, err := body.update()
		if err != nil {
			return err
		}
		changed, err := change(r.Context(), api.CallerOf(r), n, wanted)
		if err != nil {
			return err
		}
		return answer(w, r, changed)
	}
}

// drop removes what has the name.
func drop[Name any](name nameFunc[Name], remove func(context.Context, catalog.Caller, Name) error) api.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		n, err := name(r)
		if err != nil {
			return err
		}
		if err := remove(r.Context(), api.CallerOf(r), n); err != nil {
			return err
		}
		return api.NoContent(w)
	}
}
