package commit

import (
	"fmt"
	"testing"

	"catalogd/internal/fault"
)

func TestCheck_EachRequirement(t *testing.T) {
	base := commitOn(t, v2Table(t), tag("t", snapshotOne))
	for _, c := range []struct{ name, requirement, want string }{
		{"uuid", `{"type":"assert-table-uuid","uuid":"9C12D441-03FE-4693-9A96-A0705DDF69C1"}`, ""},
		{"uuid", `{"type":"assert-table-uuid","uuid":"00000000-03fe-4693-9a96-a0705ddf69c1"}`,
			"Requirement failed: UUID does not match: expected 9c12d441-03fe-4693-9a96-a0705ddf69c1 != 00000000-03fe-4693-9a96-a0705ddf69c1"},
		{"ref", fmt.Sprintf(`{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":%d}`, snapshotTwo), ""},
		{"ref", `{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":5}`,
			"Requirement failed: branch main has changed: expected id 5 != 3055729675574597004"},
		{"ref", `{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":null}`, "Requirement failed: branch main was created concurrently"},
		{"ref", `{"type":"assert-ref-snapshot-id","ref":"main"}`, "Requirement failed: branch main was created concurrently"},
		{"ref", `{"type":"assert-ref-snapshot-id","ref":"new","snapshot-id":null}`, ""},
		{"ref", `{"type":"assert-ref-snapshot-id","ref":"new","snapshot-id":5}`, "Requirement failed: branch or tag new is missing, expected 5"},
		{"tag", fmt.Sprintf(`{"type":"assert-ref-snapshot-id","ref":"t","snapshot-id":%d}`, snapshotOne), ""},
		{"tag", `{"type":"assert-ref-snapshot-id","ref":"t","snapshot-id":5}`, "Requirement failed: tag t has changed: expected id 5 != 3051729675574597004"},
		{"field id", `{"type":"assert-last-assigned-field-id","last-assigned-field-id":3}`, ""},
		{"field id", `{"type":"assert-last-assigned-field-id","last-assigned-field-id":2}`, "Requirement failed: last assigned field id changed: expected id 2 != 3"},
		{"schema", `{"type":"assert-current-schema-id","current-schema-id":1}`, ""},
		{"schema", `{"type":"assert-current-schema-id","current-schema-id":0}`, "Requirement failed: current schema changed: expected id 0 != 1"},
		{"partition id", `{"type":"assert-last-assigned-partition-id","last-assigned-partition-id":1000}`, ""},
		{"partition id", `{"type":"assert-last-assigned-partition-id","last-assigned-partition-id":999}`, "Requirement failed: last assigned partition id changed: expected id 999 != 1000"},
		{"spec", `{"type":"assert-default-spec-id","default-spec-id":0}`, ""},
		{"spec", `{"type":"assert-default-spec-id","default-spec-id":1}`, "Requirement failed: default partition spec changed: expected id 1 != 0"},
		{"order", `{"type":"assert-default-sort-order-id","default-sort-order-id":3}`, ""},
		{"order", `{"type":"assert-default-sort-order-id","default-sort-order-id":0}`, "Requirement failed: default sort order changed: expected id 0 != 3"},
		{"create", `{"type":"assert-create"}`, "Requirement failed: table already exists"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := DecodeRequest([]byte(`{"requirements":[` + c.requirement + `],"updates":[]}`))
			if err != nil {
				t.Fatal(err)
			}
			err = Check(base, r)
			if c.want == "" {
				if err != nil {
					t.Errorf("%s failed: %v", c.requirement, err)
				}
				return
			}
			if !fault.Is(err, fault.CommitConflict) || fault.Message(err) != c.want {
				t.Errorf("%v, want the conflict %q", err, c.want)
			}
		})
	}
	if len(requirements) != 8 {
		t.Errorf("%d requirement types are known, want the specification's 8 for tables", len(requirements))
	}
}

func TestCheck_WithoutTable(t *testing.T) {
	create, err := DecodeRequest([]byte(`{"requirements":[{"type":"assert-create"}],"updates":[]}`))
	if err != nil || Check(nil, create) != nil {
		t.Errorf("%v, %v: a create is fine where no table is", err, Check(nil, create))
	}
	update, err := DecodeRequest([]byte(`{"requirements":[{"type":"assert-current-schema-id","current-schema-id":0}],"updates":[]}`))
	if err != nil {
		t.Fatal(err)
	}
	wantError(t, Check(nil, update), fault.CommitConflict, "Requirement failed")
}
