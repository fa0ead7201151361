package store

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"catalogd/auth"
	"catalogd/authz"
	"catalogd/catalog"
	"catalogd/catalog/commit"
	"catalogd/internal/fault"
	"catalogd/internal/pgserver/pgtest"
)

// Turns of the two tests here, fewer where the machine does not get there in time: the log says how many.
const (
	replicaCommits  = 10_000 // as the field case has it
	replicaCrowded  = 1_000  // of these, with others who ask meanwhile
	replicaGrants   = 300    // each taken back
	replicaPatience = 20 * time.Second
)

// newReplicas gives two servers that share a database and an object store and nothing else, with the tables of newCalls.
func newReplicas(t *testing.T) [2]*calls {
	t.Helper()
	url := pgtest.Database(t)
	near := newCalls(t, openAt(t, Config{URL: url}))
	far := &calls{store: openAt(t, Config{URL: url}), files: near.files}
	far.Service = far.server()
	return [2]*calls{near, far}
}

// setTableProperty commits to table t.
func (c *calls) setTableProperty(key, value string) (catalog.LoadedTable, error) {
	r, err := commit.DecodeRequest([]byte(fmt.Sprintf(
		`{"requirements":[],"updates":[{"action":"set-properties","updates":{%q:%q}}]}`, key, value)))
	if err != nil {
		return catalog.LoadedTable{}, err
	}
	return c.CommitTable(context.Background(), callsCaller, catalog.CommitTableRequest{Warehouse: "w", Ident: ident("t"), Change: r})
}

// What one server has acknowledged is what the other one shows to whoever asks after that, and a tag of before is not called
// unchanged there. Meanwhile both are asked without rest: an answer that is on its way is not given to somebody who came later.
func TestField_C195_WhatOneServerAcknowledgedTheOtherShows(t *testing.T) {
	t.Parallel()
	servers := newReplicas(t)
	// few earlier versions are listed, so that the metadata does not grow with the turns
	before, err := servers[0].setTableProperty("write.metadata.previous-versions-max", "1")
	if err != nil {
		t.Fatal(err)
	}
	var acknowledged atomic.Int64 // the number of the pointer
	acknowledged.Store(int64(commit.FileNumber(before.MetadataLocation)))
	stop := askWithoutRest(t, servers, &acknowledged)
	defer stop()
	begun, turns := time.Now(), 0
	defer func() { t.Logf("%d commits in %s", turns, time.Since(begun)) }()
	for turn := range replicaCommits {
		if turn == replicaCrowded {
			stop()
		}
		if time.Since(begun) > replicaPatience {
			break
		}
		writer, other := servers[turn%2], servers[1-turn%2]
		committed, err := writer.setTableProperty("n", fmt.Sprint(turn))
		if err != nil {
			t.Fatalf("commit %d: %v", turn, err)
		}
		acknowledged.Store(int64(commit.FileNumber(committed.MetadataLocation)))
		got, err := other.load("t", before.ETag)
		if err != nil || got.NotModified || got.MetadataLocation != committed.MetadataLocation ||
			!strings.Contains(string(got.Metadata), fmt.Sprintf(`"n":"%d"`, turn)) {
			t.Fatalf("after commit %d of %s the other server answered %s (unchanged: %v), %v",
				turn, committed.MetadataLocation, got.MetadataLocation, got.NotModified, err)
		}
		before, turns = committed, turn+1
		if turn%10 > 0 {
			continue
		}
		if got, err = other.load("t", committed.ETag); err != nil || !got.NotModified {
			t.Fatalf("commit %d: its own tag is not known to the other server: %v", turn, err)
		}
	}
}

// askWithoutRest loads table t from each server, till the function that it gives is called: nothing older than what was acknowledged
// before the question is right.
func askWithoutRest(t *testing.T, servers [2]*calls, acknowledged *atomic.Int64) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for i, server := range servers {
		all.Go(func() {
			var tag string
			var last int64
			for ctx.Err() == nil {
				least := acknowledged.Load()
				got, err := server.load("t", tag)
				if err != nil {
					t.Errorf("server %d: %v", i, err)
					return
				}
				if !got.NotModified {
					tag, last = got.ETag, int64(commit.FileNumber(got.MetadataLocation))
				}
				if last < least {
					t.Errorf("server %d showed pointer %d (unchanged: %v) after %d was acknowledged", i, last, got.NotModified, least)
					return
				}
			}
		})
	}
	return func() { cancel(); all.Wait() }
}

// A grant is used, and its taking back felt, by the next request at the other server, with a tag that is good or without one.
func TestField_C195_WhatOneServerGrantsOrRevokesTheOtherDoesNext(t *testing.T) {
	t.Parallel()
	servers := newReplicas(t)
	manager, reader := servers[0].withRole(t, "manager"), servers[0].withRole(t, "reader")
	staff := &staff{servers[0].store, t}
	w, err := servers[0].store.FindWarehouse(t.Context(), "w")
	staff.must(err)
	managers, err := servers[0].store.FindRole(t.Context(), w.ID, "manager")
	staff.must(err)
	staff.must(servers[0].store.AddGrant(t.Context(), managers,
		catalog.RoleGrant{Privilege: authz.CatalogManageAccess, Kind: authz.Catalog, ID: w.ID}, adminFact("add-grant")))
	loaded, err := servers[0].load("t")
	staff.must(err)

	role := catalog.RoleName{Warehouse: "w", Name: "reader"}
	targets := []catalog.GrantTarget{
		{Privilege: authz.TableReadData, Kind: authz.Table, Namespace: catalog.Namespace{"a"}, Name: "t"},
		{Privilege: authz.TableReadData, Kind: authz.Namespace, Namespace: catalog.Namespace{"a"}},
		{Privilege: authz.TableReadData, Kind: authz.Catalog},
	}
	begun, turns := time.Now(), 0
	defer func() { t.Logf("%d grants and revokes in %s", turns, time.Since(begun)) }()
	for turn := range replicaGrants {
		if time.Since(begun) > replicaPatience {
			break
		}
		giver, other, target := servers[turn%2], servers[1-turn%2], targets[turn%len(targets)]
		read := func(tags ...string) (catalog.LoadedTable, error) {
			return other.LoadTable(t.Context(), reader, catalog.LoadTableRequest{Warehouse: "w", Ident: ident("t"), IfNoneMatch: tags})
		}
		staff.must(giver.Grant(t.Context(), manager, role, target))
		if got, err := read(); err != nil || got.MetadataLocation != loaded.MetadataLocation {
			t.Fatalf("turn %d: after a grant on the %s: %v", turn, target.Kind, err)
		}
		if got, err := read(loaded.ETag); err != nil || !got.NotModified {
			t.Fatalf("turn %d: a good tag after a grant on the %s: %v", turn, target.Kind, err)
		}
		staff.must(giver.Revoke(t.Context(), manager, role, target))
		if got, err := read(loaded.ETag); !fault.Is(err, fault.Forbidden) {
			t.Fatalf("turn %d: after the revoke on the %s: unchanged %v, %v", turn, target.Kind, got.NotModified, err)
		}
		turns = turn + 1
	}
}

// withRole makes a principal, who has a catalog role of his own name without grants in warehouse w.
func (c *calls) withRole(t *testing.T, name string) catalog.Caller {
	t.Helper()
	s := &staff{c.store, t}
	w, err := c.store.FindWarehouse(t.Context(), "w")
	s.must(err)
	p, holder := s.principal(name), s.role(uuid.Nil, name)
	s.assign(p, holder)
	s.must(c.store.AssignCatalogRole(t.Context(), holder.ID, s.role(w.ID, name).ID, adminFact("assign")))
	return catalog.Caller{RequestID: name, Principal: auth.Principal{ID: p.ID, Name: name, Kind: auth.Service, Roles: auth.RoleScope{All: true}}}
}
