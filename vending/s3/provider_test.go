package s3_test

import (
	"os"
	"testing"

	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"catalogd/internal/s3test"
	"catalogd/vending"
	"catalogd/vending/s3"
	"catalogd/vending/vendingtest"
)

func TestMain(m *testing.M) { os.Exit(s3test.Run(m)) }

func TestField_Z10_ScopedKeyAttacks(t *testing.T) {
	store := s3test.Start(t)
	vendingtest.Run(t, vendingtest.Fixture{
		Provider: s3.New(s3.Config{AWS: store.Config()}),
		Short:    s3.New(s3.Config{AWS: store.Config(), OmitDuration: true}),
		Profile:  store.Profile(),
		Bucket:   store.Bucket(t), Foreign: store.ForeignBucket(t),
		Admin:  store.Client(s3test.Admin),
		Client: func(c vending.Credentials) *awss3.Client { return store.Client(s3test.KeysOf(c)) },
		STS:    func(c vending.Credentials) *sts.Client { return store.STS(s3test.KeysOf(c)) },
	})
}
