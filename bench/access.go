package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// openTag builds a catalogd that checks nobody and allows everything; openName says what it is.
const (
	openTag  = "openbench"
	openName = "a build that checks nobody"
)

// measureAccess compares the token route with a bare handler, and loads with those of a build that checks nobody: what verifying a bearer
// and deciding access costs.
func measureAccess() ([]figure, error) {
	dir, err := serverFolder()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	open, err := buildOpen(dir)
	if err != nil {
		return nil, err
	}
	s, err := startServer(dir)
	if s != nil {
		defer s.close()
	}
	if err != nil {
		return nil, err
	}
	b := &restBench{server: s, seconds: restSeconds * time.Second, postgresPID: s.postgres.PID()}
	if err := b.settings(); err != nil {
		return nil, err
	}
	if err := s.prepare(); err != nil {
		return nil, err
	}
	for i := range 16 {
		if err := s.createTable(lakeName, namespaceName, "t"+strconv.Itoa(i)); err != nil {
			return nil, err
		}
	}
	for _, step := range []func() error{b.tokenRoute, func() error { return b.checks(open) }} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return b.figures, nil
}

// tokenRoute is client_credentials of a principal with a generated secret.
func (b *restBench) tokenRoute() error {
	raw, err := b.call("POST", "/api/management/v1/principals", `{"principal":{"name":"etl"}}`)
	if err != nil {
		return err
	}
	var made struct {
		Credentials struct{ ClientID, ClientSecret string } `json:"credentials"`
	}
	if err := json.Unmarshal(raw, &made); err != nil {
		return err
	}
	address, bareCommand, err := startBare(b.postgres.URL(), b.dir)
	if err != nil {
		return err
	}
	defer end(bareCommand, syscall.SIGTERM)
	b.bareAddress, b.barePID, b.baseline = address, bareCommand.Process.Pid, bareName
	connection, err := pgx.Connect(context.Background(), b.postgres.URL())
	if err != nil {
		return err
	}
	defer connection.Close(context.Background())
	if err := connection.QueryRow(context.Background(), `SELECT id::text FROM catalogd.tables WHERE name = 't7'`).Scan(&b.someID); err != nil {
		return err
	}
	form := url.Values{
		"grant_type": {"client_credentials"}, "client_id": {made.Credentials.ClientID}, "client_secret": {made.Credentials.ClientSecret}, "scope": {"catalog"},
	}.Encode()
	login := shot{formRequest("/api/catalog/v1/oauth/tokens", form), 200}
	ours := func(d time.Duration) (measured, error) {
		return fire(b.address, connectionsOfLoad, d, func(int, int) shot { return login })
	}
	warm, err := ours(b.seconds / 4)
	if err != nil {
		return err
	}
	if err := b.teach("token", 200, "", warm.bytes); err != nil {
		return err
	}
	one := shot{request("GET", "/answers/token/"+b.someID, nil, nil), 200}
	return b.compare("token route, client_credentials", ours, func(d time.Duration) (measured, error) {
		return fire(b.bareAddress, connectionsOfLoad, d, func(int, int) shot { return one })
	})
}

// formRequest spells a form as clients send it.
func formRequest(path, form string) []byte {
	return fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: bench\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%s", path, len(form), form)
}

// checks is loadTable on the same database by both builds.
func (b *restBench) checks(binary string) error {
	ops, err := freeAddress()
	if err != nil {
		return err
	}
	cmd, address, err := b.serve(binary, append(b.environment[:len(b.environment):len(b.environment)], "CATALOGD_OPS_LISTEN="+ops))
	if cmd != nil {
		defer end(cmd, syscall.SIGTERM)
	}
	if err != nil {
		return err
	}
	b.bareAddress, b.barePID, b.baseline = address, cmd.Process.Pid, openName
	header := map[string]string{"Authorization": "Bearer " + b.token}
	shots := make([]shot, 16)
	for i := range shots {
		shots[i] = shot{request("GET", tablePath(lakeName, namespaceName, "t"+strconv.Itoa(i)), header, nil), 200}
	}
	load := func(address string) func(time.Duration) (measured, error) {
		return func(d time.Duration) (measured, error) {
			return fire(address, connectionsOfLoad, d, func(connection, turn int) shot { return shots[(connection+turn)%len(shots)] })
		}
	}
	for _, at := range []string{b.address, b.bareAddress} {
		if _, err := load(at)(b.seconds / 4); err != nil {
			return err
		}
	}
	return b.compare("load, checked", load(b.address), load(b.bareAddress))
}
