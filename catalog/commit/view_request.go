package commit

import (
	"strings"
	"time"

	"catalogd/internal/fault"
)

// Limits of what one call asks of a view.
const (
	viewRequirementsMax    = 100
	viewUpdatesMax         = 1_000
	viewRepresentationsMax = 100 // of one new version
)

// ViewRequirement is a condition on the view as it is before the updates.
type ViewRequirement struct {
	Type  string // lower case
	check func(*View) error
}

// ViewRequest is a CommitViewRequest.
type ViewRequest struct {
	Identifier   *Identifier // nil when the body has none
	Requirements []ViewRequirement
	Updates      []Update
}

// DecodeViewRequest reads the body of a replaceView call. Old clients send no requirements, or null. What is
// malformed, unknown or meant for tables is a fault.BadRequest, too long a list a fault.TooLarge.
func DecodeViewRequest(body []byte) (ViewRequest, error) { return decodeBody(body, decodeViewRequest) }

func decodeViewRequest(o object) (r ViewRequest, err error) {
	if ident := o.get("identifier"); ident != nil {
		if r.Identifier, err = parseIdentifier(ident); err != nil {
			return r, err
		}
	}
	if o.get("requirements") != nil {
		texts, err := o.listUpTo("requirements", viewRequirementsMax)
		if err != nil {
			return r, err
		}
		r.Requirements = make([]ViewRequirement, len(texts))
		for i, text := range texts {
			if r.Requirements[i], err = parseViewRequirement(text); err != nil {
				return r, err
			}
		}
	}
	r.Updates, err = parseUpdates(o, viewUpdatesMax, viewUpdates)
	return r, err
}

func parseViewRequirement(text []byte) (q ViewRequirement, err error) {
	var buf [4]member
	o, err := parseObject(text, "a requirement", buf[:0])
	if err != nil {
		return q, err
	}
	typ, err := o.str("type")
	if err != nil {
		return q, err
	}
	q.Type = strings.ToLower(typ)
	if _, forTables := requirements[q.Type]; forTables {
		return q, shapef("%s cannot be checked against a view", q.Type)
	}
	if q.Type != assertViewUUID {
		return q, shapef("unknown requirement type %q", excerpt([]byte(typ)))
	}
	uuid, err := o.str("uuid")
	if err != nil {
		return q, shapef("%s: %v", q.Type, err)
	}
	q.check = func(v *View) error {
		if !strings.EqualFold(uuid, v.uuid) {
			return failed("view UUID does not match: expected %s != %s", v.uuid, uuid)
		}
		return nil
	}
	return q, nil
}

// CheckView tests all requirements against the view as it is. A failure is a fault.CommitConflict: the client must
// load the view again.
func CheckView(base *View, r ViewRequest) error {
	for _, q := range r.Requirements {
		if err := q.check(base); err != nil {
			return err
		}
	}
	return nil
}

// NewProperties gives what all set-properties together set.
func (r ViewRequest) NewProperties() map[string]string { return newPropertiesOf(r.Updates) }

// CreateViewRequest is a CreateViewRequest of the protocol. The ids of its schema and version are placeholders.
type CreateViewRequest struct {
	Creation

	schema  addSchema
	version viewVersion
}

// DecodeCreateView reads the body of a createView call. What is malformed is a fault.BadRequest, too long a list a
// fault.TooLarge.
func DecodeCreateView(body []byte) (CreateViewRequest, error) {
	return decodeBody(body, decodeCreateView)
}

func decodeCreateView(o object) (r CreateViewRequest, err error) {
	if r.Creation, err = decodeCreation(o); err != nil {
		return r, err
	}
	schema, err := decodeAddSchema(o)
	if err != nil {
		return r, err
	}
	r.schema = schema.(addSchema)
	r.version, err = decodeNewVersion(o)
	return r, err
}

// decodeNewVersion reads the view-version of a create or of an add-view-version.
func decodeNewVersion(o object) (version viewVersion, err error) {
	text, err := o.need("view-version")
	if err != nil {
		return version, err
	}
	if version, err = parseViewVersion(text); err != nil {
		return version, err
	}
	texts, err := version.o.listUpTo("representations", viewRepresentationsMax)
	if err != nil {
		return version, err
	}
	if len(texts) == 0 {
		return version, shapef("field %q must not be empty", "representations")
	}
	if err = version.checkQueries(); err != nil {
		return version, err
	}
	version.o = version.o.withoutNulls(versionFields...)
	return version, nil
}

// CreateView makes the first metadata of a view: version 1, schema 0, with the column ids of the request. The query's
// rules are checked here, because Java's client leaves them to the server.
func CreateView(r CreateViewRequest, s CreateStamp) (*View, error) {
	d := &viewDraft{
		now: s.Now.UnixMilli(), uuid: s.UUID,
		schemas: list{selected: noneAdded, added: noneAdded},
		current: noneAdded, lastAdded: noneAdded,
	}
	version := r.version
	version.id, version.schema = firstVersionID, noneAdded
	for _, c := range []viewChange{
		s.Presets.over(r.properties), setLocation(r.locationOr(s.Location)), r.schema, addViewVersion{version: version}, setCurrentVersion(noneAdded),
	} {
		if err := c.applyView(d); err != nil {
			return nil, err
		}
	}
	return d.finish()
}

// firstVersionID is the id of a new view's version.
const firstVersionID = 1

// ApplyView makes the request's updates on base, without checking its requirements (CheckView does). changed is
// false, and next is base, when nothing had to change: then no file is to be written. Errors are fault.Validation and
// fault.IllegalArgument for what the view cannot take. Request and base stay as they are, so a lost race can be tried
// again on a newer base. A view's metadata does not name the file before it, so only the stamp's time is used.
func ApplyView(base *View, r ViewRequest, s Stamp) (next *View, changed bool, err error) {
	d := viewDraftOf(base, s.Now)
	for _, u := range r.Updates {
		c, is := u.change.(viewChange)
		if !is {
			return nil, false, fault.New(fault.BadRequest, "%s cannot be applied to a view", u.Action)
		}
		if err := c.applyView(d); err != nil {
			return nil, false, err
		}
	}
	if !d.changed() {
		return base, false, nil
	}
	next, err = d.finish()
	return next, err == nil, err
}

func viewDraftOf(base *View, now time.Time) *viewDraft {
	return &viewDraft{
		base: base, now: now.UnixMilli(), uuid: base.uuid, location: base.location,
		schemas:    list{parts: base.schemas, selected: noneAdded, added: noneAdded},
		properties: propertySet{base: base.properties},
		versions:   base.versions, current: base.current, lastAdded: noneAdded,
	}
}
