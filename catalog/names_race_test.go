package catalog_test

import (
	"context"
	"testing"

	"catalogd/catalog"
	"catalogd/internal/fault"
)

// overtaken lets somebody else act between the lookup of a name and what is done under it, once.
type overtaken struct {
	catalog.Store
	first func()
}

func (o *overtaken) act() {
	if first := o.first; first != nil {
		o.first = nil
		first()
	}
}

func (o *overtaken) DropTable(ctx context.Context, d catalog.TableDrop) error {
	o.act()
	return o.Store.DropTable(ctx, d)
}

func (o *overtaken) RenameTable(ctx context.Context, r catalog.TableRename) error {
	o.act()
	return o.Store.RenameTable(ctx, r)
}

// A drop or a rename that was overtaken by a rename is about a name that nothing has: what got another name, perhaps to be
// kept, is not dropped under it, and who was told that it has the name finds it there.
func TestNames_WhatWasRenamedMeanwhileStays(t *testing.T) {
	for name, act := range map[string]func(b *bench) error{
		"drop": func(b *bench) error {
			return b.DropTable(ctx, system, catalog.DropTableRequest{Warehouse: "w", Ident: id("t"), Purge: true})
		},
		"rename": func(b *bench) error {
			return b.RenameTable(ctx, system, catalog.RenameTableRequest{Warehouse: "w", From: id("t"), To: id("elsewhere")})
		},
		"rename to the same": func(b *bench) error {
			return b.RenameTable(ctx, system, catalog.RenameTableRequest{Warehouse: "w", From: id("t"), To: id("kept")})
		},
	} {
		b := newBench(t)
		b.mustCreate("t")
		rename := catalog.RenameTableRequest{Warehouse: "w", From: id("t"), To: id("kept")}
		store := &overtaken{Store: b.store}
		store.first = func() {
			if err := b.RenameTable(ctx, system, rename); err != nil {
				t.Fatal(err)
			}
		}
		b.Store = store
		if err := act(b); !fault.Is(err, fault.NoSuchTable) {
			t.Errorf("%s: %v", name, err)
		}
		if err := b.TableExists(ctx, system, "w", id("kept")); err != nil {
			t.Errorf("%s: what was renamed: %v", name, err)
		}
	}
}
