package store

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"time"

	"github.com/google/uuid"

	"catalogd/auth"
)

// callerState begins a column with all that makes a principal's tokens count or not (auth.CallerState), NULL when there
// is no such principal. The principal's id and `) AS caller` must follow. Whatever is read here moves the access epoch.
const callerState = `(
        SELECT json_build_object(
            'Algorithm', principal_secrets.algorithm, 'Secret', encode(principal_secrets.secret, 'base64'),
            'NotBefore', who.tokens_not_before,
            'Revoked', (SELECT json_agg(revoked_tokens.token_id ORDER BY revoked_tokens.token_id) FROM revoked_tokens
                        WHERE revoked_tokens.principal_id = who.id AND revoked_tokens.expires_at > now()),
            'Personal', (SELECT json_agg(json_build_object(
                             'ID', personal_tokens.id, 'Secret', encode(personal_tokens.secret, 'base64'),
                             'Previous', encode(personal_tokens.previous_secret, 'base64'),
                             'PreviousUntil', personal_tokens.previous_until,
                             'ExpiresAt', personal_tokens.expires_at, 'Networks', personal_tokens.networks)
                             ORDER BY personal_tokens.id)
                         FROM personal_tokens
                         WHERE personal_tokens.principal_id = who.id AND personal_tokens.expires_at > now()),
            'Keys', (SELECT json_agg(json_build_object('ID', principal_keys.kid, 'EndsAt', principal_keys.ends_at))
                     FROM principal_keys WHERE principal_keys.principal_id = who.id),
            'Network', (SELECT json_build_object('Allowed', network_policies.allowed, 'Blocked', network_policies.blocked)
                        FROM network_policies WHERE network_policies.principal_id = who.id),
            'Identities', (SELECT json_agg(json_build_object('Issuer', federated_identities.issuer, 'Subject', federated_identities.subject)
                                            ORDER BY federated_identities.issuer, federated_identities.subject)
                           FROM federated_identities WHERE federated_identities.principal_id = who.id),
            'ServerNetwork', (SELECT json_build_object('Allowed', network_policies.allowed, 'Blocked', network_policies.blocked)
                              FROM network_policies WHERE network_policies.principal_id IS NULL))
        FROM principals AS who
        LEFT JOIN principal_secrets ON principal_secrets.principal_id = who.id
        WHERE who.id = `

// callerRow is the column. Stored forms of secrets end here: their marks alone are kept.
type callerRow struct {
	Algorithm              string
	Secret                 []byte
	NotBefore              time.Time
	Revoked                []string
	Personal               []personalRow
	Keys                   []auth.LiveKey
	Identities             []auth.IdentityLink
	Network, ServerNetwork auth.NetworkPolicy
}

type personalRow struct {
	ID               uuid.UUID
	Secret, Previous []byte
	PreviousUntil    time.Time
	ExpiresAt        time.Time
	Networks         []netip.Prefix
}

// decodeCaller reads the column; nil for NULL.
func decodeCaller(raw []byte) (*auth.CallerState, error) {
	if raw == nil {
		return nil, nil
	}
	var row callerRow
	if err := json.Unmarshal(raw, &row); err != nil {
		return nil, fmt.Errorf("decode what is known of the caller: %w", err)
	}
	state := &auth.CallerState{
		NotBefore: row.NotBefore, Revoked: row.Revoked, Keys: row.Keys, Identities: row.Identities, Network: row.Network, ServerNetwork: row.ServerNetwork,
	}
	if row.Secret != nil {
		state.SecretMark = auth.StoredSecret{Algorithm: row.Algorithm, Form: row.Secret}.Mark()
	}
	for _, p := range row.Personal {
		live := auth.LiveToken{ID: p.ID, SecretMark: personalMark(p.Secret), ExpiresAt: p.ExpiresAt, Networks: p.Networks}
		if p.Previous != nil {
			live.PreviousMark, live.PreviousUntil = personalMark(p.Previous), p.PreviousUntil
		}
		state.Personal = append(state.Personal, live)
	}
	return state, nil
}

// personalMark is the mark of a personal access token's secret, which the server always makes itself.
func personalMark(form []byte) string {
	return auth.StoredSecret{Algorithm: auth.AlgorithmHMAC, Form: form}.Mark()
}
