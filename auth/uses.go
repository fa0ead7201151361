package auth

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"
)

// Limits of what is noted about the use of personal access tokens.
const (
	tokenUseInterval = time.Minute // between two notes of one token
	tokenUsesMax     = 10000       // tokens of which is remembered when they were noted last
	useClientMax     = 256         // bytes of a user agent
)

// TokenUse is one use of a personal access token.
type TokenUse struct {
	Token   uuid.UUID
	At      time.Time
	Address string
	Client  string // user agent
}

// TokenUses gathers uses between two writes, so that no request waits for one. The zero value is ready.
type TokenUses struct {
	mu      sync.Mutex
	noted   map[uuid.UUID]time.Time
	pending map[uuid.UUID]TokenUse
}

// Note remembers a use, at most once a minute for each token.
func (u *TokenUses) Note(use TokenUse) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if last, ok := u.noted[use.Token]; ok && use.At.Sub(last) < tokenUseInterval {
		return
	}
	if u.noted == nil || len(u.noted) >= tokenUsesMax {
		u.noted = map[uuid.UUID]time.Time{}
	}
	if u.pending == nil {
		u.pending = map[uuid.UUID]TokenUse{}
	}
	if len(u.pending) >= tokenUsesMax {
		return
	}
	if len(use.Client) > useClientMax {
		use.Client = use.Client[:useClientMax]
	}
	u.noted[use.Token], u.pending[use.Token] = use.At, use
}

// Flush gives what was noted since the last time to write. What could not be written is lost: the next use is noted
// again within a minute.
func (u *TokenUses) Flush(ctx context.Context, write func(context.Context, []TokenUse) error) error {
	u.mu.Lock()
	pending := u.pending
	u.pending = nil
	u.mu.Unlock()
	if len(pending) == 0 {
		return nil
	}
	uses := make([]TokenUse, 0, len(pending))
	for _, use := range pending {
		uses = append(uses, use)
	}
	return write(ctx, uses)
}
