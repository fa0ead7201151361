package catalogtest_test

import (
	"errors"
	"testing"

	"github.com/google/uuid"

	"catalogd/catalog"
	"catalogd/catalog/catalogtest"
	"catalogd/internal/fault"
	"catalogd/vending"
)

func TestStore_KeepsThePromises(t *testing.T) {
	catalogtest.Run(t, func(*testing.T) catalog.Store { return catalogtest.NewStore() })
}

func TestStore_KeepsThePromisesWithFoldedNames(t *testing.T) {
	catalogtest.RunFolded(t, func(*testing.T) catalog.Store { return catalogtest.NewStore() })
}

func warehouse() catalog.Warehouse {
	return catalog.Warehouse{ID: uuid.New(), Name: "w", Location: "s3://bucket/base", Storage: vending.Profile{StorageType: "S3"}}
}

func TestStore_FailsBeforeItDoesAnything(t *testing.T) {
	s := catalogtest.NewStore()
	broken := errors.New("broken")
	s.Inject(catalogtest.FailNth(2, broken))
	if _, err := s.ListWarehouses(t.Context(), catalog.ListQuery{}); err != nil {
		t.Fatal(err)
	}
	if err := s.CreateWarehouse(t.Context(), warehouse(), catalog.Fact{ID: uuid.New()}); !errors.Is(err, broken) {
		t.Fatalf("got %v", err)
	}
	all, err := s.ListWarehouses(t.Context(), catalog.ListQuery{})
	if err != nil || len(all) != 0 || len(s.Events()) != 0 || s.Calls() != 3 {
		t.Fatalf("%v, %d warehouses, %d events, %d calls", err, len(all), len(s.Events()), s.Calls())
	}
}

func TestStore_LosesTheAnswerOfWhatItDid(t *testing.T) {
	for _, applied := range []bool{true, false} {
		s := catalogtest.NewStore()
		s.Inject(catalogtest.LoseAnswer("CreateWarehouse", 1, applied))
		err := s.CreateWarehouse(t.Context(), warehouse(), catalog.Fact{ID: uuid.New()})
		if !fault.Is(err, fault.CommitUnknown) {
			t.Fatalf("got %v", err)
		}
		if _, err := s.FindWarehouse(t.Context(), "w"); (err == nil) != applied {
			t.Errorf("applied %t: %v", applied, err)
		}
	}
}

func TestMetadata_NeverWritesOverAFile(t *testing.T) {
	m := catalogtest.NewMetadata()
	at := vending.FilePlace{Scope: vending.Scope{Location: "s3://bucket/t"}, Path: "s3://bucket/t/metadata/a.json"}
	if err := m.WriteMetadata(t.Context(), at, []byte("one")); err != nil {
		t.Fatal(err)
	}
	if err := m.WriteMetadata(t.Context(), at, []byte("two")); !fault.Is(err, fault.Internal) {
		t.Errorf("got %v", err)
	}
	body, err := m.ReadMetadata(t.Context(), at)
	if err != nil || string(body) != "one" {
		t.Errorf("%q, %v", body, err)
	}
	outside := at
	outside.Path = "s3://bucket/u/metadata/a.json"
	if err := m.WriteMetadata(t.Context(), outside, nil); err == nil {
		t.Error("wrote outside the scope")
	}
	m.RemoveMetadata(t.Context(), at)
	if err := m.StatMetadata(t.Context(), at); !fault.Is(err, fault.FileNotFound) {
		t.Errorf("got %v", err)
	}
}
