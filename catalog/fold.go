package catalog

import "strings"

// FoldName gives the form under which a warehouse that folds names compares them: Unicode's simple lower-casing,
// letter by letter, without regard to language or to what stands beside a letter (ß stays ß, Σ becomes σ everywhere,
// İ becomes i). Nothing is normalised otherwise: é in one rune and in two are two names. The limits of names hold for
// both the name and its folded form, which can be longer. The table of letters is that of the Go version that the
// server was built with.
func FoldName(name string) string { return strings.ToLower(name) }

// Fold folds every level.
func (n Namespace) Fold() Namespace {
	out := make(Namespace, len(n))
	for i, level := range n {
		out[i] = FoldName(level)
	}
	return out
}

// Fold folds the name and its namespace.
func (i Identifier) Fold() Identifier {
	return Identifier{Namespace: i.Namespace.Fold(), Name: FoldName(i.Name)}
}

// Key gives the namespace and the name as one list, for comparing.
func (i Identifier) Key() []string { return append(append([]string{}, i.Namespace...), i.Name) }

// validNamespace holds a namespace that is about to be made against the limits, in the form that is compared too.
func (w Warehouse) validNamespace(n Namespace) error {
	if err := n.Validate(); err != nil || !w.FoldsNames {
		return err
	}
	return n.Fold().Validate()
}

// validName is validNamespace for tables and views.
func (w Warehouse) validName(i Identifier) error {
	if err := i.Validate(); err != nil || !w.FoldsNames {
		return err
	}
	return i.Fold().Validate()
}
