package catalogtest

import (
	"fmt"
	"reflect"
	"time"

	"github.com/google/uuid"

	"catalogd/auth"
	"catalogd/catalog"
	"catalogd/internal/fault"
)

var keyPromises = []promise{
	{"SigningKeysAreRetiredByTheNext", signingKeysRetire},
	{"SigningKeysSucceedOnce", signingKeysSucceedOnce},
	{"SigningKeysGoAtOnce", func(b *bench) {
		now := time.Now().UTC().Truncate(time.Microsecond)
		b.must2(b.keys().AddSigningKey(b.Context(), signingKey("one", now)))
		left, err := b.admin.RotateSigningKeys(b.Context(), signingKey("two", now), catalog.RemoveOtherKeys, b.fact("rotate-signing-keys", "two"))
		b.must(err)
		if len(left) != 1 || !reflect.DeepEqual(left[0], signingKey("two", now)) {
			b.Errorf("left %+v", left)
		}
	}},
	{"ClientKeysAreKept", clientKeysAreKept},
	{"ClientKeysAreFew", func(b *bench) {
		p := b.keyHolder("p")
		for i := range auth.ClientKeysMax {
			b.must(b.admin.AddClientKey(b.Context(), p.ID, clientKey(i), b.fact("add-principal-key", "p")))
		}
		b.leavesNoTrace(func() {
			b.refused(b.admin.AddClientKey(b.Context(), p.ID, clientKey(99), b.fact("add-principal-key", "p")), fault.IllegalArgument, "")
		})
	}},
	{"AssertionsCountOnce", func(b *bench) {
		p, q := b.keyHolder("p"), b.keyHolder("q")
		spend := func(id uuid.UUID, mark string) bool {
			fresh, err := b.keys().SpendAssertion(b.Context(), id, []byte(mark), time.Now().Add(time.Minute))
			b.must(err)
			return fresh
		}
		if !spend(p.ID, "a") || spend(p.ID, "a") || !spend(q.ID, "a") || !spend(p.ID, "b") || spend(p.ID, "a") {
			b.Error("an assertion counts twice, or not at all")
		}
	}},
}

// keyStore is what auth asks of a store.
type keyStore interface {
	auth.KeyStore
	auth.ClientKeyStore
}

func (b *bench) keys() keyStore {
	b.Helper()
	keys, ok := b.store.(keyStore)
	if !ok {
		b.Fatalf("%T keeps no keys", b.store)
	}
	return keys
}

// keyHolder makes a principal.
func (b *bench) keyHolder(name string) catalog.PrincipalRecord {
	b.Helper()
	p := catalog.PrincipalRecord{ID: uuid.New(), Name: name, ClientID: "client-" + name, Kind: auth.Service, CreatedAt: at}
	b.must(b.admin.CreatePrincipal(b.Context(), p, auth.StoredSecret{Algorithm: auth.AlgorithmHMAC, Form: []byte{1}}, b.fact("create-principal", name)))
	return p
}

// must2 is must for calls that give something beside.
func (b *bench) must2(_ any, err error) {
	b.Helper()
	b.must(err)
}

func signingKey(kid string, from time.Time) auth.StoredKey {
	return auth.StoredKey{KID: kid, Algorithm: auth.AlgorithmEdDSA, PublicKey: []byte{1}, PrivateKey: []byte{2}, CreatedAt: from, SignsFrom: from}
}

func clientKey(i int) auth.ClientKey {
	return auth.ClientKey{ID: fmt.Sprint("key", i), Algorithm: auth.AlgorithmES256, Public: []byte{byte(i)}, CreatedAt: at.Add(time.Duration(i) * time.Second)}
}

// A rotation retires the others when the new key begins to sign; a second one has to wait for that.
func signingKeysRetire(b *bench) {
	now := time.Now().UTC().Truncate(time.Microsecond)
	b.must2(b.keys().AddSigningKey(b.Context(), signingKey("one", now)))
	b.must2(b.keys().AddSigningKey(b.Context(), signingKey("not another", now)))
	next := signingKey("two", now.Add(time.Minute))
	next.CreatedAt = now
	keys, err := b.admin.RotateSigningKeys(b.Context(), next, catalog.RetireOtherKeys, b.fact("rotate-signing-keys", "two"))
	b.must(err)
	retired := signingKey("one", now)
	retired.RetiredAt = next.SignsFrom
	if want := []auth.StoredKey{retired, next}; !reflect.DeepEqual(keys, want) {
		b.Errorf("kept %+v\nwant %+v", keys, want)
	}
	third := signingKey("three", now.Add(2*time.Minute))
	third.CreatedAt = now.Add(time.Second)
	b.leavesNoTrace(func() {
		_, err := b.admin.RotateSigningKeys(b.Context(), third, catalog.RetireOtherKeys, b.fact("rotate-signing-keys", "three"))
		b.refused(err, fault.AlreadyExists, "")
	})
	read, err := b.admin.SigningKeys(b.Context())
	b.must(err)
	if !reflect.DeepEqual(read, keys) {
		b.Errorf("read %+v", read)
	}
}

// Of two servers that notice a key's age one gives it a successor.
func signingKeysSucceedOnce(b *bench) {
	now := time.Now().UTC().Truncate(time.Microsecond)
	b.must2(b.keys().AddSigningKey(b.Context(), signingKey("one", now)))
	for _, kid := range []string{"two", "other two"} {
		keys, err := b.keys().SucceedSigningKey(b.Context(), "one", signingKey(kid, now.Add(time.Minute)))
		b.must(err)
		if len(keys) != 2 || keys[1].KID != "two" || !keys[0].RetiredAt.Equal(keys[1].SignsFrom) {
			b.Errorf("%s: %+v", kid, keys)
		}
	}
}

func clientKeysAreKept(b *bench) {
	p := b.keyHolder("p")
	ends := clientKey(2)
	ends.EndsAt = at.Add(time.Hour)
	for _, k := range []auth.ClientKey{clientKey(1), ends} {
		b.must(b.admin.AddClientKey(b.Context(), p.ID, k, b.fact("add-principal-key", "p")))
	}
	b.leavesNoTrace(func() {
		b.refused(b.admin.AddClientKey(b.Context(), p.ID, clientKey(1), b.fact("add-principal-key", "p")), fault.AlreadyExists, "")
		b.refused(b.admin.AddClientKey(b.Context(), uuid.New(), clientKey(3), b.fact("add-principal-key", "p")), fault.NotFound, "")
		b.refused(b.admin.RemoveClientKey(b.Context(), p.ID, "nothing", b.fact("remove-principal-key", "p")), fault.NotFound, "")
		b.refused(b.admin.RemoveClientKey(b.Context(), uuid.New(), "key1", b.fact("remove-principal-key", "p")), fault.NotFound, "")
	})
	want := func(want ...auth.ClientKey) {
		b.Helper()
		keys, err := b.admin.ClientKeys(b.Context(), p.ID)
		b.must(err)
		if len(keys) != len(want) || len(want) > 0 && !reflect.DeepEqual(keys, want) {
			b.Errorf("kept %+v\nwant %+v", keys, want)
		}
	}
	want(clientKey(1), ends)
	b.must(b.admin.RemoveClientKey(b.Context(), p.ID, "key1", b.fact("remove-principal-key", "p")))
	want(ends)
	// An ended key makes room.
	later := b.fact("add-principal-key", "p")
	later.At = at.Add(2 * time.Hour)
	b.must(b.admin.AddClientKey(b.Context(), p.ID, clientKey(3), later))
	want(clientKey(3))
	b.must(b.admin.DropPrincipal(b.Context(), p.ID, b.fact("drop-principal", "p")))
	want()
}
