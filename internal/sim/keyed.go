package sim

import (
	"fmt"

	"github.com/google/uuid"

	"catalogd/catalog"
	"catalogd/internal/fault"
)

// sent runs a request and gives its outcome. Half of the requests have a key. One that was answered with no promise is
// then sent again in calm, as clients do; its outcome is certain. And every one is sent once more: it must be answered
// alike and leave nothing. A request without a key is sent once.
func (h *history) sent(what string, run func(c catalog.Caller) (string, error)) (err, broken error) {
	c := caller
	if h.rnd.IntN(2) == 0 {
		_, err := run(c)
		h.note("%s: %v", what, err)
		return err, nil
	}
	return h.sentWithKey(what, run)
}

// sentWithKey is sent for a request that has a key.
func (h *history) sentWithKey(what string, run func(c catalog.Caller) (string, error)) (err, broken error) {
	c := caller
	c.Key = catalog.RequestKey{ID: h.newKey(), Operation: what}
	answer, err := run(c)
	h.note("%s, with a key: %v", what, err)
	h.calm = true
	defer func() { h.calm = false }()
	if err != nil && passing(err) {
		answer, err = run(c)
		h.note("    again: %v", err)
		if err != nil && passing(err) {
			return err, fmt.Errorf("%s: the repeat in calm had no certain answer: %w", what, err)
		}
	}
	events, files := len(h.store.Events()), len(h.files.Files())
	answerAgain, errAgain := run(c)
	if answerAgain != answer || fault.KindOf(errAgain) != fault.KindOf(err) || fault.Message(errAgain) != fault.Message(err) && err != nil {
		return err, fmt.Errorf("%s was answered %q, %v and then %q, %v", what, answer, err, answerAgain, errAgain)
	}
	if n, m := len(h.store.Events()), len(h.files.Files()); n != events || m != files {
		return err, fmt.Errorf("%s: the repeat left %d events and %d files", what, n-events, m-files)
	}
	return err, nil
}

// passing tells that an answer says nothing for good.
func passing(err error) bool {
	switch fault.KindOf(err) {
	case fault.Busy, fault.CommitUnknown, fault.Internal:
		return true
	}
	return false
}

// newKey is a key that hangs on the seed alone.
func (h *history) newKey() (key uuid.UUID) {
	for i := range key {
		key[i] = byte(h.rnd.UintN(256))
	}
	return key
}
