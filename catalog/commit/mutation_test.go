package commit

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// junk stands in for values that nobody expects at their place.
var junk = []string{
	`null`, `true`, `0`, `-1`, `1`, `7`, `1.5`, `1e3`, `2147483648`, `9223372036854775807`, `-9223372036854775808`, `99999999999999999999`,
	`""`, `"x"`, `"main"`, `"void"`, `"bucket[4]"`, `"unknown"`, `"\u0000\ud800"`, `[]`, `{}`, `[null]`, `[[]]`, `[{}]`, `{"a":null}`, `{"type":"struct","fields":[]}`,
}

// mutated replaces one value somewhere in a JSON text, drops a member or an element, or doubles an element.
func mutated(t *rapid.T, text string) string {
	spots := valueSpots([]byte(text))
	spot := spots[rapid.IntRange(0, len(spots)-1).Draw(t, "spot")]
	value := rapid.SampledFrom(junk).Draw(t, "value")
	if rapid.IntRange(0, 3).Draw(t, "how") == 0 {
		value = text[spot[0]:spot[1]] + "," + text[spot[0]:spot[1]]
	}
	changed := text[:spot[0]] + value + text[spot[1]:]
	if !json.Valid([]byte(changed)) { // doubled where no array is
		return text
	}
	return changed
}

// valueSpots gives where the values of a text begin and end, at every level.
func valueSpots(text []byte) (spots [][2]int) {
	var walk func(at, end int)
	walk = func(at, end int) {
		spots = append(spots, [2]int{at, end})
		s := scanner{text: text[:end], at: at}
		closing := map[byte]byte{'{': '}', '[': ']'}[text[at]]
		if closing == 0 {
			return
		}
		more, _ := s.open(text[at], closing)
		for more {
			if closing == '}' {
				_, _ = s.key()
			}
			start := s.at
			_ = s.skipValue()
			walk(start, s.at)
			more, _ = s.next(closing)
		}
	}
	walk(0, len(text))
	return spots
}

// TestMutations damages documents and requests in places that matter, where random bytes seldom get: nothing may
// panic, and whatever is taken must be written so that it can be read again.
func TestMutations(t *testing.T) {
	documents := []string{
		string(fixture(t, "TableMetadataV1Valid.json")), string(v2Table(t).JSON()),
		string(fixture(t, "TableMetadataStatisticsFiles.json")),
		string(commitOn(t, v2Table(t), everyUpdate, `{"action":"upgrade-format-version","format-version":3}`).JSON()),
	}
	bodies := []string{
		`{"requirements":[],"updates":[` + everyUpdate + `]}`,
		`{"requirements":[{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":1}],"updates":[` + addRows(9, snapshotTwo, 40, 100, 5) + `,` + branch("main", 9) + `]}`,
	}
	rapid.Check(t, func(t *rapid.T) {
		raw := rapid.SampledFrom(documents).Draw(t, "document")
		body := rapid.SampledFrom(bodies).Draw(t, "body")
		createBody := nestedCreate
		for range rapid.IntRange(0, 2).Draw(t, "in the document") {
			raw = mutated(t, raw)
		}
		for range rapid.IntRange(0, 2).Draw(t, "in the body") {
			body = mutated(t, body)
			createBody = mutated(t, createBody)
		}
		if r, err := DecodeCreate([]byte(createBody)); err == nil {
			if d, err := Create(r, stamp); err == nil {
				checkIndex(t, d)
			}
		}
		r, err := DecodeRequest([]byte(body))
		if err != nil {
			return
		}
		if d, err := ApplyCreate(r, stamp); err == nil {
			checkIndex(t, d)
		}
		base, err := Parse([]byte(raw))
		if err != nil {
			return
		}
		parse(t, base.Answer())
		parse(t, base.RefsOnly())
		_ = fmt.Sprint(Check(base, r), Landed(base, r), base.Properties(), base.Refs(), MetadataFolder(base))
		next, changed, err := Apply(base, r, Stamp{Now: now, MetadataLocation: oldFile})
		if err == nil && changed {
			checkIndex(t, next)
			checkNulls(t, base, next)
		}
	})
}

// TestViewMutations is TestMutations for views.
func TestViewMutations(t *testing.T) {
	documents := []string{string(plainView(t).JSON()), string(commitOnView(t, plainView(t), everyViewUpdate).JSON())}
	createBody := string(viewBody(viewVersionOf(1, 0, "trino", "select 1", "spark", "select 1"), `"location":"s3://b/v"`))
	rapid.Check(t, func(t *rapid.T) {
		raw, body, creation := rapid.SampledFrom(documents).Draw(t, "document"), viewRequestSeed, createBody
		for range rapid.IntRange(0, 2).Draw(t, "in the document") {
			raw = mutated(t, raw)
		}
		for range rapid.IntRange(0, 2).Draw(t, "in the body") {
			body, creation = mutated(t, body), mutated(t, creation)
		}
		if r, err := DecodeCreateView([]byte(creation)); err == nil {
			if v, err := CreateView(r, stamp); err == nil {
				checkView(t, v)
			} else {
				checkKind(t, err)
			}
		}
		base, err := ParseView([]byte(raw))
		if err == nil {
			checkView(t, base)
			applyAnything(t, base, []byte(body))
		} else {
			checkKind(t, err)
		}
	})
}

// checkNulls refuses the nulls that Java's reader dies over; those in the base were there before.
func checkNulls(t testingT, base, d *Document) {
	for _, name := range nullable {
		if v := d.members.raw(name); v != nil && isNull(v) {
			t.Fatalf("%s is null", name)
		}
	}
	for _, dead := range []string{`"parent-snapshot-id":null`, `"properties":null`, `"schema-id":null`} {
		if strings.Contains(string(d.JSON()), dead) && !strings.Contains(string(base.JSON()), dead) {
			t.Fatalf("%s in %s", dead, d.JSON())
		}
	}
}
