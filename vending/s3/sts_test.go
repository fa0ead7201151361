package s3_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"go.uber.org/goleak"

	"catalogd/internal/fault"
	"catalogd/vending"
	"catalogd/vending/s3"
)

const serverSecret = "server-secret-that-must-never-show"

// tokenService is a token service that keeps what it was asked. Its clock is the test's.
type tokenService struct {
	*httptest.Server
	mu     sync.Mutex
	now    time.Time
	asked  []url.Values
	answer func(w http.ResponseWriter, form url.Values) bool // true: it has answered
	gate   chan struct{}                                     // when set, each call takes one from it before it is answered
}

func newTokenService(t *testing.T) *tokenService {
	s := &tokenService{now: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		form, _ := url.ParseQuery(string(body))
		s.mu.Lock()
		s.asked = append(s.asked, form)
		number, now, answer, gate := len(s.asked), s.now, s.answer, s.gate
		s.mu.Unlock()
		if gate != nil {
			<-gate
		}
		if answer != nil && answer(w, form) {
			return
		}
		seconds, _ := time.ParseDuration(form.Get("DurationSeconds") + "s")
		fmt.Fprintf(w, `<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials>
			<AccessKeyId>KEY%d</AccessKeyId><SecretAccessKey>SECRET%d</SecretAccessKey><SessionToken>TOKEN%d</SessionToken>
			<Expiration>%s</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>`,
			number, number, number, now.Add(seconds).Format(time.RFC3339))
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *tokenService) clock() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func (s *tokenService) pass(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.now.Add(d)
}

func (s *tokenService) calls() []url.Values {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

func (s *tokenService) provider() *s3.Provider {
	return s3.New(s3.Config{
		AWS: aws.Config{Credentials: credentials.NewStaticCredentialsProvider("SERVERKEY", serverSecret, "")},
		Now: s.clock, Log: slog.New(slog.DiscardHandler),
	})
}

func (s *tokenService) profile() vending.Profile {
	return vending.Profile{
		StorageType: "S3", RoleARN: "arn:aws:iam::123456789012:role/Warehouse", ExternalID: "external", Region: "eu-central-1",
		Endpoint: "https://store.example", STSEndpoint: s.URL, PathStyleAccess: true,
	}
}

func scopeOf(table string) vending.Scope {
	return vending.Scope{
		Warehouse: "w", Table: table, Principal: "someone", Location: "s3://warehouse/" + table, Access: vending.ReadWrite,
	}
}

func vend(t *testing.T, p *s3.Provider, profile vending.Profile, s vending.Scope) vending.Credentials {
	t.Helper()
	c, err := p.Vend(t.Context(), profile, s)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestVend_AsksForOneTableAlways(t *testing.T) {
	sts := newTokenService(t)
	s := scopeOf("t1")
	s.Principal = "eve\r\nX-Evil: 1=,@/ä"
	vend(t, sts.provider(), sts.profile(), s)
	form := sts.calls()[0]
	for name, want := range map[string]string{
		"Action": "AssumeRole", "RoleArn": "arn:aws:iam::123456789012:role/Warehouse", "ExternalId": "external", "DurationSeconds": "3600",
	} {
		if got := form.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if !strings.Contains(form.Get("Policy"), `"arn:aws:s3:::warehouse/t1/*"`) {
		t.Errorf("policy: %s", form.Get("Policy"))
	}
	if name := form.Get("RoleSessionName"); !regexp.MustCompile(`^cat-[0-9a-f]{12}-[0-9a-f]{12}-[0-9a-f]{12}$`).MatchString(name) {
		t.Errorf("session name %q", name)
	}
}

// C159, C160: every client finds the names that it reads, and the same values everywhere.
func TestField_C159_C160_EveryName(t *testing.T) {
	sts := newTokenService(t)
	profile := sts.profile()
	profile.EndpointInternal = "http://10.0.0.1:9000"
	p := sts.provider()
	got := vend(t, p, profile, scopeOf("t1"))
	want := map[string]string{
		"s3.access-key-id": "KEY1", "s3.secret-access-key": "SECRET1", "s3.session-token": "TOKEN1",
		"s3.session-token-expires-at-ms": fmt.Sprint(sts.clock().Add(time.Hour).UnixMilli()),
		"client.region":                  "eu-central-1", "s3.region": "eu-central-1",
		"s3.endpoint": "https://store.example", "s3.path-style-access": "true",
	}
	for name, value := range want {
		if got.Config[name] != value {
			t.Errorf("%s is %q, want %q", name, got.Config[name], value)
		}
	}
	if len(got.Config) != len(want) || got.Prefix != "s3://warehouse/t1/" || !got.ExpiresAt.Equal(sts.clock().Add(time.Hour)) {
		t.Errorf("got %d names, prefix %s, until %s", len(got.Config), got.Prefix, got.ExpiresAt)
	}
	for name, value := range p.ClientConfig(profile) {
		if strings.Contains(name, "key") || strings.Contains(name, "token") || want[name] != value {
			t.Errorf("ClientConfig has %s=%q", name, value)
		}
	}
	profile.PathStyleAccess = false
	if got := p.ClientConfig(profile); got["s3.path-style-access"] != "false" || got["s3.force-virtual-addressing"] != "true" {
		t.Errorf("without path style: %v", got)
	}
	if fmt.Sprintf("%v %+v %s", got, got, got) != "*** *** ***" {
		t.Errorf("credentials print as %v", got)
	}
}

// C173: nobody gets another's keys or old ones.
func TestField_C173_CacheKeepsApart(t *testing.T) {
	sts := newTokenService(t)
	p, profile := sts.provider(), sts.profile()
	first := vend(t, p, profile, scopeOf("t1"))
	if again := vend(t, p, profile, scopeOf("t1")); again.Config["s3.access-key-id"] != "KEY1" {
		t.Error("the same scope was asked for twice")
	}
	first.Config["s3.access-key-id"] = "changed by a caller"
	if again := vend(t, p, profile, scopeOf("t1")); again.Config["s3.access-key-id"] != "KEY1" {
		t.Error("a caller changed what others get")
	}
	changes := map[string]func(*vending.Profile, *vending.Scope){
		"principal": func(_ *vending.Profile, s *vending.Scope) { s.Principal = "other" },
		"access":    func(_ *vending.Profile, s *vending.Scope) { s.Access = vending.Read },
		"table":     func(_ *vending.Profile, s *vending.Scope) { s.Table = "other" },
		"location":  func(_ *vending.Profile, s *vending.Scope) { s.Location += "x" },
		"warehouse": func(_ *vending.Profile, s *vending.Scope) { s.Warehouse = "other" },
		"role":      func(p *vending.Profile, _ *vending.Scope) { p.RoleARN += "x" },
		"external":  func(p *vending.Profile, _ *vending.Scope) { p.ExternalID += "x" },
		"region":    func(p *vending.Profile, _ *vending.Scope) { p.Region += "x" },
		"endpoint":  func(p *vending.Profile, _ *vending.Scope) { p.Endpoint += "x" },
		"seconds":   func(p *vending.Profile, _ *vending.Scope) { p.SessionSeconds = 900 },
	}
	for what, change := range changes {
		before := len(sts.calls())
		otherProfile, otherScope := profile, scopeOf("t1")
		change(&otherProfile, &otherScope)
		vend(t, p, otherProfile, otherScope)
		if len(sts.calls()) != before+1 {
			t.Errorf("another %s got the first one's keys", what)
		}
	}
	for _, step := range []struct {
		pass  time.Duration
		fresh bool
	}{{29 * time.Minute, false}, {2 * time.Minute, true}, {30 * time.Minute, false}, {time.Minute, true}} {
		before := len(sts.calls())
		sts.pass(step.pass)
		c := vend(t, p, profile, scopeOf("t1"))
		if got := len(sts.calls()) > before; got != step.fresh {
			t.Errorf("after %s more: new keys %v, want %v", step.pass, got, step.fresh)
		}
		if left := c.ExpiresAt.Sub(sts.clock()); left < 30*time.Minute {
			t.Errorf("keys with %s left were given out", left)
		}
	}
}

func TestVend_ManyCallersMakeOneCall(t *testing.T) {
	sts := newTokenService(t)
	sts.gate = make(chan struct{})
	p, profile := sts.provider(), sts.profile()
	var callers sync.WaitGroup
	keys := make(chan string, 64)
	for range cap(keys) {
		callers.Go(func() {
			c, err := p.Vend(context.Background(), profile, scopeOf("t1"))
			if err != nil {
				t.Error(err)
				return
			}
			keys <- c.Config["s3.access-key-id"]
		})
	}
	// One caller goes away while the call is under way: the others still get their keys.
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := p.Vend(gone, profile, scopeOf("t1")); !fault.Is(err, fault.Busy) {
		t.Errorf("a caller who left got %v", err)
	}
	close(sts.gate)
	callers.Wait()
	close(keys)
	for key := range keys {
		if key != "KEY1" {
			t.Errorf("somebody got %s", key)
		}
	}
	if got := len(sts.calls()); got != 1 {
		t.Errorf("%d calls", got)
	}
}

func TestVend_ErrorsHaveAMeaningAndNoSecrets(t *testing.T) {
	for _, c := range []struct {
		status  int
		code    string
		want    fault.Kind
		message string
	}{
		{403, "AccessDenied", fault.Internal, "trusts the server's identity"},
		{403, "InvalidClientTokenId", fault.Internal, "the server's own AWS keys"},
		{403, "SignatureDoesNotMatch", fault.Internal, "the server's own AWS keys"},
		{400, "PackedPolicyTooLarge", fault.Internal, "shorten the warehouse's base location"},
		{400, "MalformedPolicyDocument", fault.Internal, "stsUnavailable"},
		{501, "NotImplemented", fault.Internal, "stsUnavailable"},
		{400, "ValidationError", fault.Internal, "sessionSeconds"},
		{418, "Teapot", fault.Internal, "Teapot"},
		{400, "Throttling", fault.Busy, "try again"},
		{503, "ServiceUnavailable", fault.Busy, "try again"},
		{500, "Whatever", fault.Busy, "try again"},
	} {
		sts := newTokenService(t)
		sts.answer = func(w http.ResponseWriter, _ url.Values) bool {
			w.WriteHeader(c.status)
			fmt.Fprintf(w, `<ErrorResponse><Error><Code>%s</Code><Message>no</Message></Error><RequestId>r</RequestId></ErrorResponse>`, c.code)
			return true
		}
		p := sts.provider()
		_, err := p.Vend(t.Context(), sts.profile(), scopeOf("t1"))
		if !fault.Is(err, c.want) || !strings.Contains(fault.Message(err), c.message) || !strings.Contains(fault.Message(err), "warehouse w") {
			t.Errorf("%s: %s, %q", c.code, fault.KindOf(err), fault.Message(err))
		}
		if strings.Contains(fmt.Sprintf("%+v", err), serverSecret) {
			t.Errorf("%s: the server's secret shows", c.code)
		}
		sts.answer = nil
		if _, err := p.Vend(t.Context(), sts.profile(), scopeOf("t1")); err != nil {
			t.Errorf("%s: the error was kept: %v", c.code, err)
		}
	}
}

func TestVend_TokenServiceAway(t *testing.T) {
	sts := newTokenService(t)
	profile := sts.profile()
	sts.Close()
	_, err := sts.provider().Vend(t.Context(), profile, scopeOf("t1"))
	if !fault.Is(err, fault.Busy) || !strings.Contains(fault.Message(err), "stsEndpoint") {
		t.Errorf("got %v", err)
	}
}

func TestVend_FollowsNoRedirect(t *testing.T) {
	called := make(chan struct{}, 1)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called <- struct{}{} }))
	defer elsewhere.Close()
	sts := newTokenService(t)
	sts.answer = func(w http.ResponseWriter, _ url.Values) bool {
		w.Header().Set("Location", elsewhere.URL)
		w.WriteHeader(http.StatusTemporaryRedirect)
		return true
	}
	if c, err := sts.provider().Vend(t.Context(), sts.profile(), scopeOf("t1")); err == nil {
		t.Errorf("got keys until %s", c.ExpiresAt)
	}
	select {
	case <-called:
		t.Error("the redirect was followed")
	default:
	}
}

func TestVend_RefusesWhatItCannotNarrow(t *testing.T) {
	sts := newTokenService(t)
	for what, change := range map[string]func(*vending.Profile, *vending.Scope){
		"no access":     func(_ *vending.Profile, s *vending.Scope) { s.Access = vending.None },
		"whole bucket":  func(_ *vending.Profile, s *vending.Scope) { s.Location = "s3://warehouse" },
		"wildcard":      func(_ *vending.Profile, s *vending.Scope) { s.Location = "s3://warehouse/*" },
		"no role":       func(p *vending.Profile, _ *vending.Scope) { p.RoleARN = "" },
		"no sts":        func(p *vending.Profile, _ *vending.Scope) { p.STSUnavailable = true },
		"not a role":    func(p *vending.Profile, _ *vending.Scope) { p.RoleARN = "role" },
		"empty":         func(_ *vending.Profile, s *vending.Scope) { s.Location = "" },
		"file location": func(_ *vending.Profile, s *vending.Scope) { s.Location = "file:///w/t1" },
	} {
		profile, scope := sts.profile(), scopeOf("t1")
		change(&profile, &scope)
		if c, err := sts.provider().Vend(t.Context(), profile, scope); err == nil {
			t.Errorf("%s: got keys for %s", what, c.Prefix)
		}
	}
	if got := len(sts.calls()); got != 0 {
		t.Errorf("%d calls to the token service", got)
	}
}

func TestVend_ServerWithoutKeys(t *testing.T) {
	sts := newTokenService(t)
	p := s3.New(s3.Config{Log: slog.New(slog.DiscardHandler)})
	_, err := p.Vend(t.Context(), sts.profile(), scopeOf("t1"))
	if !fault.Is(err, fault.Internal) || !strings.Contains(fault.Message(err), "AWS_ACCESS_KEY_ID") {
		t.Errorf("got %v", err)
	}
}

func TestOwnCredentials_OnlyWhereThereIsNoTokenService(t *testing.T) {
	sts := newTokenService(t)
	p, profile := sts.provider(), sts.profile()
	if _, err := p.OwnCredentials(t.Context(), profile, scopeOf("t1")); err == nil {
		t.Error("the server's own keys are given although sessions can be had")
	}
	profile.STSUnavailable, profile.RoleARN = true, ""
	c, err := p.OwnCredentials(t.Context(), profile, scopeOf("t1"))
	if err != nil || c.Config["s3.access-key-id"] != "SERVERKEY" {
		t.Errorf("got %s, %v", c.Config["s3.access-key-id"], err)
	}
	if p.CanVend(profile) {
		t.Error("a store without a token service vends")
	}
}

func TestVend_LeavesNoGoroutines(t *testing.T) {
	before := goleak.IgnoreCurrent()
	sts := newTokenService(t)
	p := sts.provider()
	vend(t, p, sts.profile(), scopeOf("t1"))
	sts.Close()
	p.Close()
	goleak.VerifyNone(t, before)
}
