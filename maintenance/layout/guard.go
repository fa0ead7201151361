package layout

import (
	"fmt"
	"runtime/debug"

	"catalogd/internal/fault"
)

// guarded makes a goroutine's panic its error: what a table's files hold must end a rewrite at most, and a panic that
// nobody catches ends the process.
func guarded(work func() error) func() error {
	return func() (err error) {
		defer func() {
			if cause := recover(); cause != nil {
				err = fault.Wrap(fault.Internal, fmt.Errorf("%v\n%s", cause, debug.Stack()), "defect in the server: a rewrite stumbled: %v", cause)
			}
		}()
		return work()
	}
}
