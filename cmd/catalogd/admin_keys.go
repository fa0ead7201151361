package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"time"
)

// signingKeyBody is a key that the server signs tokens with.
type signingKeyBody struct {
	KID           string     `json:"kid"`
	Algorithm     string     `json:"algorithm"`
	State         string     `json:"state"`
	CreatedAt     time.Time  `json:"createdAt"`
	SignsFrom     time.Time  `json:"signsFrom"`
	RetiredAt     *time.Time `json:"retiredAt,omitempty"`
	VerifiesUntil *time.Time `json:"verifiesUntil,omitempty"`
}

type signingKeysBody struct {
	Keys []signingKeyBody `json:"keys"`
}

var signingKeyVerbs = []*command{
	{name: "list", summary: "the keys that tokens are signed with and checked by", run: signingKeyList},
	{name: "rotate", summary: "announce a new key, which signs once all servers know it; tokens stay good", run: signingKeyRotate},
}

func signingKeyList(ctx context.Context, c *call) error {
	s, err := c.begin(ctx, 0)
	if err != nil {
		return err
	}
	var answer signingKeysBody
	if err := s.do(ctx, http.MethodGet, []string{"signing-keys"}, nil, &answer); err != nil {
		return err
	}
	return answer.print(c, s)
}

func signingKeyRotate(ctx context.Context, c *call) error {
	var endTokens bool
	s, err := c.begin(ctx, 0, func(_ *connection, fs *flag.FlagSet) {
		fs.BoolVar(&endTokens, "end-tokens", false, "remove the other keys at once, when one has leaked: everybody has to log in again")
	})
	if err != nil {
		return err
	}
	var answer signingKeysBody
	body := map[string]any{"endTokens": endTokens}
	if err := s.do(ctx, http.MethodPost, []string{"signing-keys", "rotate"}, body, &answer); err != nil {
		return err
	}
	return answer.print(c, s)
}

func (b signingKeysBody) print(c *call, s *session) error {
	if s.output == "json" {
		return printJSON(c.Out, b)
	}
	var rows [][]string
	for _, k := range b.Keys {
		rows = append(rows, []string{k.KID, k.Algorithm, k.State, shortTime(&k.SignsFrom), shortTime(k.RetiredAt), shortTime(k.VerifiesUntil)})
	}
	return printRows(c.Out, []string{"KEY", "ALGORITHM", "STATE", "SIGNS FROM", "RETIRED", "CHECKS UNTIL"}, rows)
}

// shortTime shows a time of an answer; "" for none.
func shortTime(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// clientKeyBody is a public key that a principal signs in with.
type clientKeyBody struct {
	KID       string          `json:"kid"`
	Algorithm string          `json:"algorithm"`
	CreatedAt time.Time       `json:"createdAt"`
	ExpiresAt *time.Time      `json:"expiresAt,omitempty"`
	Expired   bool            `json:"expired"`
	Key       json.RawMessage `json:"key"`
}

func (k clientKeyBody) state() string {
	if k.Expired {
		return "expired"
	}
	return "good"
}

func principalAddKey(ctx context.Context, c *call) error {
	var path string
	var days int
	s, err := c.begin(ctx, 1, func(_ *connection, fs *flag.FlagSet) {
		fs.StringVar(&path, "key-file", "", "`file` with the public key: PEM or a JWK")
		fs.IntVar(&days, "days", 0, "`days` after which the key is not good any more; 0: it is until it is removed")
	})
	if err != nil {
		return err
	}
	if path == "" {
		return wrongUsage("--key-file is missing")
	}
	text, err := readSmallFile(path)
	if err != nil {
		return fmt.Errorf("key: %w", err)
	}
	body := map[string]any{"key": text}
	if days > 0 {
		body["expiresAt"] = time.Now().UTC().AddDate(0, 0, days).Truncate(time.Second)
	}
	var key clientKeyBody
	if err := s.do(ctx, http.MethodPost, []string{"principals", s.args[0], "keys"}, body, &key); err != nil {
		return err
	}
	if s.output == "json" {
		return printJSON(c.Out, key)
	}
	return printFields(c.Out, [][2]string{
		{"principal", s.args[0]}, {"key", key.KID}, {"algorithm", key.Algorithm}, {"expires", shortTime(key.ExpiresAt)},
	})
}

func principalListKeys(ctx context.Context, c *call) error {
	s, err := c.begin(ctx, 1)
	if err != nil {
		return err
	}
	var answer struct {
		Keys []clientKeyBody `json:"keys"`
	}
	if err := s.do(ctx, http.MethodGet, []string{"principals", s.args[0], "keys"}, nil, &answer); err != nil {
		return err
	}
	if s.output == "json" {
		return printJSON(c.Out, answer)
	}
	var rows [][]string
	for _, k := range answer.Keys {
		rows = append(rows, []string{k.KID, k.Algorithm, k.state(), shortTime(&k.CreatedAt), shortTime(k.ExpiresAt)})
	}
	return printRows(c.Out, []string{"KEY", "ALGORITHM", "STATE", "CREATED", "EXPIRES"}, rows)
}

func principalRemoveKey(ctx context.Context, c *call) error {
	s, err := c.begin(ctx, 2)
	if err != nil {
		return err
	}
	return s.do(ctx, http.MethodDelete, []string{"principals", s.args[0], "keys", s.args[1]}, nil, nil)
}
