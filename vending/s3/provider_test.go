package s3_test

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"testing"

	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"pgregory.net/rapid"

	"catalogd/internal/s3test"
	"catalogd/vending"
	"catalogd/vending/s3"
	"catalogd/vending/vendingtest"
)

func TestMain(m *testing.M) { os.Exit(s3test.Run(m)) }

func fixture(t *testing.T) vendingtest.Fixture {
	store := s3test.Start(t)
	quiet := slog.New(slog.DiscardHandler)
	return vendingtest.Fixture{
		Provider: s3.New(s3.Config{AWS: store.Config(), Log: quiet}),
		Short:    s3.New(s3.Config{AWS: store.Config(), Log: quiet, OmitDuration: true}),
		Profile:  store.Profile(),
		Bucket:   store.Bucket(t), Foreign: store.ForeignBucket(t),
		Admin:  store.Client(s3test.Admin),
		Client: func(c vending.Credentials) *awss3.Client { return store.Client(s3test.KeysOf(c)) },
		STS:    func(c vending.Credentials) *sts.Client { return store.STS(s3test.KeysOf(c)) },
	}
}

func TestField_C164_C166_WritersDeleteReadersDoNot(t *testing.T) { vendingtest.Levels(t, fixture(t)) }

func TestField_C165_ListsNeedTheSlash(t *testing.T) { vendingtest.Lists(t, fixture(t)) }

func TestField_Z10_ScopedKeyAttacks(t *testing.T) { vendingtest.Attacks(t, fixture(t)) }

func TestVend_SessionsEnd(t *testing.T) { vendingtest.Expiry(t, fixture(t)) }

// Threats 16 and 17: whoever asks for whatever beside others, the keys reach what was asked for.
func TestVend_CallersInOneBucketStayApart(t *testing.T) {
	f := fixture(t)
	rapid.Check(t, func(t *rapid.T) {
		table := rapid.SampledFrom([]string{"t1", "t10", "T2", "t1/deeper"})
		var s [2]vending.Scope
		var got [2]vending.Credentials
		for i := range s {
			s[i] = vending.Scope{
				Warehouse: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "warehouse"), Table: "same", Principal: rapid.SampledFrom([]string{"x", "y"}).Draw(t, "who"),
				Location: "s3://" + f.Bucket + "/" + table.Draw(t, "table"), Access: rapid.SampledFrom([]vending.Access{vending.Read, vending.ReadWrite}).Draw(t, "access"),
			}
			c, err := f.Provider.Vend(context.Background(), f.Profile, s[i])
			if err != nil {
				t.Fatal(err)
			}
			got[i] = c
			if c.Prefix != s[i].Location+"/" {
				t.Fatalf("asked for %s, got %s", s[i].Location, c.Prefix)
			}
			_, key, _ := vending.SplitS3(s[i].Location + "/data/probe")
			_, err = f.Client(c).PutObject(context.Background(), &awss3.PutObjectInput{Bucket: &f.Bucket, Key: &key, Body: strings.NewReader("x")})
			if (err == nil) != (s[i].Access == vending.ReadWrite) {
				t.Fatalf("put with %s: %v", s[i].Access, err)
			}
		}
		if same := got[0].Config["s3.access-key-id"] == got[1].Config["s3.access-key-id"]; same != (s[0] == s[1]) {
			t.Fatalf("%+v and %+v share keys: %v", s[0], s[1], same)
		}
	})
}
