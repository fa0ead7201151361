package auth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"strings"
	"sync"
	"testing"

	"catalogd/internal/fault"
)

// pairs are key pairs of the three algorithms that principals may have; RSA takes a while, so once for all tests.
var pairs = sync.OnceValue(func() map[string]crypto.Signer {
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		panic(err)
	}
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, clientRSABitsMin)
	if err != nil {
		panic(err)
	}
	return map[string]crypto.Signer{AlgorithmEdDSA: ed, AlgorithmES256: ec, AlgorithmRS256: rsaKey}
})

func pemOf(t *testing.T, kind string, der []byte) string {
	t.Helper()
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func publicPEM(t *testing.T, public crypto.PublicKey) string {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return pemOf(t, "PUBLIC KEY", der)
}

// A key is the same one in whatever form it comes, and what is answered is read again as it is.
func TestReadClientKey_FormsOfOneKey(t *testing.T) {
	for algorithm, pair := range pairs() {
		text := publicPEM(t, pair.Public())
		jwk, err := json.Marshal(jwkOf(pair.Public(), "my own name", algorithm))
		if err != nil {
			t.Fatal(err)
		}
		forms := map[string]string{"PEM": text, "PEM with blanks": "\n " + text + "\n", "JWK": string(jwk)}
		if public, ok := pair.Public().(*rsa.PublicKey); ok {
			forms["PKCS 1"] = pemOf(t, "RSA PUBLIC KEY", x509.MarshalPKCS1PublicKey(public))
		}
		var id string
		for name, form := range forms {
			key, err := ReadClientKey(form)
			if err != nil || key.Algorithm != algorithm || id != "" && key.ID != id {
				t.Errorf("%s %s: %+v, %v", algorithm, name, key, err)
				continue
			}
			id = key.ID
			shown, err := key.JWK()
			if err != nil || shown.KeyID != id {
				t.Errorf("%s %s: %+v, %v", algorithm, name, shown, err)
			}
			raw, _ := json.Marshal(shown)
			if again, err := ReadClientKey(string(raw)); err != nil || again.ID != id {
				t.Errorf("%s %s: %s: %v", algorithm, name, raw, err)
			}
		}
	}
}

// RFC 8037's and RFC 7638's own examples have the thumbprints that they say.
func TestReadClientKey_ThumbprintsOfTheStandards(t *testing.T) {
	for jwk, want := range map[string]string{
		`{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}`: "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k",
		`{"kty":"RSA","e":"AQAB","n":"0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw"}`: "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs",
	} {
		if key, err := ReadClientKey(jwk); err != nil || key.ID != want {
			t.Errorf("%s: %s, %v", want, key.ID, err)
		}
	}
}

func TestReadClientKey_Refuses(t *testing.T) {
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	huge := &rsa.PublicKey{N: new(big.Int).SetBit(big.NewInt(1), clientRSABitsMax, 1), E: 65537}
	even := &rsa.PublicKey{N: pairs()[AlgorithmRS256].Public().(*rsa.PublicKey).N, E: 65536}
	private, err := x509.MarshalPKCS8PrivateKey(pairs()[AlgorithmEdDSA])
	if err != nil {
		t.Fatal(err)
	}
	good := publicPEM(t, pairs()[AlgorithmES256].Public())
	jwk := func(public crypto.PublicKey, alg string) string {
		raw, _ := json.Marshal(jwkOf(public, "", alg))
		return string(raw)
	}
	ed := jwk(pairs()[AlgorithmEdDSA].Public(), "")
	for name, c := range map[string]struct{ text, reason string }{
		"empty":            {"", "neither PEM"},
		"a secret":         {"cs_0123456789abcdef_secret", "neither PEM"},
		"P-384":            {publicPEM(t, p384.Public()), "P-384"},
		"RSA, 1024":        {publicPEM(t, small.Public()), "1024 bits"},
		"RSA, 8193":        {publicPEM(t, huge), "8193 bits"},
		"RSA, even":        {jwk(even, ""), "odd"},
		"private PEM":      {pemOf(t, "PRIVATE KEY", private), "private key"},
		"private behind":   {good + pemOf(t, "EC PRIVATE KEY", private), "private key"},
		"private JWK":      {strings.Replace(ed, "{", `{"d":"secretsecret",`, 1), "private key"},
		"symmetric":        {`{"kty":"oct","k":"secretsecret"}`, "private key"},
		"two":              {good + good, "more than one"},
		"certificate":      {pemOf(t, "CERTIFICATE", private), "CERTIFICATE"},
		"damaged":          {pemOf(t, "PUBLIC KEY", []byte("x")), "cannot be read"},
		"other alg":        {jwk(pairs()[AlgorithmEdDSA].Public(), "RS256"), "its alg is"},
		"for encryption":   {strings.Replace(ed, `"use":"sig"`, `"use":"enc"`, 1), "use is"},
		"no JSON":          {`{"kty":`, "JSON"},
		"point off curve":  {`{"kty":"EC","crv":"P-256","x":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE","y":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE"}`, "damaged"},
		"X25519":           {`{"kty":"OKP","crv":"X25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}`, "damaged"},
		"too long":         {strings.Repeat("x", clientKeyBytesMax+1), "at most"},
		"RSA, no modulus":  {`{"kty":"RSA","e":"AQAB"}`, "damaged"},
		"RSA, huge e":      {`{"kty":"RSA","n":"0vx7","e":"AQABAQABAQAB"}`, "damaged"},
		"unknown key type": {`{"kty":"AKP"}`, "none of"},
	} {
		key, err := ReadClientKey(c.text)
		if !fault.Is(err, fault.BadRequest) || !strings.Contains(fault.Message(err), c.reason) {
			t.Errorf("%s: %+v, %v; want %q", name, key, err, c.reason)
			continue
		}
		if strings.Contains(err.Error(), "secretsecret") || len(c.text) > 40 && strings.Contains(err.Error(), c.text[30:40]) {
			t.Errorf("%s: the text is repeated: %v", name, err)
		}
	}
}
