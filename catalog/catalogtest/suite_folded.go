package catalogtest

import (
	"slices"

	"github.com/google/uuid"

	"catalogd/catalog"
	"catalogd/internal/fault"
)

// foldedPromises hold in a warehouse that compares names without regard to case.
var foldedPromises = []promise{
	{"Field_C029_NamesAreShownAsTheyWereMade", func(b *bench) {
		sales := b.namespace("Sales")
		b.namespace("sALES", "Eu")
		made := b.table(sales, "Orders")
		res := b.resolve(catalog.Lookup{Namespace: catalog.Namespace{"SALES"}, Table: "oRDERS"})
		if res.Namespace == nil || res.Namespace.Levels.String() != "Sales" || res.Table == nil || res.Table.Ident.String() != "Sales.Orders" {
			b.Fatalf("resolved %+v %+v", res.Namespace, res.Table)
		}
		b.wantTable(res.Table, made)
		b.wantChildren(uuid.Nil, catalog.Page{}, "Sales")
		b.wantChildren(sales.ID, catalog.Page{}, "Eu")
		if got := b.tables(sales); !slices.Equal(got, []string{"Orders"}) {
			b.Errorf("tables %q", got)
		}
		child := b.resolve(catalog.Lookup{Namespace: catalog.Namespace{"sales", "EU"}})
		if child.Namespace == nil || child.Namespace.Levels.String() != "Sales.Eu" {
			b.Errorf("a child keeps its parent's spelling: %+v", child.Namespace)
		}
	}},
	{"Field_C029_ANameIsTakenInEverySpelling", func(b *bench) {
		sales := b.namespace("Sales")
		made := b.table(sales, "Orders")
		b.view(sales, "Vista")
		b.leavesNoTrace(func() {
			b.refused(b.createNamespace("sales"), fault.AlreadyExists, "Namespace already exists: sales")
			b.refused(b.commit(b.newTable(sales, "ORDERS", "")), fault.AlreadyExists, "Table already exists: Sales.ORDERS")
			b.refused(b.commit(b.newTable(sales, "VISTA", "")), fault.AlreadyExists, "View with same name already exists: Sales.VISTA")
			b.refused(b.rename(made, sales, "vista"), fault.AlreadyExists, "Cannot rename Sales.Orders to Sales.vista. View already exists")
			b.refused(b.createNamespace("nowhere", "x"), fault.NoSuchNamespace, "Namespace does not exist: nowhere")
		})
		other := b.table(sales, "Other")
		b.refused(b.rename(other, sales, "orders"), fault.AlreadyExists, "Cannot rename Sales.Other to Sales.orders. Table already exists")
	}},
	{"ARenameMaySpellTheSameNameAnew", func(b *bench) {
		sales := b.namespace("Sales")
		made := b.table(sales, "Orders")
		b.must(b.rename(made, sales, "ORDERS"))
		if got := b.tables(sales); !slices.Equal(got, []string{"ORDERS"}) {
			b.Errorf("tables %q", got)
		}
		b.must(b.rename(made, sales, "Bills"))
		if b.load(catalog.Identifier{Namespace: sales.Levels, Name: "orders"}) != nil {
			b.Error("the old name still leads to it")
		}
		b.table(sales, "orders")
	}},
	{"ADroppedNameIsFreeAndItsPlacePassesOn", func(b *bench) {
		sales := b.namespace("Sales")
		first := b.newTable(sales, "Orders", b.warehouse.Location+"/mine")
		b.must(b.commit(first))
		b.drop(first.Record)
		b.refused(b.commit(b.newTable(sales, "bills", b.warehouse.Location+"/mine")), fault.BadRequest, "")
		b.must(b.commit(b.newTable(sales, "oRDERS", b.warehouse.Location+"/mine")))
	}},
	{"AStagedCreateIsFoundInEverySpelling", func(b *bench) {
		sales := b.namespace("Sales")
		made := b.staged(catalog.Identifier{Namespace: catalog.Namespace{"SALES"}, Name: "Orders"}, "")
		b.wantStaged(catalog.Identifier{Namespace: sales.Levels, Name: "orders"}, made)
		b.wantStaged(catalog.Identifier{Namespace: sales.Levels, Name: "bills"})
	}},
	{"WhatIsFoldedIsFoundByOthersSpelling", func(b *bench) {
		for _, pair := range [][2]string{{"Ärger", "äRGER"}, {"İx", "ix"}, {"ΣΊΣΥΦΟΣ", "σίσυφοσ"}, {"Ⱥ", "ⱥ"}, {"K", "\u212a"}} {
			n := b.namespace(pair[0])
			made := b.table(n, pair[0])
			res, err := b.store.Resolve(b.Context(), catalog.Lookup{
				Principal: b.principal, Warehouse: "w", Namespace: catalog.Namespace{pair[1]}, Table: pair[1],
			})
			b.must(err)
			b.wantTable(res.Table, made)
		}
		b.namespace("straße") // and STRASSE is another name
		b.namespace("STRASSE")
	}},
}
