package catalog

import (
	"context"
	"fmt"
	"strings"

	"catalogd/internal/fault"
)

// GrantChangesMax bounds the changes of one request.
const GrantChangesMax = 500

// GrantChange adds one grant of a warehouse's role, or takes it back.
type GrantChange struct {
	Role   string
	Revoke bool
	Target GrantTarget
}

// GrantWrite is a change of one grant as the store writes it.
type GrantWrite struct {
	Role   RoleRecord
	Grant  RoleGrant
	Revoke bool
	Fact   Fact // is left out when there is nothing to change
}

// ChangeGrants makes all the changes, those of one grant in their order, or none. Each needs what Grant or Revoke needs for it. What is wrong with the
// changes is said of all of them, and what is refused or missing of the first, by their place, which counts from 0.
func (s *Service) ChangeGrants(ctx context.Context, c Caller, warehouse string, changes []GrantChange) error {
	if len(changes) == 0 || len(changes) > GrantChangesMax {
		return fault.New(fault.BadRequest, "there are %d changes; a request has 1 to %d", len(changes), GrantChangesMax)
	}
	var wrong []string
	for i, change := range changes {
		err := change.Target.validate()
		if change.Role == "" {
			err = fault.New(fault.BadRequest, "the catalogRole is missing")
		}
		if err != nil {
			wrong = append(wrong, fmt.Sprintf("changes[%d]: %s", i, fault.Message(err)))
		}
	}
	if len(wrong) > 0 {
		return fault.New(fault.BadRequest, "%s", strings.Join(wrong, "; "))
	}
	writes := make([]GrantWrite, len(changes))
	for i, change := range changes {
		var err error
		if writes[i], err = s.grantWrite(ctx, c, RoleName{Warehouse: warehouse, Name: change.Role}, change.Target, change.Revoke); err != nil {
			return fault.Wrap(fault.KindOf(err), err, "changes[%d]: %s", i, fault.Message(err))
		}
	}
	if err := s.Admin.ChangeGrants(ctx, writes); err != nil {
		return fmt.Errorf("change %d grants in %s: %w", len(writes), warehouse, err)
	}
	return nil
}
