package manage_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"catalogd/authz"
	"catalogd/catalog"
)

// lackOf is a privilege that is wanted on something in lake.
type lackOf struct {
	wanted authz.Privilege
	on     catalog.SecurableName
}

func inLake(namespace, table, view string) catalog.SecurableName {
	return catalog.SecurableName{Warehouse: "lake", Namespace: catalog.Namespace{namespace}, Table: table, View: view}
}

// exceptions are requests that need more, or less, than their operation's name tells (docs/access.md), in this order. LOST is
// the metadata file of an unregistered table.
var exceptions = []struct {
	name, method, path, body string
	needs                    []lackOf
}{
	{"a transaction over two namespaces", post, "/transactions/commit", `{"table-changes":[` +
		`{"identifier":{"namespace":["a"],"name":"t"},"requirements":[],"updates":[{"action":"set-properties","updates":{"k":"v"}}]},` +
		`{"identifier":{"namespace":["b"],"name":"t"},"requirements":[],"updates":[{"action":"set-properties","updates":{"k":"v"}}]}]}`,
		[]lackOf{
			{authz.TableReadProperties, inLake("a", "t", "")}, {authz.TableSetProperties, inLake("a", "t", "")},
			{authz.TableReadProperties, inLake("b", "t", "")}, {authz.TableSetProperties, inLake("b", "t", "")},
		}},
	{"rename a view to another namespace", post, "/views/rename",
		`{"source":{"namespace":["a"],"name":"v"},"destination":{"namespace":["b"],"name":"w"}}`,
		[]lackOf{{authz.ViewDrop, inLake("a", "", "v")}, {authz.ViewCreate, inLake("b", "", "")}}},
	{"rename a table to another namespace", post, "/tables/rename",
		`{"source":{"namespace":["a"],"name":"t"},"destination":{"namespace":["b"],"name":"u"}}`,
		[]lackOf{{authz.TableDrop, inLake("a", "t", "")}, {authz.TableCreate, inLake("b", "", "")}}},
	{"register over a table", post, "/namespaces/b/register", `{"name":"t","metadata-location":"LOST","overwrite":true}`,
		[]lackOf{{authz.TableCreate, inLake("b", "", "")}, {authz.TableFullMetadata, inLake("b", "t", "")}, {authz.TableWriteData, inLake("b", "t", "")}}},
	{"create a table with data", post, "/namespaces/a/tables/full", `{"requirements":[{"type":"assert-create"}],"updates":[` +
		`{"action":"add-schema","schema":{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","required":false,"type":"long"}]}},` +
		`{"action":"set-current-schema","schema-id":-1},{"action":"add-spec","spec":{"spec-id":0,"fields":[]}},{"action":"set-default-spec","spec-id":-1},` +
		`{"action":"add-sort-order","sort-order":{"order-id":0,"fields":[]}},{"action":"set-default-sort-order","sort-order-id":-1},` +
		`{"action":"set-location","location":"file:///lakes/lake/full"},` +
		`{"action":"add-snapshot","snapshot":{"snapshot-id":1,"sequence-number":1,"timestamp-ms":NOW,` +
		`"manifest-list":"file:///lakes/lake/full/metadata/1.avro","summary":{"operation":"append"}}}]}`,
		[]lackOf{{authz.TableCreate, inLake("a", "", "")}}}, // the credentials for its files are TABLE_WRITE_DATA's
	{"drop a table with its files", del, "/namespaces/b/tables/u?purgeRequested=true", ``,
		[]lackOf{{authz.TableDrop, inLake("b", "u", "")}, {authz.TableWriteData, inLake("b", "u", "")}}},
}

// TestMatrix_Exceptions holds these requests to what they need: with all other privileges on what the need is about and all it lies
// in, and with every privilege on everything else, they are refused; with the needs alone they are done.
func TestMatrix_Exceptions(t *testing.T) {
	o := newOffice(t)
	root := o.furnished()
	o.furnish(root, "lake", "b")
	made := root.catalogCall(post, "/lake/namespaces/a/tables", plainTable("lost", ""))
	lost, _ := made.at(t, "metadata-location").(string)
	if r := root.catalogCall(post, "/lake/namespaces/a/tables/lost/unregister", ""); r.status != 200 || lost == "" {
		t.Fatalf("%s %s", made.body, r.body)
	}
	g := newGrantee(o, root, "ann")
	cells, requests := 0, 0
	for _, e := range exceptions { // opening one changes what the next finds, refusing one does not
		send := func() reply {
			return g.caller.catalogCall(e.method, "/lake"+e.path, strings.NewReplacer("LOST", lost, "NOW", fmt.Sprint(time.Now().UnixMilli())).Replace(e.body))
		}
		for _, need := range e.needs {
			held := g.allElse(e.needs, need)
			requests++
			cells += len(held)
			g.change(false, held...)
			if r := send(); !isRefusal(r.status) {
				t.Errorf("%s with all but %s: %d %s", e.name, need.wanted, r.status, r.body)
			}
			g.change(true, held...)
		}
		var exact []catalog.RoleGrant
		for _, need := range e.needs {
			path := o.path(need.on)
			at := path[len(path)-1]
			exact = append(exact, catalog.RoleGrant{Privilege: need.wanted, Kind: at.Kind, ID: at.ID})
		}
		requests++
		cells += len(exact)
		g.change(false, exact...)
		if r := send(); r.status >= 300 {
			t.Errorf("%s: %d %s", e.name, r.status, r.body)
		}
		g.change(true, exact...)
	}
	if cells < 2700 {
		t.Errorf("%d cells", cells)
	}
	matrix{"requests that need more than their name tells: with every other privilege at once, and with the needs alone", len(exceptions), requests, cells}.hold(t)
}

// allElse are all grants that there can be on what the needs are about, and around it, but those that give this one.
func (g *grantee) allElse(needs []lackOf, left lackOf) []catalog.RoleGrant {
	closed := g.path(left.on)
	held, rest := but(left.wanted, closed...), []authz.Securable(nil)
	for _, need := range needs {
		for _, at := range g.path(need.on) {
			if !contains(closed, at) && !contains(rest, at) {
				rest = append(rest, at)
			}
		}
	}
	return slices.Concat(held, but("", rest...))
}
