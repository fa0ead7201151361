package commit

import (
	"maps"
	"slices"
)

// Presets are properties that the catalog gives to a new table or view: Defaults where the request says nothing of a
// name, Overrides whatever it says. A client may have put them into its request already; then they change nothing.
// "format-version" among the defaults is the version of a table whose request names none.
type Presets struct{ Defaults, Overrides map[string]string }

// over gives the request's properties with the presets around them: defaults first, in the order of their names,
// then the request's own, then overrides.
func (p Presets) over(own setProperties) setProperties {
	return slices.Concat(listed(p.Defaults), own, listed(p.Overrides))
}

// values gives the same as a map.
func (p Presets) values(own map[string]string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, p.Defaults)
	maps.Copy(all, own)
	maps.Copy(all, p.Overrides)
	return all
}

func listed(properties map[string]string) setProperties {
	var list setProperties
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		list = append(list, property{name: name, value: properties[name]})
	}
	return list
}
