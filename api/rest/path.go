package rest

import (
	"net/http"
	"strings"

	"catalogd/api"
	"catalogd/catalog"
)

// levelSeparator stands between the levels of a namespace in paths and in the parent parameter, after decoding. No
// level can hold it. Nothing else is announced as a separator, because old clients send this one whatever is.
const levelSeparator = "\x1f"

// warehouseOf reads the prefix: a warehouse's name or id.
func warehouseOf(r *http.Request) (string, error) {
	warehouse, err := api.Param(r, "prefix")
	if err != nil {
		return "", err
	}
	api.Annotate(r, warehouse, "")
	return warehouse, nil
}

// namespaceOf reads the prefix and the namespace.
func namespaceOf(r *http.Request) (warehouse string, ns catalog.Namespace, err error) {
	if warehouse, err = warehouseOf(r); err != nil {
		return "", nil, err
	}
	text, err := api.Param(r, "namespace")
	if err != nil {
		return "", nil, err
	}
	ns = splitLevels(text)
	api.Annotate(r, warehouse, ns.String())
	return warehouse, ns, nil
}

// identifierOf reads the prefix, the namespace and the name of a table or view; param is the name's place in the
// pattern.
func identifierOf(r *http.Request, param string) (warehouse string, ident catalog.Identifier, err error) {
	warehouse, ns, err := namespaceOf(r)
	if err != nil {
		return "", catalog.Identifier{}, err
	}
	name, err := api.Param(r, param)
	if err != nil {
		return "", catalog.Identifier{}, err
	}
	ident = catalog.Identifier{Namespace: ns, Name: name}
	api.Annotate(r, warehouse, ident.String())
	return warehouse, ident, nil
}

// splitLevels splits decoded text into levels; "" has none.
func splitLevels(text string) catalog.Namespace {
	if text == "" {
		return nil
	}
	return strings.Split(text, levelSeparator)
}
