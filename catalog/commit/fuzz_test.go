package commit

import (
	"testing"

	"catalogd/internal/fault"
)

// checkKind wants an error that says whose fault it is: one without a kind would be a 500.
func checkKind(t testingT, err error) {
	t.Helper()
	switch fault.KindOf(err) {
	case fault.BadRequest, fault.IllegalArgument, fault.Validation, fault.CommitConflict, fault.TooLarge:
	default:
		t.Fatalf("kind %q of %v", fault.KindOf(err), err)
	}
}

var fuzzBases = []string{"TableMetadataV1Valid.json", "TableMetadataV2Valid.json", "TableMetadataV3ValidMinimal.json", "TableMetadataStatisticsFiles.json"}

// FuzzApply sends arbitrary commits to good tables: nothing panics, every refusal has a kind, and what is taken can be
// read again and is not changed by nothing.
func FuzzApply(f *testing.F) {
	bases := make([]*Document, len(fuzzBases))
	for i, name := range fuzzBases {
		bases[i] = parse(f, fixture(f, name))
		f.Add(uint8(i), []byte(`{"requirements":[],"updates":[`+everyUpdate+`]}`))
		f.Add(uint8(i), []byte(`{"requirements":[{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":1}],"updates":[`+addRows(9, snapshotTwo, 40, 100, 5)+`,`+branch("main", 9)+`]}`))
	}
	f.Fuzz(func(t *testing.T, which uint8, body []byte) {
		base := bases[int(which)%len(bases)]
		r, err := DecodeRequest(body)
		if err != nil {
			checkKind(t, err)
			return
		}
		if err := Check(base, r); err != nil {
			checkKind(t, err)
		}
		next, changed, err := Apply(base, r, Stamp{Now: now, MetadataLocation: oldFile})
		if err != nil {
			checkKind(t, err)
			return
		}
		if !changed && next != base {
			t.Fatal("no change, but another table")
		}
		if changed {
			checkIndex(t, next)
		}
		if again, changed, err := Apply(next, Request{}, Stamp{Now: now, MetadataLocation: oldFile}); changed || err != nil || again != next {
			t.Fatalf("nothing is a change: %v, %v", changed, err)
		}
	})
}

const everyViewUpdate = `{"action":"assign-uuid","uuid":"` + viewUUID + `"},{"action":"upgrade-format-version","format-version":1},` +
	`{"action":"add-schema","schema":{"type":"struct","fields":[{"id":1,"name":"a","required":false,"type":{"type":"list","element-id":2,"element-required":false,"element":"string"}}]}},` +
	`{"action":"add-view-version","view-version":{"version-id":3,"timestamp-ms":1,"schema-id":-1,"summary":{"a":"b"},"default-catalog":"c","default-namespace":["n"],` +
	`"representations":[{"type":"sql","dialect":"spark-sql","sql":"select 1"},{"type":"substrait","plan":""}]}},` +
	`{"action":"set-current-view-version","view-version-id":-1},{"action":"set-location","location":"s3://b/v"},` +
	`{"action":"set-properties","updates":{"version.history.num-entries":"2"}},{"action":"remove-properties","removals":["some-key"]}`

const viewRequestSeed = `{"requirements":[{"type":"assert-view-uuid","uuid":"` + viewUUID + `"}],"identifier":{"namespace":["n"],"name":"v"},"updates":[` + everyViewUpdate + `]}`

// applyAnything is what both fuzz targets of views ask of a commit.
func applyAnything(t testingT, base *View, body []byte) {
	r, err := DecodeViewRequest(body)
	if err != nil {
		checkKind(t, err)
		return
	}
	if err := CheckView(base, r); err != nil {
		checkKind(t, err)
	}
	next, changed, err := ApplyView(base, r, Stamp{Now: now})
	if err != nil {
		checkKind(t, err)
		return
	}
	if !changed && next != base {
		t.Fatalf("no change, but another view")
	}
	if changed {
		checkView(t, next)
	}
	if again, changed, err := ApplyView(next, ViewRequest{}, Stamp{Now: now}); changed || err != nil || again != next {
		t.Fatalf("nothing is a change: %v, %v", changed, err)
	}
}

// FuzzApplyView is FuzzApply for views.
func FuzzApplyView(f *testing.F) {
	base := plainView(f)
	f.Add([]byte(viewRequestSeed))
	f.Add([]byte(`{"updates":[` + addVersion(1, 0, "spark-sql", "a", "trino", "b") + `,` + useVersion(-1) + `,` + useVersion(1) + `]}`))
	f.Fuzz(func(t *testing.T, body []byte) { applyAnything(t, base, body) })
}

// FuzzParseView looks for view documents and create requests that make the engine panic, or that it takes but cannot
// write again.
func FuzzParseView(f *testing.F) {
	for _, name := range []string{"ValidViewMetadata.json", "ViewMetadataMultipleSQLsForDialect.json"} {
		f.Add(fixture(f, name), []byte(viewRequestSeed))
	}
	f.Add(viewBody(viewVersionOf(1, 0, "trino", "select 1")), []byte(viewRequestSeed))
	f.Fuzz(func(t *testing.T, raw, body []byte) {
		if r, err := DecodeCreateView(raw); err != nil {
			checkKind(t, err)
		} else if v, err := CreateView(r, CreateStamp{Now: now, UUID: viewUUID, Location: "s3://b/v"}); err != nil {
			checkKind(t, err)
		} else {
			checkView(t, v)
		}
		base, err := ParseView(raw)
		if err != nil {
			checkKind(t, err)
			return
		}
		checkView(t, base)
		applyAnything(t, base, body)
	})
}
