package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"

	"catalogd/auth"
	"catalogd/authz"
	"catalogd/catalog"
	"catalogd/internal/fault"
	"catalogd/internal/telemetry"
)

// The first principal and its role, as Apache Polaris names them.
const (
	rootName         = "root"
	serviceAdminRole = "service_admin"
	rootVariable     = "CATALOGD_ROOT_CREDENTIAL"
)

// rootCredential is the root principal's id and secret.
type rootCredential struct{ ClientID, Secret string }

// String hides the secret.
func (r rootCredential) String() string { return r.ClientID + ":***" }

func parseCredential(text string) (rootCredential, error) {
	id, secret, found := strings.Cut(text, ":")
	if !found || id == "" || secret == "" || strings.ContainsAny(text, " \t\r\n") {
		return rootCredential{}, &problem{rootVariable, "is not ID:SECRET", "both without blanks, the secret of 24 characters or more"}
	}
	return rootCredential{id, secret}, nil
}

func runBootstrap(ctx context.Context, c *call) error {
	fs := c.newFlags()
	load := c.configFlags(fs)
	path := fs.String("credential-file", "", "`file` that a new root credential is written to, mode 0600")
	if _, err := c.parse(fs, 0, 0); err != nil {
		return err
	}
	config, err := load()
	if err != nil {
		return err
	}
	fixed := c.lookup(rootVariable)
	if fixed == "" && *path == "" && !c.Terminal {
		return wrongUsage("a new secret would go nowhere: give --credential-file, set %s, or run it on a terminal", rootVariable)
	}
	a, err := newApp(ctx, config, telemetry.NewLogger(c.Err, config.Log.Level, "text"))
	if err != nil {
		return err
	}
	defer a.close()
	made, err := a.bootstrap(ctx, fixed, "")
	if err != nil {
		return err
	}
	fmt.Fprintf(c.Out, "principal %s: %s\n", rootName, made.outcome)
	if made.outcome != rootCreated && made.outcome != rootRotated {
		return nil
	}
	text := made.credential.ClientID + ":" + made.credential.Secret
	if *path != "" {
		if err := os.WriteFile(*path, []byte(text+"\n"), 0o600); err != nil {
			return fmt.Errorf("the root principal was made, but its credential could not be kept: %w; run bootstrap with %s to set another", err, rootVariable)
		}
		fmt.Fprintf(c.Out, "credential: %s\n", *path)
	} else if fixed == "" {
		fmt.Fprintf(c.Out, "credential: %s (not shown again)\n", text)
	}
	return nil
}

// The outcomes of a bootstrap.
const (
	rootCreated = "created"
	rootRotated = "its credential was changed"
	rootThere   = "there already, nothing changed"
)

type bootstrapped struct {
	credential rootCredential
	outcome    string
}

// bootstrap makes the first principal and its role. fixed is a credential that must hold afterwards ("": none is
// asked for); known is one that an earlier run made and that may still be right ("": whatever is stored stays).
func (a *app) bootstrap(ctx context.Context, fixed, known string) (bootstrapped, error) {
	b := &bootstrap{app: a, now: time.Now()}
	role, err := b.role(ctx)
	if err != nil {
		return bootstrapped{}, fmt.Errorf("make the role %s: %w", serviceAdminRole, err)
	}
	root, err := a.store.FindPrincipal(ctx, rootName)
	if fault.Is(err, fault.NotFound) {
		return b.create(ctx, role, fixed)
	}
	if err != nil {
		return bootstrapped{}, fmt.Errorf("find the principal %s: %w", rootName, err)
	}
	if err := a.store.AssignPrincipalRole(ctx, root.ID, role.ID, b.fact("assign-principal-role", rootName)); err != nil {
		return bootstrapped{}, fmt.Errorf("give %s its role: %w", rootName, err)
	}
	if fixed == "" && known == "" {
		return bootstrapped{credential: rootCredential{ClientID: root.ClientID}, outcome: rootThere}, nil
	}
	return b.settle(ctx, root, fixed, known)
}

// bootstrap carries one run.
type bootstrap struct {
	app *app
	now time.Time
}

func (b *bootstrap) fact(operation, subject string) catalog.Fact {
	return catalog.Fact{
		ID: uuid.Must(uuid.NewV7()), At: b.now, Operation: operation, Subject: subject,
		Caller: catalog.Caller{Principal: auth.Principal{Name: "system:bootstrap", Kind: auth.System}},
	}
}

// role finds or makes the administrators' role; two servers may do so at once.
func (b *bootstrap) role(ctx context.Context) (catalog.RoleRecord, error) {
	s := b.app.store
	role, err := s.FindRole(ctx, uuid.Nil, serviceAdminRole)
	if fault.Is(err, fault.NotFound) {
		role = catalog.RoleRecord{ID: uuid.Must(uuid.NewV7()), Name: serviceAdminRole, Version: 1, CreatedAt: b.now, UpdatedAt: b.now}
		err = s.CreateRole(ctx, role, b.fact("create-principal-role", serviceAdminRole))
		if fault.Is(err, fault.AlreadyExists) {
			role, err = s.FindRole(ctx, uuid.Nil, serviceAdminRole)
		}
	}
	if err != nil {
		return role, err
	}
	grant := catalog.RoleGrant{Privilege: authz.ServiceManageAccess, Kind: authz.Root, ID: authz.RootID}
	return role, s.AddGrant(ctx, role, grant, b.fact("add-grant", serviceAdminRole))
}

// secret makes a credential: the fixed one, or a new one of our own.
func (b *bootstrap) secret(ctx context.Context, fixed string) (rootCredential, auth.StoredSecret, error) {
	if fixed == "" {
		id := auth.NewClientID()
		secret, stored := b.app.secrets.Generate(id)
		return rootCredential{id, secret.Reveal()}, stored, nil
	}
	credential, err := parseCredential(fixed)
	if err != nil {
		return credential, auth.StoredSecret{}, err
	}
	stored, err := b.app.secrets.StoreChosen(ctx, auth.Secret(credential.Secret))
	if err != nil {
		return credential, stored, &problem{rootVariable, fault.Message(err), ""}
	}
	return credential, stored, nil
}

func (b *bootstrap) create(ctx context.Context, role catalog.RoleRecord, fixed string) (bootstrapped, error) {
	credential, stored, err := b.secret(ctx, fixed)
	if err != nil {
		return bootstrapped{}, err
	}
	root := catalog.PrincipalRecord{
		ID: uuid.Must(uuid.NewV7()), Name: rootName, ClientID: credential.ClientID, Kind: auth.Service, Version: 1,
		CreatedAt: b.now, UpdatedAt: b.now,
	}
	if err := b.app.store.CreatePrincipal(ctx, root, stored, b.fact("create-principal", rootName)); err != nil {
		return bootstrapped{}, fmt.Errorf("make the principal %s: %w", rootName, err)
	}
	if err := b.app.store.AssignPrincipalRole(ctx, root.ID, role.ID, b.fact("assign-principal-role", rootName)); err != nil {
		return bootstrapped{}, fmt.Errorf("give %s its role: %w", rootName, err)
	}
	return bootstrapped{credential, rootCreated}, nil
}

// settle makes the wanted credential hold, and changes nothing when it holds already.
func (b *bootstrap) settle(ctx context.Context, root catalog.PrincipalRecord, fixed, known string) (bootstrapped, error) {
	if candidate := firstOf(fixed, known); candidate != "" {
		credential, err := parseCredential(candidate)
		if err != nil && fixed != "" {
			return bootstrapped{}, err
		}
		if err == nil && credential.ClientID == root.ClientID {
			account, err := b.app.store.FindAccountByID(ctx, root.ID)
			if err != nil {
				return bootstrapped{}, fmt.Errorf("find the account of %s: %w", rootName, err)
			}
			good, err := b.app.secrets.Verify(ctx, account.Secret, auth.Secret(credential.Secret))
			if err != nil {
				return bootstrapped{}, err
			}
			if good {
				return bootstrapped{credential, rootThere}, nil
			}
		}
	}
	credential, stored, err := b.secret(ctx, fixed)
	if err != nil {
		return bootstrapped{}, err
	}
	err = b.app.store.ReplaceSecret(ctx, root.ID, credential.ClientID, stored, b.fact("reset-credentials", rootName))
	if err != nil {
		return bootstrapped{}, fmt.Errorf("change the credential of %s: %w", rootName, err)
	}
	return bootstrapped{credential, rootRotated}, nil
}
