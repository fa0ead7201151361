package catalogtest

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"catalogd/auth"
	"catalogd/catalog"
	"catalogd/internal/fault"
)

// ClientKeys gives a principal's keys, oldest first.
func (s *Store) ClientKeys(ctx context.Context, principal uuid.UUID) ([]auth.ClientKey, error) {
	var keys []auth.ClientKey
	err := s.tx(ctx, "ClientKeys", func(st *state) error {
		keys = slices.Clone(st.principals[principal].keys)
		return nil
	})
	return keys, err
}

// AddClientKey gives a principal a key.
func (s *Store) AddClientKey(ctx context.Context, principal uuid.UUID, k auth.ClientKey, f catalog.Fact) error {
	return s.tx(ctx, "AddClientKey", func(st *state) error {
		row, ok := st.principals[principal]
		if !ok {
			return fault.New(fault.NotFound, "the principal is gone")
		}
		row.keys = slices.DeleteFunc(slices.Clone(row.keys), func(other auth.ClientKey) bool { return !other.Live(f.At) })
		if slices.ContainsFunc(row.keys, func(other auth.ClientKey) bool { return other.ID == k.ID }) {
			return fault.New(fault.AlreadyExists, "the principal has this key already: %s", k.ID)
		}
		if len(row.keys) >= auth.ClientKeysMax {
			return fault.New(fault.IllegalArgument, "a principal has at most %d keys; remove one first", auth.ClientKeysMax)
		}
		row.keys = append(row.keys, k)
		st.principals[principal] = row
		return st.write(f)
	})
}

// RemoveClientKey takes a key from a principal.
func (s *Store) RemoveClientKey(ctx context.Context, principal uuid.UUID, kid string, f catalog.Fact) error {
	return s.tx(ctx, "RemoveClientKey", func(st *state) error {
		row := st.principals[principal]
		i := slices.IndexFunc(row.keys, func(k auth.ClientKey) bool { return k.ID == kid })
		if i < 0 {
			return fault.New(fault.NotFound, "the principal has no such key")
		}
		row.keys = slices.Delete(slices.Clone(row.keys), i, i+1)
		st.principals[principal] = row
		return st.write(f)
	})
}

// SpendAssertion remembers an assertion's mark.
func (s *Store) SpendAssertion(ctx context.Context, principal uuid.UUID, mark []byte, _ time.Time) (fresh bool, err error) {
	err = s.tx(ctx, "SpendAssertion", func(st *state) error {
		row := st.principals[principal]
		fresh = !slices.ContainsFunc(row.spent, func(other []byte) bool { return bytes.Equal(other, mark) })
		row.spent = append(slices.Clip(row.spent), mark)
		st.principals[principal] = row
		return nil
	})
	return fresh, err
}
