package auth

import (
	"crypto/sha256"
	"sync"
	"time"
)

// checkedTokensMax bounds the memory of good tokens: about 2 MB.
const checkedTokensMax = 4096

// checkedTokens remembers tokens that were found good, by their hash, so that the signature of each is checked once
// and not with every request. Time and key are looked at each time.
type checkedTokens struct {
	mu     sync.RWMutex
	tokens map[[sha256.Size]byte]checkedToken
}

type checkedToken struct {
	principal Principal
	kid       string // "" of a personal access token
	expiresAt time.Time
}

func (c *checkedTokens) find(token string, keys *Keys, now time.Time) (Principal, bool) {
	if len(token) > tokenBytesMax {
		return Principal{}, false
	}
	c.mu.RLock()
	found, ok := c.tokens[sha256.Sum256([]byte(token))]
	c.mu.RUnlock()
	if !ok || !now.Before(found.expiresAt) || found.kid != "" && !keys.has(found.kid) {
		return Principal{}, false
	}
	// The caller gets its own lists of roles.
	found.principal.Roles = found.principal.Roles.clone()
	return found.principal, true
}

func (c *checkedTokens) keep(token string, t checkedToken) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tokens == nil || len(c.tokens) >= checkedTokensMax {
		c.tokens = make(map[[sha256.Size]byte]checkedToken)
	}
	t.principal.Roles = t.principal.Roles.clone()
	c.tokens[sha256.Sum256([]byte(token))] = t
}
