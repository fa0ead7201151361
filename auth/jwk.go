package auth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
)

// JWK is one public key, RFC 7517 and RFC 8037.
type JWK struct {
	Type      string `json:"kty"`
	Curve     string `json:"crv,omitempty"`
	X         string `json:"x,omitempty"`
	Y         string `json:"y,omitempty"`
	N         string `json:"n,omitempty"`
	E         string `json:"e,omitempty"`
	KeyID     string `json:"kid,omitempty"`
	Use       string `json:"use,omitempty"`
	Algorithm string `json:"alg,omitempty"`
}

// The curves that we know, and the length of P-256's coordinates.
const (
	curveEd25519   = "Ed25519"
	curveP256      = "P-256"
	p256FieldBytes = 32
)

// jwkOf writes a public key of one of our kinds: Ed25519, P-256 or RSA.
func jwkOf(public crypto.PublicKey, kid, algorithm string) JWK {
	text := base64.RawURLEncoding.EncodeToString
	k := JWK{KeyID: kid, Use: "sig", Algorithm: algorithm}
	switch public := public.(type) {
	case ed25519.PublicKey:
		k.Type, k.Curve, k.X = "OKP", curveEd25519, text(public)
	case *ecdsa.PublicKey:
		k.Type, k.Curve = "EC", curveP256
		if point, err := public.Bytes(); err == nil { // 4, x, y
			k.X, k.Y = text(point[1:1+p256FieldBytes]), text(point[1+p256FieldBytes:])
		}
	case *rsa.PublicKey:
		k.Type, k.N, k.E = "RSA", text(public.N.Bytes()), text(big.NewInt(int64(public.E)).Bytes())
	}
	return k
}

// thumbprint is RFC 7638's, which makes a key id that is the key's own: the members that a key needs, in their order by name.
func thumbprint(public crypto.PublicKey) string {
	k := jwkOf(public, "", "")
	members := map[string]string{"kty": k.Type}
	for name, value := range map[string]string{"crv": k.Curve, "x": k.X, "y": k.Y, "n": k.N, "e": k.E} {
		if value != "" {
			members[name] = value
		}
	}
	raw, _ := json.Marshal(members) // of texts, in order of their names
	sum := sha256.Sum256(raw)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// public reads a key of one of our kinds.
func (k JWK) public() (crypto.PublicKey, bool) {
	raw := func(text string) []byte {
		b, err := base64.RawURLEncoding.DecodeString(text)
		if err != nil {
			return nil
		}
		return b
	}
	switch k.Type {
	case "OKP":
		x := raw(k.X)
		return ed25519.PublicKey(x), k.Curve == curveEd25519 && len(x) == ed25519.PublicKeySize
	case "EC":
		x, y := raw(k.X), raw(k.Y)
		if k.Curve != curveP256 || len(x) != p256FieldBytes || len(y) != p256FieldBytes {
			return nil, false
		}
		public, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), append(append([]byte{4}, x...), y...))
		return public, err == nil
	case "RSA":
		n, e := new(big.Int).SetBytes(raw(k.N)), new(big.Int).SetBytes(raw(k.E))
		return &rsa.PublicKey{N: n, E: int(e.Int64())}, n.Sign() > 0 && e.IsInt64() && e.Int64() <= rsaExponentMax && e.Int64() >= rsaExponentMin
	}
	return nil, false
}

// Bounds of the public exponent of RSA keys.
const (
	rsaExponentMin = 3
	rsaExponentMax = 1<<31 - 1
)
