package auth

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"catalogd/internal/fault"
)

// AlgorithmES256 is for principals' own keys alone; our tokens are never signed with it.
const AlgorithmES256 = "ES256"

// Limits of principals' own keys.
const (
	// ClientKeysMax bounds the keys of one principal: enough to go over from one to the next on several machines.
	ClientKeysMax     = 10
	clientKeyBytesMax = 16 << 10
	clientRSABitsMin  = 2048
	clientRSABitsMax  = 8192 // checking a signature takes time that grows with the square
)

// ClientKey is a public key of a principal, which signs in by what it signs with the private half.
type ClientKey struct {
	ID        string // RFC 7638: the key's own
	Algorithm string // the only one that it is good for
	Public    []byte // PKIX
	CreatedAt time.Time
	EndsAt    time.Time // zero: it is good until it is removed
}

// Live tells whether the key is good at a time.
func (k ClientKey) Live(now time.Time) bool { return k.EndsAt.IsZero() || now.Before(k.EndsAt) }

// JWK gives the key as RFC 7517 writes it.
func (k ClientKey) JWK() (JWK, error) {
	public, err := x509.ParsePKIXPublicKey(k.Public)
	if err != nil {
		return JWK{}, fault.Wrap(fault.Internal, err, "the stored key %s cannot be read", k.ID)
	}
	return jwkOf(public, k.ID, k.Algorithm), nil
}

// verificationKey gives the key and its one method; false when it cannot be read.
func (k ClientKey) verificationKey() (crypto.PublicKey, bool) {
	public, err := x509.ParsePKIXPublicKey(k.Public)
	return public, err == nil
}

// ReadClientKey reads a public key that somebody wants to register: PEM or a JWK; Ed25519, P-256, or RSA of 2048 to 8192 bits.
// fault.BadRequest when it is anything else. The text is never repeated: it may be a private key.
func ReadClientKey(text string) (ClientKey, error) {
	text = strings.TrimSpace(text)
	if len(text) > clientKeyBytesMax {
		return ClientKey{}, fault.New(fault.BadRequest, "the key is %d bytes long; at most %d are accepted", len(text), clientKeyBytesMax)
	}
	read := readPEM
	if strings.HasPrefix(text, "{") {
		read = readJWK
	}
	public, wanted, err := read([]byte(text))
	if err != nil {
		return ClientKey{}, err
	}
	algorithm, err := algorithmOf(public)
	if err != nil {
		return ClientKey{}, err
	}
	if wanted != "" && wanted != algorithm {
		return ClientKey{}, fault.New(fault.BadRequest, "the key is for %s, but its alg is %.20q", algorithm, wanted)
	}
	encoded, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return ClientKey{}, fault.Wrap(fault.BadRequest, err, "the key cannot be used")
	}
	return ClientKey{ID: thumbprint(public), Algorithm: algorithm, Public: encoded}, nil
}

func errPrivateKey() error {
	return fault.New(fault.BadRequest, "this is a private key: it has been sent to the server now and should not be used any more; "+
		"register the public half of a new one (openssl pkey -in private.pem -pubout)")
}

func readPEM(text []byte) (public crypto.PublicKey, algorithm string, err error) {
	block, rest := pem.Decode(text)
	switch {
	case block == nil:
		return nil, "", fault.New(fault.BadRequest, "the key is neither PEM (-----BEGIN PUBLIC KEY-----) nor a JWK")
	case strings.Contains(block.Type, "PRIVATE") || bytes.Contains(rest, []byte("PRIVATE")):
		return nil, "", errPrivateKey()
	case len(bytes.TrimSpace(rest)) > 0:
		return nil, "", fault.New(fault.BadRequest, "there is more than one key; register them one by one")
	case block.Type == "PUBLIC KEY":
		public, err = x509.ParsePKIXPublicKey(block.Bytes)
	case block.Type == "RSA PUBLIC KEY":
		public, err = x509.ParsePKCS1PublicKey(block.Bytes)
	default:
		return nil, "", fault.New(fault.BadRequest, "the PEM block is a %.40q; wanted is a PUBLIC KEY", block.Type)
	}
	if err != nil {
		return nil, "", fault.Wrap(fault.BadRequest, err, "the public key cannot be read")
	}
	return public, "", nil
}

func readJWK(text []byte) (crypto.PublicKey, string, error) {
	var key struct {
		JWK
		D json.RawMessage `json:"d"` // what private keys have
		K json.RawMessage `json:"k"` // what symmetric keys have
	}
	if err := json.Unmarshal(text, &key); err != nil {
		return nil, "", fault.New(fault.BadRequest, "the JWK is not correct JSON")
	}
	if key.D != nil || key.K != nil {
		return nil, "", errPrivateKey()
	}
	if key.Use != "" && key.Use != "sig" {
		return nil, "", fault.New(fault.BadRequest, "the JWK's use is %.20q; wanted is sig", key.Use)
	}
	public, ok := key.public()
	if !ok {
		return nil, "", fault.New(fault.BadRequest, "the JWK is none of Ed25519 (kty OKP), P-256 (kty EC) and RSA, or is damaged")
	}
	return public, key.Algorithm, nil
}

// algorithmOf gives the one algorithm of a key and refuses keys that are too weak or that would cost too much.
func algorithmOf(public crypto.PublicKey) (string, error) {
	switch public := public.(type) {
	case ed25519.PublicKey:
		return AlgorithmEdDSA, nil
	case *ecdsa.PublicKey:
		if public.Curve == elliptic.P256() {
			return AlgorithmES256, nil
		}
		return "", fault.New(fault.BadRequest, "the key's curve is %s; wanted is P-256", public.Curve.Params().Name)
	case *rsa.PublicKey:
		if bits := public.N.BitLen(); bits < clientRSABitsMin || bits > clientRSABitsMax {
			return "", fault.New(fault.BadRequest, "the RSA key has %d bits; %d to %d are accepted", bits, clientRSABitsMin, clientRSABitsMax)
		}
		if public.E < rsaExponentMin || public.E%2 == 0 || public.N.Bit(0) == 0 {
			return "", fault.New(fault.BadRequest, "the RSA key is no good one: modulus and exponent must be odd")
		}
		return AlgorithmRS256, nil
	}
	return "", fault.New(fault.BadRequest, "the key is none of Ed25519, P-256 and RSA")
}

// keyMarkPrefix begins the mark of tokens that a key of the principal obtained. Marks of secrets have no colon.
const keyMarkPrefix = "key:"

// KeyMark is what tokens that a key obtained say of where they come from: they end with it.
func KeyMark(keyID string) string { return keyMarkPrefix + keyID }

// methodOf gives the signature method of an algorithm that principals' keys have; nil: it is none.
func methodOf(algorithm string) jwt.SigningMethod {
	switch algorithm {
	case AlgorithmEdDSA:
		return jwt.SigningMethodEdDSA
	case AlgorithmES256:
		return jwt.SigningMethodES256
	case AlgorithmRS256:
		return jwt.SigningMethodRS256
	}
	return nil
}
