package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/url"
	"strings"

	"catalogd/authz"
	"catalogd/internal/fault"
	"catalogd/vending"
)

// accessFor says how far a caller's credentials may reach: by grants alone, never by the route.
func (s *Service) accessFor(res Resolution, path []authz.Securable, delegated bool) vending.Access {
	switch {
	case !delegated || !s.vends(*res.Warehouse):
		return vending.None
	case allowed(res, path, authz.TableWriteData):
		return vending.ReadWrite
	case allowed(res, path, authz.TableReadData):
		return vending.Read
	}
	return vending.None
}

// vendTarget is a table, staged or not, that credentials are made for.
type vendTarget struct {
	ident    Identifier
	id       string
	location string
}

// clientConfig gives the configuration that goes with a table: what every client may know and, with access, keys.
func (s *Service) clientConfig(
	ctx context.Context, c Caller, w Warehouse, t vendTarget, access vending.Access,
) (map[string]string, *vending.Credentials, error) {
	if access == vending.None {
		p, err := s.provider(w)
		if err != nil {
			return nil, nil, err
		}
		config := map[string]string{} // never nil: some readers die of a null
		maps.Copy(config, p.ClientConfig(w.Storage))
		return config, nil, nil
	}
	creds, err := s.vend(ctx, c, w, t, access)
	if err != nil {
		return nil, nil, err
	}
	return creds.Config, &creds, nil // the same keys in both: some clients read one, some the other
}

// vend makes credentials for a table. The refresh endpoint is relative to the client's own base URI, so it holds
// behind any proxy.
func (s *Service) vend(ctx context.Context, c Caller, w Warehouse, t vendTarget, access vending.Access) (vending.Credentials, error) {
	p, err := s.provider(w)
	if err != nil {
		return vending.Credentials{}, err
	}
	creds, err := p.Vend(ctx, w.Storage, vending.Scope{
		Warehouse: w.ID.String(), Named: w.Name, Table: t.id, Principal: c.Principal.Name, Location: t.location, Access: access,
	})
	if err != nil {
		return vending.Credentials{}, fmt.Errorf("vend credentials for %s: %w", t.ident, err)
	}
	config := map[string]string{}
	maps.Copy(config, p.ClientConfig(w.Storage))
	maps.Copy(config, creds.Config)
	config["client.refresh-credentials-endpoint"] = credentialsPath(w, t.ident)
	creds.Config = config
	return creds, nil
}

func credentialsPath(w Warehouse, id Identifier) string {
	levels := make([]string, len(id.Namespace))
	for i, level := range id.Namespace {
		levels[i] = pathSegment(level)
	}
	return "v1/" + w.Prefix() + "/namespaces/" + strings.Join(levels, "%1F") + "/tables/" + pathSegment(id.Name) + "/credentials"
}

// pathSegment escapes everything but letters, digits and -_.~ so that every client sends it back unchanged.
func pathSegment(name string) string { return strings.ReplaceAll(url.QueryEscape(name), "+", "%20") }

// LoadCredentials vends for a table, or for a staged create of the caller's that has not been committed yet.
// It is the refresh route, so the delegation header is not asked for.
func (s *Service) LoadCredentials(ctx context.Context, c Caller, warehouse string, id Identifier) ([]vending.Credentials, error) {
	res, err := s.resolveTable(ctx, c, warehouse, id, need{"load-credentials", id.String(), authz.TableReadData})
	if fault.Is(err, fault.NoSuchTable) && res.Namespace != nil {
		return s.stagedCredentials(ctx, c, res, id, err)
	}
	if err != nil {
		return nil, err
	}
	access := s.accessFor(res, res.Path(), true)
	if access == vending.None {
		return []vending.Credentials{}, nil
	}
	creds, err := s.vend(ctx, c, *res.Warehouse, vendTarget{res.Table.Ident, res.Table.ID.String(), res.Table.Location}, access)
	if err != nil {
		return nil, err
	}
	return []vending.Credentials{creds}, nil
}

func (s *Service) stagedCredentials(
	ctx context.Context, c Caller, res Resolution, id Identifier, missing error,
) ([]vending.Credentials, error) {
	staged, err := s.Store.FindStagedTables(ctx, res.Warehouse.ID, id)
	if err != nil {
		return nil, fmt.Errorf("find staged creates of %s: %w", id, err)
	}
	access := s.accessFor(res, res.Path(), true)
	for _, t := range staged {
		if t.PrincipalID != c.Principal.ID || access == vending.None {
			continue
		}
		creds, err := s.vend(ctx, c, *res.Warehouse, vendTarget{id, t.UUID.String(), t.Location}, access)
		if err != nil {
			return nil, err
		}
		return []vending.Credentials{creds}, nil
	}
	return nil, missing
}

// tagParts is what shapes an answer beside the metadata file and the caller.
type tagParts struct {
	ident     Identifier
	snapshots SnapshotsMode
	delegated bool
	access    vending.Access
}

// etag names one representation of a table. With secrets in it, the tag also holds the caller and an epoch that is
// a quarter of the credentials' life: a 304 can then never keep a client on keys that are about to end.
func (s *Service) etag(c Caller, w Warehouse, metadataLocation string, t tagParts) string {
	if t.snapshots == "" {
		t.snapshots = SnapshotsAll
	}
	text := fmt.Sprintf("%s\x00%s\x00%d", metadataLocation, t.snapshots, w.Version)
	if t.delegated {
		seconds := w.Storage.SessionSeconds
		if seconds == 0 {
			seconds = vending.SessionSecondsDefault
		}
		epoch := max(1, min(int64(seconds)/4, credentialEpochSeconds))
		text += fmt.Sprintf("\x00%q\x00%s\x00%s\x00%d", t.ident, c.Principal.ID, t.access, s.Now().Unix()/epoch)
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}
