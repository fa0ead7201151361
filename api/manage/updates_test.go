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

// updateBodies are the updates of a commit, each of a kind, such that each can be sent again. UUID and AT are the table's, N is another
// number each time; "" is a commit without updates.
var updateBodies = map[string]string{
	"":                            ``,
	"assign-uuid":                 `"uuid":"UUID"`,
	"upgrade-format-version":      `"format-version":2`,
	"add-schema":                  `"schema":{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","required":false,"type":"long"}]}`,
	"set-current-schema":          `"schema-id":0`,
	"add-spec":                    `"spec":{"spec-id":0,"fields":[]}`,
	"set-default-spec":            `"spec-id":0`,
	"add-sort-order":              `"sort-order":{"order-id":0,"fields":[]}`,
	"set-default-sort-order":      `"sort-order-id":0`,
	"add-snapshot":                `"snapshot":{"snapshot-id":N,"sequence-number":N,"timestamp-ms":NOW,"manifest-list":"AT/metadata/N.avro","summary":{"operation":"append"}}`,
	"set-snapshot-ref":            `"ref-name":"kept","type":"tag","snapshot-id":1`,
	"remove-snapshots":            `"snapshot-ids":[424242]`,
	"remove-snapshot-ref":         `"ref-name":"none"`,
	"set-location":                `"location":"AT"`,
	"set-properties":              `"updates":{"k":"N"}`,
	"remove-properties":           `"removals":["none"]`,
	"set-statistics":              `"snapshot-id":1,"statistics":{"snapshot-id":1,"statistics-path":"AT/metadata/N.puffin","file-size-in-bytes":5,"file-footer-size-in-bytes":2,"blob-metadata":[]}`,
	"remove-statistics":           `"snapshot-id":424242`,
	"set-partition-statistics":    `"partition-statistics":{"snapshot-id":1,"statistics-path":"AT/metadata/N.parquet","file-size-in-bytes":5}`,
	"remove-partition-statistics": `"snapshot-id":424242`,
	"remove-partition-specs":      `"spec-ids":[]`,
	"remove-schemas":              `"schema-ids":[]`,
	"add-encryption-key":          `"encryption-key":{"key-id":"k","encrypted-key-metadata":"AAEC"}`,
	"remove-encryption-key":       `"key-id":"none"`,
}

// documentedFor is the privilege that docs/privileges.md gives to a kind of update.
func documentedFor(update string) authz.Privilege {
	for _, row := range authz.Rows() {
		kinds, ok := strings.CutPrefix(row.Meaning, "commit ")
		if ok && update != "" && slices.Contains(strings.Split(kinds, " and "), update) {
			return row.Name
		}
	}
	return authz.TableWriteProperties
}

// updater sends commits to lake's a.t.
type updater struct {
	*grantee
	uuid, at string
	n        int
}

// commit sends one update, alone or in a transaction.
func (u *updater) commit(p *person, update string, transaction bool) reply {
	u.t.Helper()
	u.n++
	list := ""
	if update != "" {
		list = strings.NewReplacer("UUID", u.uuid, "AT", u.at, "NOW", fmt.Sprint(time.Now().UnixMilli()), "N", fmt.Sprint(u.n)).
			Replace(`{"action":"` + update + `",` + updateBodies[update] + `}`)
	}
	if transaction {
		return p.catalogCall(post, "/lake/transactions/commit",
			`{"table-changes":[{"identifier":{"namespace":["a"],"name":"t"},"requirements":[],"updates":[`+list+`]}]}`)
	}
	return p.catalogCall(post, "/lake/namespaces/a/tables/t", `{"requirements":[],"updates":[`+list+`]}`)
}

// TestMatrix_UpdatesOfACommit sends each kind of update with each privilege that can be granted on a table, beside
// TABLE_READ_PROPERTIES, which every commit needs: the one that is documented opens it, and those that contain it, and no
// other; taking it back closes it. It does so for commits of one table and for transactions.
func TestMatrix_UpdatesOfACommit(t *testing.T) {
	o := newOffice(t)
	root := o.furnished()
	u := &updater{grantee: newGrantee(o, root, "ann")}
	loaded := root.catalogCall(get, "/lake/namespaces/a/tables/t", "")
	u.uuid, _ = loaded.at(t, "metadata", "table-uuid").(string)
	u.at, _ = loaded.at(t, "metadata", "location").(string)
	if r := u.commit(root, "add-snapshot", false); r.status != 200 {
		t.Fatal(r.body)
	}
	path := o.path(catalog.SecurableName{Warehouse: "lake", Namespace: catalog.Namespace{"a"}, Table: "t"})
	table := path[3]
	reading := catalog.RoleGrant{Privilege: authz.TableReadProperties, Kind: table.Kind, ID: table.ID}
	cells := 0
	try := func(update string, held authz.Privilege, want bool) {
		t.Helper()
		for _, transaction := range []bool{false, true} {
			cells++
			if r := u.commit(u.caller, update, transaction); r.status < 300 != want || r.status >= 300 && !isRefusal(r.status) {
				t.Errorf("%q with %s, in a transaction %v: %d %s, allowed should be %v", update, held, transaction, r.status, r.body, want)
			}
		}
	}
	blind := but(authz.TableReadProperties, path...)
	u.change(false, blind...)
	for update := range updateBodies {
		try(update, "all that does not read", false)
	}
	u.change(true, blind...)
	u.change(false, reading)
	for update := range updateBodies {
		wanted := documentedFor(update)
		for _, row := range authz.Rows() {
			if !authz.Grantable(row.Name, table.Kind) || row.Name == reading.Privilege {
				continue
			}
			grant := catalog.RoleGrant{Privilege: row.Name, Kind: table.Kind, ID: table.ID}
			u.change(false, grant)
			opens := authz.Implies(row.Name, wanted)
			try(update, row.Name, opens)
			u.change(true, grant)
			if opens {
				try(update, row.Name+", taken back", false)
			}
		}
		try(update, reading.Privilege, false)
	}
	if len(updateBodies) != 24 || cells < 1900 {
		t.Errorf("%d kinds of updates, %d cells", len(updateBodies), cells)
	}
	matrix{"updates of a commit and of a transaction: each privilege on the table", 2 * len(updateBodies), cells, cells}.hold(t)
}
