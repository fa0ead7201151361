package auth

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"catalogd/internal/fault"
)

// fakeStore keeps accounts and keys in memory and counts what it is asked.
type fakeStore struct {
	mu       sync.Mutex
	accounts map[uuid.UUID]Account
	states   map[uuid.UUID]CallerState // of those that have one; the mark of the secret is the account's
	personal map[uuid.UUID]PersonalAccount
	keys     []StoredKey
	keyReads int
	finds    int
	clients  map[uuid.UUID][]ClientKey
	spent    map[string]bool
	problem  error // every call fails with it
}

func (s *fakeStore) find(match func(Account) bool) (Account, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finds++
	if s.problem != nil {
		return Account{}, s.problem
	}
	for _, a := range s.accounts {
		if match(a) {
			a.State = &CallerState{}
			if state, ok := s.states[a.ID]; ok {
				a.State = &state
			}
			a.State.SecretMark = a.Secret.Mark()
			for _, k := range s.clients[a.ID] {
				a.State.Keys = append(a.State.Keys, LiveKey{ID: k.ID, EndsAt: k.EndsAt})
			}
			for id, p := range s.personal {
				if p.ID == a.ID {
					live := LiveToken{ID: id, SecretMark: hmacMark(p.Form), ExpiresAt: p.ExpiresAt, PreviousUntil: p.PreviousUntil}
					if p.Previous != nil {
						live.PreviousMark = hmacMark(p.Previous)
					}
					a.State.Personal = append(a.State.Personal, live)
				}
			}
			return a, nil
		}
	}
	return Account{}, fault.New(fault.NotFound, "no such account")
}

func (s *fakeStore) FindAccountByClientID(_ context.Context, id string) (Account, error) {
	return s.find(func(a Account) bool { return a.ClientID == id })
}

func (s *fakeStore) FindAccountByID(_ context.Context, id uuid.UUID) (Account, error) {
	return s.find(func(a Account) bool { return a.ID == id })
}

func (s *fakeStore) FindAccountByName(_ context.Context, name string) (Account, error) {
	return s.find(func(a Account) bool { return a.Name == name })
}

func (s *fakeStore) FindPersonalToken(_ context.Context, id uuid.UUID) (PersonalAccount, error) {
	p, ok := s.personal[id]
	if !ok {
		return PersonalAccount{}, fault.New(fault.NotFound, "no such token")
	}
	a, err := s.FindAccountByID(context.Background(), p.ID)
	p.Account = a
	return p, err
}

func (s *fakeStore) SigningKeys(context.Context) ([]StoredKey, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keyReads++
	return append([]StoredKey(nil), s.keys...), s.problem
}

func (s *fakeStore) AddSigningKey(_ context.Context, k StoredKey) ([]StoredKey, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	active := func(other StoredKey) bool { return other.Algorithm == k.Algorithm && other.RetiredAt.IsZero() }
	if s.problem == nil && !slices.ContainsFunc(s.keys, active) {
		s.keys = append(s.keys, k)
	}
	return append([]StoredKey(nil), s.keys...), s.problem
}

func (s *fakeStore) SucceedSigningKey(_ context.Context, old string, k StoredKey) ([]StoredKey, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.keys {
		if s.problem == nil && s.keys[i].KID == old && s.keys[i].RetiredAt.IsZero() {
			s.keys[i].RetiredAt = k.SignsFrom
			s.keys = append(s.keys, k)
			break
		}
	}
	return append([]StoredKey(nil), s.keys...), s.problem
}

func hmacMark(form []byte) string { return StoredSecret{Algorithm: AlgorithmHMAC, Form: form}.Mark() }

func (s *fakeStore) ClientKeys(_ context.Context, principal uuid.UUID) ([]ClientKey, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finds++
	return s.clients[principal], s.problem
}

func (s *fakeStore) SpendAssertion(_ context.Context, principal uuid.UUID, mark []byte, _ time.Time) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := principal.String() + string(mark)
	fresh := !s.spent[key]
	s.spent[key] = true
	return fresh && s.problem == nil, s.problem
}

// bench is a token route over fakes with a clock that tests move.
type bench struct {
	store   *fakeStore
	ring    *Ring
	secrets *Secrets
	tokens  *Tokens
	now     time.Time
	denials []LoginDenial
}

func newBench(t *testing.T) *bench {
	t.Helper()
	ring, err := NewRing(NewRingKey())
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{
		store: &fakeStore{
			accounts: map[uuid.UUID]Account{}, states: map[uuid.UUID]CallerState{}, personal: map[uuid.UUID]PersonalAccount{},
			clients: map[uuid.UUID][]ClientKey{}, spent: map[string]bool{},
		}, ring: ring, secrets: NewSecrets(ring),
		now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
	}
	b.tokens = b.server()
	return b
}

// server makes one more server over the same database, with nothing read yet.
func (b *bench) server() *Tokens {
	clock := func() time.Time { return b.now }
	return NewTokens(TokensConfig{
		Accounts: b.store, Keys: NewKeys(b.store, b.ring, clock), Secrets: b.secrets, Now: clock, ClientKeys: b.store,
		Denials: func(_ context.Context, d LoginDenial) { b.denials = append(b.denials, d) },
	})
}

// account adds a principal with a generated secret.
func (b *bench) account(name string, roles ...string) (Account, Secret) {
	a := Account{ID: uuid.New(), Name: name, ClientID: NewClientID(), Kind: Service, Roles: roles}
	var secret Secret
	secret, a.Secret = b.secrets.Generate(a.ClientID)
	b.store.accounts[a.ID] = a
	return a, secret
}
