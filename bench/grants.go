package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"catalogd/store/crowd"
)

// Whose requests are measured: 10 grants in a small database, and these with nearColleagues and farColleagues roles of
// the crowd more, 1,000 grants in all, in a database of 1,000,000.
const (
	grantsRounds   = 5
	somebodyName   = "somebody"
	heavyName      = "heavy" // 100,000 grants, by as many roles of the crowd as that takes
	pickedName     = "picked"
	oneTable       = "t0"
	nearColleagues = 4
	farColleagues  = 6
	nearHeavy      = 370
	farHeavy       = 640
	smallName      = "10 grants, small database"
)

// grantsSide is one database with a server that checks and one that allows everything.
type grantsSide struct {
	*server
	database     *pgx.Conn // of this program, for what is moved under the servers
	openAddress  string
	openCommand  *exec.Cmd
	bearer       string // somebody's
	grants, held int
	heavyBearer  string
}

// measureGrants compares what somebody with 1,000 grants in a database of 1,000,000 waits for with what somebody with 10
// grants waits for, in a small one: while a decision is kept, and when each request decides anew.
func measureGrants() ([]figure, error) {
	dir, err := serverFolder()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	open, err := buildOpen(dir)
	if err != nil {
		return nil, err
	}
	b := &restBench{seconds: restSeconds * time.Second}
	if err := b.settings(); err != nil {
		return nil, err
	}
	var sides [2]*grantsSide
	for i, size := range []crowd.Size{{}, crowd.Million} {
		if sides[i], err = startGrantsSide(filepath.Join(dir, strconv.Itoa(i)), open, size); sides[i] != nil {
			defer sides[i].close()
		}
		if err != nil {
			return nil, err
		}
	}
	for _, step := range []func(small, large *grantsSide) error{b.decisions, b.storm, b.heavy} {
		if err := step(sides[0], sides[1]); err != nil {
			return nil, err
		}
	}
	return b.figures, nil
}

// buildOpen makes a catalogd that checks nobody and allows everything, and gives where it is.
func buildOpen(dir string) (string, error) {
	open := filepath.Join(dir, "catalogd-open")
	if out, err := exec.Command("go", "build", "-tags", openTag, "-o", open, "./cmd/catalogd").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build without checks: %w\n%s", err, out)
	}
	return open, nil
}

func startGrantsSide(dir, open string, size crowd.Size) (*grantsSide, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	s := &grantsSide{}
	var err error
	if s.server, err = startServer(dir); err != nil {
		return s, err
	}
	if err := s.fill(size); err != nil {
		return s, err
	}
	ops, err := freeAddress()
	if err != nil {
		return s, err
	}
	s.openCommand, s.openAddress, err = s.serve(open, append(slices.Clone(s.environment), "CATALOGD_OPS_LISTEN="+ops))
	return s, err
}

func (s *grantsSide) close() {
	if s.database != nil {
		s.database.Close(context.Background())
	}
	if s.openCommand != nil {
		end(s.openCommand, syscall.SIGTERM)
	}
	if s.server != nil {
		s.server.close()
	}
}

// connect gives a connection that waits for no disk: what it moves is there for others at once.
func (s *grantsSide) connect() (*pgx.Conn, error) {
	config, err := pgx.ParseConfig(s.postgres.URL())
	if err != nil {
		return nil, err
	}
	config.RuntimeParams["synchronous_commit"] = "off"
	return pgx.ConnectConfig(context.Background(), config)
}

// fill makes what is asked for, through the server where it is loaded, and the crowd around it.
func (s *grantsSide) fill(size crowd.Size) (err error) {
	if err := s.prepare(); err != nil {
		return err
	}
	if _, err := s.call("POST", "/api/catalog/v1/"+lakeName+"/namespaces", fmt.Sprintf(`{"namespace":[%q]}`, pickedName)); err != nil {
		return err
	}
	if err := s.createTable(lakeName, namespaceName, oneTable); err != nil {
		return err
	}
	filling, err := s.connect()
	if err != nil {
		return err
	}
	defer filling.Close(context.Background())
	ctx, began := context.Background(), time.Now()
	if _, err := filling.Exec(ctx, `
INSERT INTO catalogd.tables (id, warehouse_id, namespace_id, kind, name, table_uuid, location, metadata_location, format_version, version, created_at, updated_at)
SELECT gen_random_uuid(), warehouse_id, namespaces.id, 'table', 'table_' || lpad(n::text, 6, '0'), gen_random_uuid(), '', '', 2, 1, now(), now()
FROM catalogd.namespaces JOIN catalogd.warehouses ON warehouses.id = warehouse_id CROSS JOIN generate_series(1, 1000) AS n
WHERE warehouses.name = $1 AND levels[1] IN ($2, $3)`, lakeName, crowdName, pickedName); err != nil {
		return err
	}
	if s.bearer, err = s.newcomer(somebodyName); err != nil {
		return err
	}
	if s.heavyBearer, err = s.newcomer(heavyName); err != nil {
		return err
	}
	large := size != crowd.Size{}
	if err := crowd.Fill(ctx, filling, size); err != nil {
		return err
	}
	for name, roles := range map[string][2]int{somebodyName: {nearColleagues, farColleagues}, heavyName: {nearHeavy, farHeavy}} {
		who := somebody(name)
		if err := crowd.Introduce(ctx, filling, who); err != nil {
			return err
		}
		if !large {
			continue
		}
		if err := crowd.Join(ctx, filling, who, roles[0], roles[1]); err != nil {
			return err
		}
	}
	// Roles and grants of the two came last, without triggers.
	for _, statement := range []string{moveEpoch, `VACUUM ANALYZE`} {
		if _, err := filling.Exec(ctx, statement); err != nil {
			return err
		}
	}
	if s.grants, s.held, err = crowd.Count(ctx, filling, somebody(somebodyName)); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "  %d grants, %d of them somebody's, in %.0f s\n", s.grants, s.held, time.Since(began).Seconds())
	s.database, err = s.connect()
	return err
}

// moveEpoch is what any change of anybody's rights does to everybody's kept decisions.
const moveEpoch = `UPDATE catalogd.access_epoch SET value = value + 1`

func somebody(name string) crowd.Somebody {
	return crowd.Somebody{Principal: name, Warehouse: lakeName, Listed: crowdName, Picked: pickedName, Holding: namespaceName, Table: oneTable}
}

// newcomer makes a principal and signs it in.
func (s *grantsSide) newcomer(name string) (bearer string, err error) {
	raw, err := s.call("POST", "/api/management/v1/principals", fmt.Sprintf(`{"principal":{"name":%q}}`, name))
	if err != nil {
		return "", err
	}
	var made struct {
		Credentials struct{ ClientID, ClientSecret string } `json:"credentials"`
	}
	if err := json.Unmarshal(raw, &made); err != nil {
		return "", err
	}
	return s.signIn(made.Credentials.ClientID, made.Credentials.ClientSecret)
}

// signIn gives a token with all roles.
func (s *server) signIn(id, secret string) (token string, err error) {
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {id}, "client_secret": {secret}, "scope": {"PRINCIPAL_ROLE:ALL"}}
	answer, err := http.PostForm("http://"+s.address+"/api/catalog/v1/oauth/tokens", form)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	var given struct {
		AccessToken string `json:"access_token"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&given); err != nil || given.AccessToken == "" {
		return "", fmt.Errorf("no token: %s, %w", answer.Status, err)
	}
	return given.AccessToken, nil
}

// decided are the requests that are measured.
var decided = []struct {
	name, method, path string
	status             int
	open               bool // who is allowed everything is answered the same
}{
	{"HEAD of one table", "HEAD", tablePath(lakeName, namespaceName, oneTable), 204, true},
	{"config", "GET", "/api/catalog/v1/config?warehouse=" + lakeName, 200, true},
	{"load", "GET", tablePath(lakeName, namespaceName, oneTable), 200, true},
	{"list of 1,000 tables", "GET", strings.TrimSuffix(tablePath(lakeName, crowdName, ""), "/"), 200, true},
	{"list of 7 tables of 1,000, by grants on them", "GET", strings.TrimSuffix(tablePath(lakeName, pickedName, ""), "/"), 200, false},
}

// decisions measures what one client waits for, one request after the other.
func (b *restBench) decisions(small, large *grantsSide) error {
	for _, r := range decided {
		for _, cold := range []bool{false, true} {
			name := r.name + ", kept decision"
			if cold {
				name = r.name + ", new decision"
			}
			one := func(s *grantsSide) shot {
				return shot{request(r.method, r.path, map[string]string{"Authorization": "Bearer " + s.bearer}, nil), r.status}
			}
			runs := []waiting{
				{s: small, at: small.address, shot: one(small), cold: cold}, {s: large, at: large.address, shot: one(large), cold: cold},
				{s: small, at: small.openAddress, shot: one(small), cold: cold}, {s: large, at: large.openAddress, shot: one(large), cold: cold},
			}
			if !r.open {
				runs = runs[:2]
			}
			if err := alternate(runs, b.seconds/8); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			b.add(compareWaits(name, smallName, runs[1].medians, runs[0].medians))
			if r.open {
				b.add(compareWaits(name+", checked", openName, runs[1].medians, runs[3].medians))
				b.add(compareWaits(name+", checked, small database", openName, runs[0].medians, runs[2].medians))
			}
		}
	}
	return nil
}

// waiting is one server that is asked the same again and again by one client.
type waiting struct {
	s       *grantsSide
	at      string
	shot    shot
	cold    bool // the epoch moves before each request
	medians []float64
}

func (w *waiting) run(d time.Duration) error {
	var moved error
	got, err := fire(w.at, 1, d, func(int, int) shot {
		if w.cold && moved == nil {
			_, moved = w.s.database.Exec(context.Background(), moveEpoch)
		}
		return w.shot
	})
	if err == nil {
		err = moved
	}
	w.medians = append(w.medians, 1000*got.median)
	return err
}

// alternate runs all of them in rounds, in another order each time, after one that does not count.
func alternate(runs []waiting, d time.Duration) error {
	for round := range grantsRounds + 1 {
		for i := range runs {
			if err := runs[(i+round)%len(runs)].run(d); err != nil {
				return err
			}
		}
		if round == 0 {
			for i := range runs {
				runs[i].medians = nil
			}
		}
	}
	return nil
}

// compareWaits gives medians over the rounds, and their ratio.
func compareWaits(name, baseline string, ours, theirs []float64) figure {
	return against(name, median(ours), "us", baseline, median(theirs))
}
