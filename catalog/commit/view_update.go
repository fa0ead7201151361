package commit

import (
	"strings"

	"catalogd/internal/fault"
)

// viewUpdates is the table of update actions of views: how each is read.
var viewUpdates = map[string]func(object) (change, error){
	"assign-uuid":              decodeAssignUUID,
	"upgrade-format-version":   decodeUpgrade,
	"add-schema":               decodeAddSchema,
	"set-location":             decodeSetLocation,
	"set-properties":           decodeSetProperties,
	"remove-properties":        decodeRemoveProperties,
	"add-view-version":         decodeAddViewVersion,
	"set-current-view-version": decodeSetCurrentVersion,
}

// viewChange is a decoded update that views take.
type viewChange interface {
	// applyView makes the change on a draft; it leaves the change itself as it was.
	applyView(*viewDraft) error
}

// onlyForViews is embedded by changes that no table can take.
type onlyForViews struct{}

func (onlyForViews) apply(*draft) error {
	return fault.New(fault.BadRequest, "a view's update cannot be applied to a table")
}

// viewDraft is a view's metadata while updates are applied.
type viewDraft struct {
	base *View // nil while a view is created
	now  int64 // milliseconds

	uuid, location string
	schemas        list
	properties     propertySet
	versions       []viewVersion // the base's, then what the request adds
	definitions    map[string]int
	current        int
	lastAdded      int // id of the last version that the request named in an add; -1 when none
}

func (c assignUUID) applyView(d *viewDraft) error {
	if !strings.EqualFold(d.uuid, string(c)) {
		return fault.New(fault.IllegalArgument, "Cannot reassign the view's uuid from %s to %s", d.uuid, string(c))
	}
	return nil
}

func (c upgrade) applyView(*viewDraft) error {
	switch version := int(c); {
	case version < viewFormatVersion:
		return fault.New(fault.IllegalArgument, "Cannot downgrade v%d view to v%d", viewFormatVersion, version)
	case version > viewFormatVersion:
		return fault.New(fault.IllegalArgument, "Cannot upgrade view to unsupported format version: v%d (supported: v%d)",
			version, viewFormatVersion)
	}
	return nil
}

// applyView takes types of every version: views have no format version of their own that would bar any.
func (c addSchema) applyView(d *viewDraft) error {
	if err := c.schema.check(formatVersionMax); err != nil {
		return err
	}
	_, err := d.schemas.addSchema(c)
	return err
}

func (c setLocation) applyView(d *viewDraft) error {
	if stripSlashes(d.location) != string(c) {
		d.location = string(c)
	}
	return nil
}

// applyView sets every name: views have no reserved ones. One that means something on a table is a word like others.
func (c setProperties) applyView(d *viewDraft) error {
	for _, p := range c {
		if err := checkProperty(p.name, p.value); err != nil {
			return err
		}
		d.properties.set(p.name, p.value)
	}
	return nil
}

func (c removeProperties) applyView(d *viewDraft) error {
	for _, name := range c {
		d.properties.remove(name)
	}
	return nil
}

type addViewVersion struct {
	onlyForViews
	version viewVersion
}

func decodeAddViewVersion(o object) (change, error) {
	version, err := decodeNewVersion(o)
	return addViewVersion{version: version}, err
}

// applyView adds the version unless the view has an equal one. The id is the request's if it is free, else the
// next one after the highest: two clients that replaced the view at the same time both asked for the same id.
func (c addViewVersion) applyView(d *viewDraft) error {
	version := c.version
	if version.schema == noneAdded {
		if version.schema = d.schemas.added; version.schema == noneAdded {
			return fault.New(fault.Validation, "Cannot set last added schema: no schema has been added")
		}
	}
	if find(d.schemas.parts, version.schema) == nil {
		return fault.New(fault.IllegalArgument, "Cannot add version with unknown schema: %d", version.schema)
	}
	definition := version.definition(version.schema)
	if id, known := d.defined()[definition]; known {
		d.lastAdded = id
		return nil
	}
	if _, twice := version.dialects(); twice != "" {
		return fault.New(fault.IllegalArgument, "Invalid view version: Cannot add multiple queries for dialect %s", excerpt([]byte(twice)))
	}
	for i := range d.versions {
		version.id = max(version.id, d.versions[i].id+1)
	}
	if version.id > versionIDMax {
		return fault.New(fault.Validation, "Cannot add version: the view has used up all version ids")
	}
	d.versions = append(d.versions[:len(d.versions):len(d.versions)], version)
	d.definitions[definition] = version.id
	d.lastAdded = version.id
	return nil
}

// defined gives the ids of the versions by what they mean.
func (d *viewDraft) defined() map[string]int {
	if d.definitions == nil {
		d.definitions = make(map[string]int, len(d.versions)+1)
		for i := range d.versions {
			v := &d.versions[i]
			definition := v.definition(v.schema)
			if _, twice := d.definitions[definition]; !twice {
				d.definitions[definition] = v.id
			}
		}
	}
	return d.definitions
}

type setCurrentViewVersion struct {
	onlyForViews
	id int
}

func setCurrentVersion(id int) setCurrentViewVersion { return setCurrentViewVersion{id: id} }

func decodeSetCurrentVersion(o object) (change, error) {
	id, err := o.integer("view-version-id")
	return setCurrentVersion(id), err
}

func (c setCurrentViewVersion) applyView(d *viewDraft) error {
	id := c.id
	if id == noneAdded {
		if id = d.lastAdded; id == noneAdded {
			return fault.New(fault.Validation, "Cannot set last added view version: no view version has been added")
		}
	}
	if findVersion(d.versions, id) == nil {
		return fault.New(fault.IllegalArgument, "Cannot set current version to unknown version: %d", id)
	}
	d.current = id
	return nil
}
