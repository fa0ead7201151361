package api

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strconv"

	"catalogd/catalog"
	"catalogd/internal/fault"
)

// Limits of pages, in items. Clients that do not page (no pageToken in the query) get everything.
const (
	pageItemsDefault = 1000
	pageItemsMax     = 10000
)

// pageTokenVersion is raised when the token's content changes its meaning.
const pageTokenVersion = 1

// pageToken is the content of an opaque token: the last name of the page before.
type pageToken struct {
	Version int    `json:"v"`
	After   string `json:"after"`
}

// Paging is how a request wants a list. The zero value is everything at once.
type Paging struct {
	After string
	Items int // most items in the answer; 0 means no bound
}

// PagingOf reads pageToken and pageSize. A missing pageToken means a client that cannot page: it must get everything.
// An empty one is the first page of a client that can.
func PagingOf(query url.Values) (Paging, error) {
	items := pageItemsDefault
	if text := query.Get("pageSize"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return Paging{}, fault.New(fault.BadRequest, "pageSize must be an integer of at least 1")
		}
		items = min(n, pageItemsMax)
	}
	if !query.Has("pageToken") {
		return Paging{}, nil
	}
	text := query.Get("pageToken")
	if text == "" {
		return Paging{Items: items}, nil
	}
	after, err := decodePageToken(text)
	if err != nil {
		return Paging{}, err
	}
	return Paging{After: after, Items: items}, nil
}

// Page is what the domain is asked for: one item more than the page holds tells whether another page follows.
func (p Paging) Page() catalog.Page {
	if p.Items == 0 {
		return catalog.Page{After: p.After}
	}
	return catalog.Page{After: p.After, Limit: p.Items + 1}
}

// CutPage cuts the items that Page asked for to the page, and gives the token of the next one: nil on the last page,
// never an empty text, which Java clients would follow for ever.
func CutPage[T any](p Paging, items []T, nameOf func(T) string) (page []T, next *string) {
	if p.Items == 0 || len(items) <= p.Items {
		return List(items), nil
	}
	page = items[:p.Items]
	token := encodePageToken(nameOf(page[len(page)-1]))
	return page, &token
}

// PageToken is the token of what comes behind an item, for lists that somebody goes on with later.
func PageToken(after string) string { return encodePageToken(after) }

func encodePageToken(after string) string {
	content, err := json.Marshal(pageToken{Version: pageTokenVersion, After: after})
	if err != nil { // a number and a string: cannot happen
		panic(err)
	}
	return base64.RawURLEncoding.EncodeToString(content)
}

func decodePageToken(text string) (after string, err error) {
	content, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return "", fault.Wrap(fault.BadRequest, err, "pageToken is not one of this server's")
	}
	var token pageToken
	if err := json.Unmarshal(content, &token); err != nil || token.Version != pageTokenVersion || checkText(token.After) != nil {
		return "", fault.New(fault.BadRequest, "pageToken is not one of this server's")
	}
	return token.After, nil
}

// Flag reads a boolean query parameter; Python clients spell it True and False. Missing or empty is false.
func Flag(query url.Values, name string) (bool, error) {
	text := query.Get(name)
	if text == "" {
		return false, nil
	}
	value, err := strconv.ParseBool(text)
	if err != nil {
		return false, fault.New(fault.BadRequest, "%s must be true or false", name)
	}
	return value, nil
}
