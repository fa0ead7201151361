package iceio

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"

	"catalogd/internal/fault"
	"catalogd/vending"
)

// ownKeys is a provider that may lend the server's own keys where a store has no token service.
type ownKeys interface {
	OwnCredentials(ctx context.Context, p vending.Profile, s vending.Scope) (vending.Credentials, error)
}

// keys signs each request with credentials for one scope. The provider answers from its cache while half of a
// session's life is left, so work that lasts longer than a session changes over by itself.
type keys struct {
	provider vending.Provider
	profile  vending.Profile
	scope    vending.Scope
}

// Retrieve gives the keys for one request.
func (k keys) Retrieve(ctx context.Context) (aws.Credentials, error) {
	c, err := k.vend(ctx)
	if err != nil {
		return aws.Credentials{}, err
	}
	return aws.Credentials{
		AccessKeyID: c.Config["s3.access-key-id"], SecretAccessKey: c.Config["s3.secret-access-key"],
		SessionToken: c.Config["s3.session-token"], Source: "catalogd",
	}, nil
}

func (k keys) vend(ctx context.Context) (vending.Credentials, error) {
	if k.provider.CanVend(k.profile) {
		return k.provider.Vend(ctx, k.profile, k.scope)
	}
	if own, ok := k.provider.(ownKeys); ok {
		return own.OwnCredentials(ctx, k.profile, k.scope)
	}
	return vending.Credentials{}, fault.New(fault.Internal, "there are no keys for %s", k.scope.Location)
}
