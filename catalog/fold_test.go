package catalog

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"catalogd/internal/fault"
)

func TestFoldName_IsStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.String().Draw(t, "name")
		folded := FoldName(name)
		if FoldName(folded) != folded {
			t.Errorf("%q folds to %q and then to %q", name, folded, FoldName(folded))
		}
		if utf8.RuneCountInString(folded) != utf8.RuneCountInString(name) {
			t.Errorf("%q folds to %q: letters came or went", name, folded)
		}
	})
}

// A name within the limits can be beyond them in the form that is compared.
func TestField_C029_LimitsHoldForTheFoldedFormToo(t *testing.T) {
	long := strings.Repeat("\u023a", levelBytesMax/2) // two bytes each, three when lower
	exact, folding := Warehouse{}, Warehouse{FoldsNames: true}
	if err := exact.validNamespace(Namespace{long}); err != nil {
		t.Error(err)
	}
	if err := folding.validNamespace(Namespace{long}); !fault.Is(err, fault.BadRequest) {
		t.Errorf("namespace: %v", err)
	}
	id := Identifier{Namespace: Namespace{"a"}, Name: strings.Repeat("\u023a", tableNameBytesMax/2)}
	if err := exact.validName(id); err != nil {
		t.Error(err)
	}
	if err := folding.validName(id); !fault.Is(err, fault.BadRequest) {
		t.Errorf("table: %v", err)
	}
}
