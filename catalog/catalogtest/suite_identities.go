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

var identityPromises = []promise{
	{"SubjectsAreOnePrincipal", subjectsAreOnePrincipal},
	{"SubjectsAreFew", func(b *bench) {
		p := b.keyHolder("p")
		for i := range auth.IdentitiesMax {
			b.must(b.admin.LinkIdentity(b.Context(), p.ID, subject(fmt.Sprint("s", i)), b.fact("link-identity", "p")))
		}
		b.leavesNoTrace(func() {
			b.refused(b.admin.LinkIdentity(b.Context(), p.ID, subject("more"), b.fact("link-identity", "p")), fault.IllegalArgument, "")
		})
		linked, err := b.admin.LinkedIdentities(b.Context(), p.ID)
		if b.must(err); len(linked) != auth.IdentitiesMax {
			b.Errorf("%d subjects are linked", len(linked))
		}
	}},
	{"SubjectsAreLinkedOnce", func(b *bench) {
		people := []catalog.PrincipalRecord{b.keyHolder("p"), b.keyHolder("q"), b.keyHolder("r")}
		linked := 0
		for _, err := range b.race(len(people), func(i int) error {
			return b.admin.LinkIdentity(b.Context(), people[i].ID, subject("s"), b.fact("link-identity", people[i].Name))
		}) {
			if err == nil {
				linked++
			} else {
				b.refused(err, fault.AlreadyExists, "")
			}
		}
		if linked != 1 {
			b.Errorf("one subject is %d principals", linked)
		}
	}},
}

func subject(name string) catalog.LinkedIdentity {
	return catalog.LinkedIdentity{IdentityLink: auth.IdentityLink{Issuer: "https://idp", Subject: name}, LinkedAt: at}
}

// A subject is one principal at most; who it is is known wherever the principal is judged, and ends with the link.
func subjectsAreOnePrincipal(b *bench) {
	p, q := b.keyHolder("p"), b.keyHolder("q")
	want := func(whose catalog.PrincipalRecord, want ...catalog.LinkedIdentity) {
		b.Helper()
		linked, err := b.admin.LinkedIdentities(b.Context(), whose.ID)
		b.must(err)
		if len(linked) != len(want) || len(want) > 0 && !reflect.DeepEqual(linked, want) {
			b.Errorf("%s is %+v, want %+v", whose.Name, linked, want)
		}
		_, state, err := b.store.ResolveGrants(b.Context(), catalog.Lookup{Principal: auth.Principal{ID: whose.ID, Name: whose.Name, Kind: auth.Service}})
		b.must(err)
		for _, l := range []catalog.LinkedIdentity{subject("a"), subject("b")} {
			caller := auth.Principal{ID: whose.ID, Kind: auth.Service, Issuer: l.Issuer, Subject: l.Subject}
			linked := false
			for _, w := range want {
				linked = linked || w == l
			}
			if got := state.Admit(caller, time.Now()); (got == nil) != linked {
				b.Errorf("%s of %s: %v", l.Subject, whose.Name, got)
			}
		}
	}
	want(p)
	for _, l := range []catalog.LinkedIdentity{subject("b"), subject("a")} {
		b.must(b.admin.LinkIdentity(b.Context(), p.ID, l, b.fact("link-identity", "p")))
	}
	want(p, subject("a"), subject("b"))
	b.leavesNoTrace(func() {
		for _, to := range []uuid.UUID{p.ID, q.ID} {
			b.refused(b.admin.LinkIdentity(b.Context(), to, subject("a"), b.fact("link-identity", "p")), fault.AlreadyExists, "the subject is p already")
		}
		b.refused(b.admin.LinkIdentity(b.Context(), uuid.New(), subject("c"), b.fact("link-identity", "p")), fault.NotFound, "")
		b.refused(b.admin.UnlinkIdentity(b.Context(), q.ID, subject("a").IdentityLink, b.fact("unlink-identity", "q")), fault.NotFound, "")
		b.refused(b.admin.UnlinkIdentity(b.Context(), p.ID, subject("A").IdentityLink, b.fact("unlink-identity", "p")), fault.NotFound, "")
	})
	b.must(b.admin.UnlinkIdentity(b.Context(), p.ID, subject("a").IdentityLink, b.fact("unlink-identity", "p")))
	want(p, subject("b"))
	b.must(b.admin.LinkIdentity(b.Context(), q.ID, subject("a"), b.fact("link-identity", "q")))
	want(q, subject("a"))
	b.must(b.admin.DropPrincipal(b.Context(), p.ID, b.fact("drop-principal", "p")))
	b.must(b.admin.LinkIdentity(b.Context(), q.ID, subject("b"), b.fact("link-identity", "q")))
	want(q, subject("a"), subject("b"))
}
