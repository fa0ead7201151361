package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"

	"catalogd/vending"
)

// loadCompose reads the compose file as the compose command does, every profile included.
func loadCompose(t *testing.T) *types.Project {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{"../../docker-compose.yml"}, cli.WithProfiles([]string{"*"}))
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return project
}

// TestCompose_ServicesMatchTheProgram holds the compose file against the program: a renamed setting, command or flag
// must not be found out by the first person who starts it.
func TestCompose_ServicesMatchTheProgram(t *testing.T) {
	project := loadCompose(t)
	ours := 0
	for name, service := range project.Services {
		if service.Image != "catalogd" {
			continue
		}
		ours++
		for variable := range service.Environment {
			if strings.HasPrefix(variable, "CATALOGD_") && !isVariable(variable) {
				t.Errorf("%s: no setting is called %s", name, variable)
			}
		}
		var out, errs strings.Builder
		args := append(slices.Clone([]string(service.Command)), "--help")
		if code := run(t.Context(), &call{Args: args, Out: &out, Err: &errs}); code != exitOK {
			t.Errorf("%s: `catalogd %s` is refused: %s", name, strings.Join(service.Command, " "), errs.String())
		}
	}
	if ours != 3 {
		t.Errorf("%d services run catalogd, want bootstrap, catalogd and warehouse", ours)
	}
}

func isVariable(name string) bool {
	return slices.Contains(reservedVariables, name) ||
		slices.ContainsFunc(settings, func(s setting) bool { return envName(s.key) == name })
}

// TestCompose_ServerConfigurationIsAccepted loads the server's environment as the server would.
func TestCompose_ServerConfigurationIsAccepted(t *testing.T) {
	service := loadCompose(t).Services["catalogd"]
	var environ []string
	for name, value := range service.Environment {
		if value != nil {
			environ = append(environ, name+"="+*value)
		}
	}
	config, err := loadConfig(inputs{environ: environ})
	if err != nil {
		t.Fatal(err)
	}
	if config.Secrets.Key != "file:/secrets/secrets.key" || !config.Database.Migrate || config.Storage.AllowFile {
		t.Errorf("key %q, migrate %v, file warehouses %v", config.Secrets.Key, config.Database.Migrate, config.Storage.AllowFile)
	}
}

// TestCompose_NothingIsOpenToTheNetwork: the store's keys are public, so every published port is on loopback, and
// the ops listener is not published at all.
func TestCompose_NothingIsOpenToTheNetwork(t *testing.T) {
	for name, service := range loadCompose(t).Services {
		for _, port := range service.Ports {
			if port.HostIP != "127.0.0.1" {
				t.Errorf("%s publishes %s on %q", name, port.Published, port.HostIP)
			}
			if port.Target == 8182 {
				t.Errorf("%s publishes the ops listener", name)
			}
		}
		if service.Privileged {
			t.Errorf("%s is privileged", name)
		}
	}
}

// TestCompose_StartsInOrder: the schema is there before the server, the server before the warehouse, the warehouse
// before an engine.
func TestCompose_StartsInOrder(t *testing.T) {
	project := loadCompose(t)
	for _, want := range []struct{ service, needs, condition string }{
		{"bootstrap", "postgres", types.ServiceConditionHealthy},
		{"bootstrap", "key", types.ServiceConditionCompletedSuccessfully},
		{"catalogd", "bootstrap", types.ServiceConditionCompletedSuccessfully},
		{"catalogd", "bucket", types.ServiceConditionCompletedSuccessfully},
		{"warehouse", "catalogd", types.ServiceConditionHealthy},
		{"spark", "warehouse", types.ServiceConditionCompletedSuccessfully},
		{"trino", "warehouse", types.ServiceConditionCompletedSuccessfully},
	} {
		if got := project.Services[want.service].DependsOn[want.needs].Condition; got != want.condition {
			t.Errorf("%s waits for %s until %q, want %q", want.service, want.needs, got, want.condition)
		}
	}
	for name, profile := range map[string]string{"spark": "spark", "trino": "trino"} {
		if got := project.Services[name].Profiles; !slices.Equal(got, []string{profile}) {
			t.Errorf("%s is in the profiles %v, want %s alone", name, got, profile)
		}
		if got := project.Services[name].NetworkMode; got != "service:store" {
			t.Errorf("%s has the network %q: then the endpoint that clients are told is wrong for it", name, got)
		}
	}
}

// TestCompose_StoreAndWarehouseFit: role, bucket and keys of the warehouse are the store's.
func TestCompose_StoreAndWarehouseFit(t *testing.T) {
	project := loadCompose(t)
	var profile vending.Profile
	if err := json.Unmarshal([]byte(project.Configs["lake"].Content), &profile); err != nil {
		t.Fatal(err)
	}
	store, err := os.ReadFile("../../e2e/s3/iam.json")
	if err != nil {
		t.Fatal(err)
	}
	environment := project.Services["catalogd"].Environment
	for what, text := range map[string]string{
		"role": profile.RoleARN, "access key": *environment["AWS_ACCESS_KEY_ID"], "secret": *environment["AWS_SECRET_ACCESS_KEY"],
	} {
		if text == "" || !strings.Contains(string(store), `"`+text+`"`) {
			t.Errorf("the %s %q is not in the store's iam.json", what, text)
		}
	}
	if profile.StorageType != "S3" || profile.Endpoint != "http://127.0.0.1:8333" || profile.EndpointInternal != "http://store:8333" {
		t.Errorf("the warehouse's storage is %+v", profile)
	}
	for name, service := range project.Services {
		if service.Build == nil {
			continue
		}
		if _, err := os.Stat(filepath.Join(service.Build.Context, "Dockerfile")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
