package catalogtest

import (
	"context"
	"slices"
	"time"

	"catalogd/auth"
	"catalogd/catalog"
	"catalogd/internal/fault"
)

// SigningKeys gives the keys whose tokens may still live.
func (s *Store) SigningKeys(ctx context.Context) ([]auth.StoredKey, error) {
	return s.changeKeys(ctx, "SigningKeys", func(*state) error { return nil })
}

// changeKeys gives the keys that are there after a change.
func (s *Store) changeKeys(ctx context.Context, method string, change func(st *state) error) ([]auth.StoredKey, error) {
	var keys []auth.StoredKey
	err := s.tx(ctx, method, func(st *state) error {
		st.keys = slices.Clone(st.keys)
		if err := change(st); err != nil {
			return err
		}
		st.keys = slices.DeleteFunc(st.keys, func(k auth.StoredKey) bool { return !time.Now().Before(k.VerifiesUntil()) })
		keys = slices.Clone(st.keys)
		return nil
	})
	return keys, err
}

// AddSigningKey keeps the key unless there is an active one of its algorithm.
func (s *Store) AddSigningKey(ctx context.Context, k auth.StoredKey) ([]auth.StoredKey, error) {
	return s.changeKeys(ctx, "AddSigningKey", func(st *state) error {
		active := func(other auth.StoredKey) bool { return other.Algorithm == k.Algorithm && other.RetiredAt.IsZero() }
		if !slices.ContainsFunc(st.keys, active) {
			st.keys = append(st.keys, k)
		}
		return nil
	})
}

// SucceedSigningKey keeps the key in the place of old, unless that has a successor.
func (s *Store) SucceedSigningKey(ctx context.Context, old string, k auth.StoredKey) ([]auth.StoredKey, error) {
	return s.changeKeys(ctx, "SucceedSigningKey", func(st *state) error {
		i := slices.IndexFunc(st.keys, func(other auth.StoredKey) bool { return other.KID == old && other.RetiredAt.IsZero() })
		if i < 0 {
			return nil
		}
		st.keys[i].RetiredAt = k.SignsFrom
		st.keys = append(st.keys, k)
		return st.write(catalog.KeySuccession(k))
	})
}

// RotateSigningKeys keeps the key in the place of all others.
func (s *Store) RotateSigningKeys(ctx context.Context, k auth.StoredKey, others catalog.OtherKeys, f catalog.Fact) ([]auth.StoredKey, error) {
	return s.changeKeys(ctx, "RotateSigningKeys", func(st *state) error {
		if others == catalog.RemoveOtherKeys {
			st.keys = nil
		}
		for i, other := range st.keys {
			if other.RetiredAt.IsZero() && other.SignsFrom.After(k.CreatedAt) {
				return fault.New(fault.AlreadyExists, "signing key %s is announced already", other.KID)
			}
			if other.RetiredAt.IsZero() || other.RetiredAt.After(k.SignsFrom) {
				st.keys[i].RetiredAt = k.SignsFrom
			}
		}
		st.keys = append(st.keys, k)
		return st.write(f)
	})
}
