package commit

import (
	"strings"

	"catalogd/internal/fault"
)

// Limits of what one call asks for. Lists cost memory by their length, however short their elements are.
const (
	changesMax      = 1_000   // tables of a transaction
	requirementsMax = 10_000  // of one table
	updatesMax      = 200_000 // of all tables of a call together
)

// How many updates of one kind a request may hold. Schemas, partition specs and sort orders are compared with all that
// the table has, and what is not listed is looked up among its like, so their cost grows faster than their number.
const (
	definitionsMax = 256
	updatesKindMax = 10_000
)

var updatesOfKindMax = map[string]int{
	"add-schema": definitionsMax, "add-spec": definitionsMax, "add-sort-order": definitionsMax, "add-view-version": definitionsMax,
	"set-current-schema": definitionsMax, "set-default-spec": definitionsMax, "set-default-sort-order": definitionsMax,
	"set-current-view-version": definitionsMax, "remove-schemas": definitionsMax, "remove-partition-specs": definitionsMax,
	"remove-snapshots": updatesMax, "set-properties": updatesMax, "remove-properties": updatesMax,
}

// Identifier names a table or view in a request's body.
type Identifier struct {
	Namespace []string
	Name      string
}

// Requirement is a condition on the table as it is before the updates.
type Requirement struct {
	Type  string // lower case
	check func(*Document) error
}

// Update is one change of the table or view. It never changes itself, so a request can be applied again to a newer base.
type Update struct {
	Action string // lower case
	change change
}

// Request is a CommitTableRequest.
type Request struct {
	Identifier   *Identifier // nil when the body has none
	Requirements []Requirement
	Updates      []Update
}

// DecodeRequest reads the body of an updateTable call. What is malformed or unknown is a fault.BadRequest; a mixture
// of assert-create with other requirements is a fault.IllegalArgument, and too long a list is a fault.TooLarge.
func DecodeRequest(body []byte) (Request, error) {
	if err := checkText(body); err != nil {
		return Request{}, malformed(err)
	}
	return decodeRequest(trimSpace(body), updatesMax)
}

// DecodeTransaction reads the body of a commitTransaction call. Every change names its table, none twice.
func DecodeTransaction(body []byte) ([]Request, error) {
	o, err := requestObject(body)
	if err != nil {
		return nil, malformed(err)
	}
	changes, err := o.listUpTo("table-changes", changesMax)
	if err != nil {
		return nil, malformed(err)
	}
	if len(changes) == 0 {
		return nil, fault.New(fault.BadRequest, "Invalid table changes: empty")
	}
	requests, updatesLeft := make([]Request, len(changes)), updatesMax
	seen := make(map[string]struct{}, len(changes))
	for i, text := range changes {
		if requests[i], err = decodeRequest(text, updatesLeft); err != nil {
			return nil, err
		}
		updatesLeft -= len(requests[i].Updates)
		ident := requests[i].Identifier
		if ident == nil {
			return nil, fault.New(fault.BadRequest, `Invalid table change: missing field "identifier"`)
		}
		// Levels and names hold no NUL when they are valid, so the joined form is unambiguous.
		name := strings.Join(append(append([]string{}, ident.Namespace...), ident.Name), "\x00")
		if _, twice := seen[name]; twice {
			return nil, fault.New(fault.BadRequest, "Invalid table changes: the table %s is named twice", ident)
		}
		seen[name] = struct{}{}
	}
	return requests, nil
}

// String joins levels and name with dots, for messages.
func (i Identifier) String() string {
	return strings.Join(append(append([]string{}, i.Namespace...), i.Name), ".")
}

// decodeBody reads a body that must be one JSON object.
func decodeBody[R any](body []byte, decode func(object) (R, error)) (R, error) {
	o, err := requestObject(body)
	if err == nil {
		var r R
		if r, err = decode(o); err == nil {
			return r, nil
		}
	}
	var none R
	return none, malformed(err)
}

func requestObject(body []byte) (object, error) {
	if err := checkText(body); err != nil {
		return nil, err
	}
	return parseObject(trimSpace(body), "the request", nil)
}

// malformed is the refusal of a body that cannot be read, for the reason given.
func malformed(err error) error {
	if fault.Is(err, fault.TooLarge) {
		return err
	}
	return fault.New(fault.BadRequest, "Malformed request: %v", err)
}

func trimSpace(body []byte) []byte {
	s := scanner{text: body}
	s.space()
	return body[s.at:]
}

// decodeRequest reads one table's part of a call, which may have some more updates.
func decodeRequest(text []byte, updatesLeft int) (r Request, err error) {
	var buf [4]member
	o, err := parseObject(text, "the request", buf[:0])
	if err != nil {
		return r, malformed(err)
	}
	if ident := o.get("identifier"); ident != nil {
		if r.Identifier, err = parseIdentifier(ident); err != nil {
			return r, malformed(err)
		}
	}
	requirements, err := o.listUpTo("requirements", requirementsMax)
	if err != nil {
		return r, malformed(err)
	}
	r.Requirements = make([]Requirement, len(requirements))
	for i, text := range requirements {
		if r.Requirements[i], err = parseRequirement(text); err != nil {
			return r, malformed(err)
		}
	}
	if r.Updates, err = parseUpdates(o, updatesLeft, updates); err != nil {
		return r, malformed(err)
	}
	return r, r.checkCreates()
}

// checkCreates refuses assert-create beside other requirements: they speak of a table that must not exist.
func (r Request) checkCreates() error {
	if !r.Creates() {
		return nil
	}
	for _, q := range r.Requirements {
		if q.Type != assertCreate {
			return fault.New(fault.IllegalArgument, "Invalid create requirements: %s cannot be combined with %s", assertCreate, q.Type)
		}
	}
	return nil
}

func parseIdentifier(text []byte) (*Identifier, error) {
	o, err := parseObject(text, "identifier", nil)
	if err != nil {
		return nil, err
	}
	var i Identifier
	if i.Namespace, err = stringList(o, "namespace"); err != nil {
		return nil, err
	}
	if i.Name, err = o.str("name"); err != nil {
		return nil, err
	}
	return &i, nil
}

// parseUpdates reads the updates of a request, which may have so many.
func parseUpdates(o object, countMax int, known map[string]func(object) (change, error)) ([]Update, error) {
	texts, err := o.listUpTo("updates", countMax)
	if err != nil {
		return nil, err
	}
	list := make([]Update, len(texts))
	counts := map[string]int{}
	for i, text := range texts {
		if list[i], err = parseUpdate(text, known); err != nil {
			return nil, err
		}
		action := list[i].Action
		bound, listed := updatesOfKindMax[action]
		if !listed {
			bound = updatesKindMax
		}
		if counts[action]++; counts[action] > bound {
			return nil, fault.New(fault.TooLarge, "the request holds more than %d updates of the kind %s: send it in parts", bound, action)
		}
	}
	return list, nil
}

// parseUpdate reads an update whose action is in the table of actions.
func parseUpdate(text []byte, known map[string]func(object) (change, error)) (Update, error) {
	var buf [12]member
	o, err := parseObject(text, "an update", buf[:0])
	if err != nil {
		return Update{}, err
	}
	action, err := o.str("action")
	if err != nil {
		return Update{}, err
	}
	u := Update{Action: strings.ToLower(action)}
	decode := known[u.Action]
	if decode == nil {
		return Update{}, notAmong(u.Action)
	}
	if u.change, err = decode(o); err != nil {
		if fault.Is(err, fault.TooLarge) {
			return Update{}, err
		}
		return Update{}, shapef("%s: %v", u.Action, err)
	}
	return u, nil
}

// notAmong is the refusal of an action that what is to be changed does not know.
func notAmong(action string) error {
	_, forTables := updates[action]
	_, forViews := viewUpdates[action]
	switch {
	case forTables:
		return shapef("%s cannot be applied to a view", action)
	case forViews:
		return shapef("%s cannot be applied to a table", action)
	}
	return shapef("unknown update action %q", excerpt([]byte(action)))
}

// Creates tells whether the request makes the table: the commit of a staged create.
func (r Request) Creates() bool {
	for _, q := range r.Requirements {
		if q.Type == assertCreate {
			return true
		}
	}
	return false
}

// Actions gives the updates' action names in order, for authorisation.
func (r Request) Actions() []string { return actionsOf(r.Updates) }

func actionsOf(updates []Update) []string {
	actions := make([]string, len(updates))
	for i, u := range updates {
		actions[i] = u.Action
	}
	return actions
}

// AssignedUUID gives the uuid of the last assign-uuid; "" when there is none.
func (r Request) AssignedUUID() string {
	assigned := ""
	for _, u := range r.Updates {
		if c, is := u.change.(assignUUID); is {
			assigned = string(c)
		}
	}
	return assigned
}

// NewLocation gives the location of the last set-location, without trailing slashes.
func (r Request) NewLocation() (string, bool) { return newLocationOf(r.Updates) }

func newLocationOf(updates []Update) (string, bool) {
	location, found := "", false
	for _, u := range updates {
		if c, is := u.change.(setLocation); is {
			location, found = string(c), true
		}
	}
	return location, found
}

// NewProperties gives what all set-properties together set.
func (r Request) NewProperties() map[string]string { return newPropertiesOf(r.Updates) }

func newPropertiesOf(updates []Update) map[string]string {
	merged := map[string]string{}
	for _, u := range updates {
		c, is := u.change.(setProperties)
		if !is {
			continue
		}
		for _, p := range c {
			merged[p.name] = p.value
		}
	}
	return merged
}

// ReferencedPaths gives the files that the updates name: manifest lists, manifests (v1) and statistics. The caller
// checks that they lie in the table.
func (r Request) ReferencedPaths() []string {
	var paths []string
	for _, u := range r.Updates {
		switch c := u.change.(type) {
		case addSnapshot:
			if c.manifestList != "" {
				paths = append(paths, c.manifestList)
			}
			paths = append(paths, c.manifests...)
		case setStatistics:
			paths = append(paths, c.path)
		}
	}
	return paths
}
