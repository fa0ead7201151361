package store

import (
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"catalogd/authz"
	"catalogd/catalog"
)

// Requests that change the same grants lock them in the same order, whatever theirs is: who holds the first one is waited for with
// nothing in the hands that he may want.
func TestChangeGrants_LockInOneOrder(t *testing.T) {
	s := newStaff(t)
	role, on := s.role(s.warehouse("w").ID, "reader"), uuid.New()
	var changes []catalog.GrantWrite
	for _, privilege := range []authz.Privilege{authz.TableDrop, authz.TableList, authz.TableWriteData} { // by name
		changes = append(changes, catalog.GrantWrite{
			Role: role, Grant: catalog.RoleGrant{Privilege: privilege, Kind: authz.Namespace, ID: on}, Fact: adminFact("add-grant"),
		})
	}
	backwards := slices.Clone(changes)
	slices.Reverse(backwards)
	done := make(chan error, 1)
	s.must(s.runTx(t.Context(), func(tx pgx.Tx) error { // once: what fails is not tried again
		add := func(c catalog.GrantWrite) error {
			return addGrant(t.Context(), tx, sqlLockRole, c.Role, c.Grant, adminFact("add-grant"))
		}
		if err := add(changes[0]); err != nil {
			return err
		}
		go func() { done <- s.ChangeGrants(t.Context(), backwards) }()
		(&outcomeBench{near: s.Store}).awaitLockedOut(t, done)
		if _, err := tx.Exec(t.Context(), "SET LOCAL lock_timeout = '200ms'"); err != nil {
			return err
		}
		return add(changes[2])
	}))
	s.must(<-done)
}
