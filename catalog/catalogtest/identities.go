package catalogtest

import (
	"cmp"
	"context"
	"slices"

	"github.com/google/uuid"

	"catalogd/auth"
	"catalogd/catalog"
	"catalogd/internal/fault"
)

// LinkedIdentities gives a principal's by issuer and subject.
func (s *Store) LinkedIdentities(ctx context.Context, principal uuid.UUID) ([]catalog.LinkedIdentity, error) {
	var linked []catalog.LinkedIdentity
	err := s.tx(ctx, "LinkedIdentities", func(st *state) error {
		linked = slices.Clone(st.principals[principal].linked)
		return nil
	})
	return linked, err
}

// LinkIdentity lets a subject be a principal.
func (s *Store) LinkIdentity(ctx context.Context, principal uuid.UUID, l catalog.LinkedIdentity, f catalog.Fact) error {
	return s.tx(ctx, "LinkIdentity", func(st *state) error {
		row, ok := st.principals[principal]
		if !ok {
			return noSuchPrincipal(f.Subject)
		}
		for _, other := range st.principals {
			if linkAt(other, l.IdentityLink) >= 0 {
				return fault.New(fault.AlreadyExists, "the subject is %s already", other.Name)
			}
		}
		if len(row.linked) >= auth.IdentitiesMax {
			return fault.New(fault.IllegalArgument, "a principal has %d identities at most: remove one first", auth.IdentitiesMax)
		}
		row.linked = append(slices.Clip(row.linked), l)
		slices.SortFunc(row.linked, func(a, b catalog.LinkedIdentity) int {
			return cmp.Or(cmp.Compare(a.Issuer, b.Issuer), cmp.Compare(a.Subject, b.Subject))
		})
		st.principals[principal] = row
		return st.write(f)
	})
}

// UnlinkIdentity ends that.
func (s *Store) UnlinkIdentity(ctx context.Context, principal uuid.UUID, l auth.IdentityLink, f catalog.Fact) error {
	return s.tx(ctx, "UnlinkIdentity", func(st *state) error {
		row := st.principals[principal]
		i := linkAt(row, l)
		if i < 0 {
			return fault.New(fault.NotFound, "the principal has no such identity")
		}
		row.linked = slices.Delete(slices.Clone(row.linked), i, i+1)
		st.principals[principal] = row
		return st.write(f)
	})
}

func linkAt(row principalRow, l auth.IdentityLink) int {
	return slices.IndexFunc(row.linked, func(has catalog.LinkedIdentity) bool { return has.IdentityLink == l })
}
