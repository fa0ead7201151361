package commit

// reassignSchema writes a schema with other column ids: assign is asked for every id in the order in which Java
// numbers columns. All fields of a struct come first, then what each of them holds. Nulls of the specification's
// fields are dropped on the way, everything else keeps its text.
func reassignSchema(text []byte, assign func(int) int) ([]byte, error) {
	o, err := parseObject(text, "schema", nil)
	if err != nil {
		return nil, err
	}
	fields, err := reassignFields(o, assign)
	if err != nil {
		return nil, err
	}
	return rewrite(o.withoutNulls(schemaFields...), edit{"fields", fields}), nil
}

func reassignFields(o object, assign func(int) int) ([]byte, error) {
	texts, err := o.list("fields")
	if err != nil {
		return nil, err
	}
	fields := make([]object, len(texts))
	ids := make([]int, len(texts))
	for i, text := range texts {
		if fields[i], err = parseObject(text, "field", nil); err != nil {
			return nil, err
		}
		id, err := fields[i].integer("id")
		if err != nil {
			return nil, err
		}
		ids[i] = assign(id)
	}
	for i, f := range fields {
		typ, err := reassignType(f.get("type"), assign)
		if err != nil {
			return nil, err
		}
		texts[i] = rewrite(f.withoutNulls(columnFields...), edit{"id", number(int64(ids[i]))}, edit{"type", typ})
	}
	return joinArray(texts), nil
}

func reassignType(typ []byte, assign func(int) int) ([]byte, error) {
	if typ[0] == '"' {
		return typ, nil
	}
	o, err := parseObject(typ, "type", nil)
	if err != nil {
		return nil, err
	}
	name, err := o.str("type")
	if err != nil {
		return nil, err
	}
	inside := map[string][]string{"list": {"element"}, "map": {"key", "value"}}[name]
	if inside == nil {
		fields, err := reassignFields(o, assign)
		return rewrite(o.withoutNulls(structFields...), edit{"fields", fields}), err
	}
	var edits []edit
	for _, part := range inside {
		id, err := o.integer(part + "-id")
		if err != nil {
			return nil, err
		}
		edits = append(edits, edit{part + "-id", number(int64(assign(id)))})
	}
	for _, part := range inside {
		typ, err := reassignType(o.get(part), assign)
		if err != nil {
			return nil, err
		}
		edits = append(edits, edit{part, typ})
	}
	return rewrite(o, edits...), nil
}
