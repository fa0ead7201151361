package manage

import (
	"context"
	"net/http"
	"net/url"

	"catalogd/api"
	"catalogd/catalog"
)

// Principals, roles and catalogs are loaded, updated and dropped in one way: name reads the name from the path, the
// operation is the domain's, answer writes what it gave. Lists come whole or in pages.

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

// listPageMax bounds a page of things with their properties.
const listPageMax = 1000

// listOf says how a list of records is answered: under which field, what each looks like, and its name for the next page.
type listOf[Record, Shape any] struct {
	field string
	shape func(Record) Shape
	name  func(Record) string
}

// answer answers a list. Who did not page gets all of it and no token: Polaris' clients know none.
func (l listOf[Record, Shape]) answer(w http.ResponseWriter, r *http.Request, paging api.Paging, records []Record) error {
	page, next := api.CutPage(paging, records, l.name)
	shapes := make([]Shape, len(page))
	for i, record := range page {
		shapes[i] = l.shape(record)
	}
	answer := map[string]any{l.field: shapes}
	if paging.Items > 0 {
		answer["next-page-token"] = next
	}
	return api.JSON(w, r, http.StatusOK, answer)
}

// pagingOf reads how a list is wanted.
func pagingOf(query url.Values) (api.Paging, error) {
	paging, err := api.PagingOf(query)
	if paging.Items > 0 {
		paging.Items = min(paging.Items, listPageMax)
	}
	return paging, err
}

// listAsked reads the query of a list, and how it is wanted.
func listAsked(r *http.Request) (url.Values, api.Paging, error) {
	query, err := api.Query(r)
	if err != nil {
		return nil, api.Paging{}, err
	}
	paging, err := pagingOf(query)
	return query, paging, err
}

// list answers a list by name of what the path names, or the part of it that pageToken, pageSize, namePrefix and
// nameContains ask for.
func list[Name, Record, Shape any](
	name nameFunc[Name], find func(context.Context, catalog.Caller, Name, catalog.ListQuery) ([]Record, error), of listOf[Record, Shape],
) api.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		n, err := name(r)
		if err != nil {
			return err
		}
		query, paging, err := listAsked(r)
		if err != nil {
			return err
		}
		found, err := find(r.Context(), api.CallerOf(r), n, catalog.ListQuery{
			Page: paging.Page(), Prefix: query.Get("namePrefix"), Contains: query.Get("nameContains"),
		})
		if err != nil {
			return err
		}
		return of.answer(w, r, paging, found)
	}
}

// listAll is list for what lies in nothing.
func listAll[Record, Shape any](
	find func(context.Context, catalog.Caller, catalog.ListQuery) ([]Record, error), of listOf[Record, Shape],
) api.HandlerFunc {
	return list(func(*http.Request) (struct{}, error) { return struct{}{}, nil },
		func(ctx context.Context, c catalog.Caller, _ struct{}, q catalog.ListQuery) ([]Record, error) {
			return find(ctx, c, q)
		}, of)
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
