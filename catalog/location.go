package catalog

import (
	"slices"
	"strings"

	"github.com/google/uuid"

	"catalogd/catalog/commit"
	"catalogd/internal/fault"
	"catalogd/vending"
)

// locationProperties are table properties that send a writer's files somewhere.
var locationProperties = []string{
	"write.data.path", "write.metadata.path", "write.object-storage.path", "write.folder-storage.path",
}

// checkLocation accepts a location that a client chose when it lies inside the warehouse's allowed locations. The
// client's own spelling is kept (it compares it with what it asked for), less trailing slashes.
func checkLocation(w Warehouse, location string) (string, error) {
	canonical, err := vending.Canonical(location)
	if err != nil {
		return "", err
	}
	bases := allowedLocations(w)
	for _, base := range bases {
		if vending.Within(base, canonical) && !samePlace(base, canonical) {
			return strings.TrimRight(location, "/"), nil
		}
	}
	return "", fault.New(fault.BadRequest, "location %q lies outside the allowed locations of warehouse %s: %s",
		location, w.Name, strings.Join(bases, ", "))
}

// acceptLocation is the one rule for the location of a table or a view that is made in the resolution's namespace, or
// moved: that of checkLocation, but not in the folder of a namespace that it is not in. Else whoever may make tables
// somewhere could take the places where others will be.
func (r Resolution) acceptLocation(location string) (string, error) {
	accepted, folder, err := placeOf(*r.Warehouse, location)
	if err != nil {
		return "", err
	}
	return accepted, r.checkHome(accepted, folder)
}

// acceptNamespaceLocation is the rule for a location that a client chose for the resolution's namespace, or for one about
// to be made below its ancestors: in the folder of another one it could take the places of that one's tables.
func (r Resolution) acceptNamespaceLocation(location string) (string, error) {
	accepted, err := checkLocation(*r.Warehouse, location)
	if err != nil {
		return "", err
	}
	below, found := strings.CutPrefix(vending.Key(accepted), vending.Key(namespacesFolder(*r.Warehouse)))
	if !found {
		return accepted, nil
	}
	folder, _, _ := strings.Cut(below, "/")
	if folder == "" {
		return "", fault.New(fault.BadRequest, "location %q is refused: in it every namespace has a folder of its own", location)
	}
	return accepted, r.checkHome(accepted, folder)
}

// checkHome refuses a namespace's folder, "" for none, that is neither that of the resolution's namespace nor of one
// around it.
func (r Resolution) checkHome(location, folder string) error {
	homes := r.Ancestors[:len(r.Ancestors):len(r.Ancestors)]
	if r.Namespace != nil {
		homes = append(homes, *r.Namespace)
	}
	if folder == "" || slices.ContainsFunc(homes, func(n NamespaceRecord) bool { return folder == n.ID.String() }) {
		return nil
	}
	return fault.New(fault.BadRequest, "location %q is refused: it lies in the folder of another namespace; use that of the namespace itself, or none",
		location)
}

// newLocation is where a new table or view is to lie: where its client chose, or, with "", where nobody else ever will.
func (r Resolution) newLocation(chosen string, id uuid.UUID) (string, error) {
	if chosen == "" {
		return defaultTableLocation(*r.Warehouse, id), nil
	}
	return r.acceptLocation(chosen)
}

// placeOf is checkLocation for a table or a view, whatever its namespace; in the folder of which one it lies is said too,
// "" for none. The folder in which namespaces have theirs is not for one table to close to all others.
func placeOf(w Warehouse, location string) (accepted, folder string, err error) {
	if accepted, err = checkLocation(w, location); err != nil {
		return "", "", err
	}
	if strings.HasPrefix(vending.Key(w.Location), vending.Key(accepted)) { // an allowed location may lie around the base
		return "", "", fault.New(fault.BadRequest, "location %q is refused: the tables of warehouse %s lie in it, at %s", location, w.Name, w.Location)
	}
	below, found := strings.CutPrefix(vending.Key(accepted), vending.Key(namespacesFolder(w)))
	if !found {
		return accepted, "", nil
	}
	folder, table, _ := strings.Cut(strings.TrimSuffix(below, "/"), "/")
	if _, err := uuid.Parse(folder); err != nil || table == "" {
		return "", "", fault.New(fault.BadRequest, "location %q is refused: in %s every namespace has a folder of its own, and tables lie below "+
			"those; use a namespace's location, or none", location, namespacesFolder(w))
	}
	return accepted, folder, nil
}

func namespacesFolder(w Warehouse) string { return w.Location + "/ns" }

// isNamespaceFolder tells that the location is one that the server gives to a namespace by itself.
func isNamespaceFolder(w Warehouse, location string) bool {
	folder, found := strings.CutPrefix(vending.Key(location), vending.Key(namespacesFolder(w)))
	id, err := uuid.Parse(strings.TrimSuffix(folder, "/"))
	return found && err == nil && folder == id.String()+"/"
}

func allowedLocations(w Warehouse) []string {
	bases := []string{w.Location}
	for _, base := range w.Storage.AllowedLocations {
		if !samePlace(base, w.Location) {
			bases = append(bases, base)
		}
	}
	return bases
}

// samePlace tells whether two locations are one, whatever their schemes' spelling and trailing slashes. Case counts:
// a store that folds it in policies would else hand out keys for a place that nobody checked. (vending.Key folds
// case, and is for finding overlaps alone.)
func samePlace(a, b string) bool { return vending.Within(a, b) && vending.Within(b, a) }

// defaultTableLocation holds the table's uuid and nothing of its name: no rename, wildcard or re-creation can ever
// lead to another table's files.
func defaultTableLocation(w Warehouse, id uuid.UUID) string { return w.Location + "/" + id.String() }

// namespaceLocation is answered for every namespace; engines build table locations on it.
func namespaceLocation(w Warehouse, n NamespaceRecord) string {
	if own := n.Properties["location"]; own != "" {
		return own
	}
	return namespacesFolder(w) + "/" + n.ID.String()
}

// checkDocument holds new metadata against the rules for locations: the table's or view's own must be acceptable, unless
// it is the one that was accepted already, and every property that sends files somewhere must stay inside it.
func (r Resolution) checkDocument(d metadataText, accepted string) error {
	if !samePlace(d.Location(), accepted) {
		if _, err := r.acceptLocation(d.Location()); err != nil {
			return err
		}
	}
	return checkPaths(d)
}

// checkPaths holds the properties that send files somewhere against the location.
func checkPaths(d metadataText) error {
	for _, name := range locationProperties {
		path, ok := d.Property(name)
		if !ok {
			continue
		}
		canonical, err := vending.Canonical(path)
		if err != nil {
			return fault.New(fault.BadRequest, "property %s=%q is refused: %s", name, path, fault.Message(err))
		}
		if !vending.Within(d.Location(), canonical) {
			return fault.New(fault.BadRequest, "property %s=%q is refused: it lies outside the location %s",
				name, path, d.Location())
		}
	}
	return nil
}

// checkReferences refuses updates that name files outside the table: nobody would have credentials for them, and a
// job that followed them would be a confused deputy.
func checkReferences(r commit.Request, locations ...string) error {
	for _, path := range r.ReferencedPaths() {
		inside := false
		for _, location := range locations {
			inside = inside || vending.Within(location, path)
		}
		if !inside {
			return fault.New(fault.BadRequest, "file %q is refused: it lies outside the table's location %s", path, locations[0])
		}
	}
	return nil
}
