// Package catalog is the domain: warehouses, namespaces, tables, views and the operations on them, and who may do what.
// A warehouse is a named root with its own storage; a namespace is a list of levels inside it; a table or a view is a name
// in a namespace that points at one metadata file. Operations resolve what is named and the caller's grants in one read, decide, compute
// purely, write an immutable metadata file, and then move the pointer in one transaction. See docs/life-of-a-commit.md.
package catalog

import (
	"strings"

	"catalogd/internal/fault"
)

// Limits of names, in bytes: Postgres' index rows and readers' patience set them.
const (
	levelBytesMax     = 256
	levelsMax         = 32
	namespaceBytesMax = 1024
	tableNameBytesMax = 512
)

// Namespace is a list of levels, outermost first. The empty list is the warehouse itself.
type Namespace []string

// String joins the levels with dots, as error messages of the reference implementation do.
func (n Namespace) String() string { return strings.Join(n, ".") }

// Parent gives all levels but the last.
func (n Namespace) Parent() Namespace { return n[:len(n)-1] }

// Validate refuses names that clients could never address again or that the database cannot hold.
func (n Namespace) Validate() error {
	if len(n) == 0 {
		return fault.New(fault.BadRequest, "namespace must have at least one level")
	}
	if len(n) > levelsMax {
		return fault.New(fault.BadRequest, "namespace has %d levels; at most %d are allowed", len(n), levelsMax)
	}
	total := 0
	for _, level := range n {
		if err := validateName("namespace level", level, levelBytesMax); err != nil {
			return err
		}
		total += len(level)
	}
	if total > namespaceBytesMax {
		return fault.New(fault.BadRequest, "namespace is %d bytes long; at most %d are allowed", total, namespaceBytesMax)
	}
	return nil
}

// Identifier names a table or a view.
type Identifier struct {
	Namespace Namespace `json:"namespace"`
	Name      string    `json:"name"`
}

// String joins everything with dots; without a name it is the namespace's, without a namespace the name.
func (i Identifier) String() string {
	if len(i.Namespace) == 0 || i.Name == "" {
		return i.Namespace.String() + i.Name
	}
	return i.Namespace.String() + "." + i.Name
}

// Validate is for names that are about to be taken; lookups of names that could never exist are plain misses.
func (i Identifier) Validate() error {
	if err := i.Namespace.Validate(); err != nil {
		return err
	}
	return validateName("table name", i.Name, tableNameBytesMax)
}

func validateName(what, name string, bytesMax int) error {
	switch {
	case name == "":
		return fault.New(fault.BadRequest, "%s must not be empty", what)
	case len(name) > bytesMax:
		return fault.New(fault.BadRequest, "%s is %d bytes long; at most %d are allowed", what, len(name), bytesMax)
	case name == "." || name == "..":
		return fault.New(fault.BadRequest, "%s must not be %q: clients and proxies remove it from paths", what, name)
	case strings.ContainsRune(name, '\uFFFD'):
		return fault.New(fault.BadRequest, "%s %q is not valid Unicode text", what, name)
	}
	for _, r := range name {
		if r < 0x20 || r == 0x7f {
			return fault.New(fault.BadRequest, "%s %q holds the control character U+%04X", what, name, r)
		}
	}
	return nil
}
