package commit

// Creation is what the requests for a new table and for a new view have in common.
type Creation struct {
	Name       string
	Location   string // "" when the catalog is to choose; without trailing slashes
	Properties map[string]string

	properties setProperties // in the order of the request
}

// NewName gives the name of what is to be made.
func (c Creation) NewName() string { return c.Name }

// locationOr gives the request's location, else the given one, without trailing slashes.
func (c Creation) locationOr(other string) string {
	if c.Location != "" {
		return c.Location
	}
	return stripSlashes(other)
}

func decodeCreation(o object) (c Creation, err error) {
	if c.Name, err = o.str("name"); err != nil {
		return c, err
	}
	if c.Location, err = o.strOr("location", ""); err != nil {
		return c, err
	}
	c.Location = stripSlashes(c.Location)
	c.Properties = map[string]string{}
	if o.get("properties") == nil {
		return c, nil
	}
	c.properties, err = parseProperties(o.get("properties"), "properties")
	for _, p := range c.properties {
		c.Properties[p.name] = p.value
	}
	return c, err
}
