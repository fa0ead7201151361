package auth

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"log/slog"

	"catalogd/internal/fault"
)

const (
	ringKeyBytes   = 32
	ringIDBytes    = 4
	sealVersion    = 1
	nonceBytes     = 12
	sealPrefix     = 1 + ringIDBytes + nonceBytes
	ringInfoID     = "catalogd ring key id v1"
	ringInfoCipher = "catalogd ring cipher v1"
	ringInfoMAC    = "catalogd ring mac v1"
)

// Ring is the server's own key (setting secrets.key) and the keys before it. It encrypts what must be read back
// and authenticates what must only be recognised. What an older key made stays readable while that key is listed
// in secrets.previous_keys; new things are made with the current key.
type Ring struct {
	keys []ringKey // current first
}

type ringKey struct {
	id     []byte
	cipher cipher.AEAD
	mac    []byte
}

// Place says where an encrypted value is kept. It is part of what is authenticated, so that nobody who can write to
// the database can move a value to another row.
type Place struct {
	Table string
	Row   string
}

// NewRing makes a ring of base64 keys of 32 bytes each, the current one first.
func NewRing(current string, previous ...string) (*Ring, error) {
	r := &Ring{}
	for i, text := range append([]string{current}, previous...) {
		raw, err := base64.StdEncoding.DecodeString(text)
		if err != nil || len(raw) != ringKeyBytes {
			setting := "secrets.key"
			if i > 0 {
				setting = "secrets.previous_keys"
			}
			return nil, fault.New(fault.IllegalArgument, "%s must be %d bytes in base64 (openssl rand -base64 32)", setting, ringKeyBytes)
		}
		key, err := newRingKey(raw)
		if err != nil {
			return nil, err
		}
		r.keys = append(r.keys, key)
	}
	return r, nil
}

// NewRingKey makes the text of a fresh key.
func NewRingKey() string {
	raw := make([]byte, ringKeyBytes)
	_, _ = rand.Read(raw) // never fails: the runtime ends the process instead
	return base64.StdEncoding.EncodeToString(raw)
}

func newRingKey(raw []byte) (ringKey, error) {
	derive := func(info string, length int) ([]byte, error) { return hkdf.Key(sha256.New, raw, nil, info, length) }
	id, err := derive(ringInfoID, ringIDBytes)
	if err != nil {
		return ringKey{}, fault.Wrap(fault.Internal, err, "derive keys")
	}
	cipherKey, err := derive(ringInfoCipher, ringKeyBytes)
	if err != nil {
		return ringKey{}, fault.Wrap(fault.Internal, err, "derive keys")
	}
	mac, err := derive(ringInfoMAC, ringKeyBytes)
	if err != nil {
		return ringKey{}, fault.Wrap(fault.Internal, err, "derive keys")
	}
	block, err := aes.NewCipher(cipherKey)
	if err != nil {
		return ringKey{}, fault.Wrap(fault.Internal, err, "derive keys")
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return ringKey{}, fault.Wrap(fault.Internal, err, "derive keys")
	}
	return ringKey{id: id, cipher: aead, mac: mac}, nil
}

// LogValue hides the keys.
func (*Ring) LogValue() slog.Value { return slog.StringValue("***") }

// String hides the keys.
func (*Ring) String() string { return "***" }

// Seal encrypts a value for its place: version, key id, nonce, ciphertext.
func (r *Ring) Seal(at Place, plain []byte) []byte {
	key := r.keys[0]
	blob := make([]byte, sealPrefix, sealPrefix+len(plain)+key.cipher.Overhead())
	blob[0] = sealVersion
	copy(blob[1:], key.id)
	nonce := blob[1+ringIDBytes : sealPrefix]
	_, _ = rand.Read(nonce)
	return key.cipher.Seal(blob, nonce, plain, sealedWith(at, blob))
}

// Open gives back what Seal was given. fault.Internal when no key of the ring made the blob or when it was made for
// another place.
func (r *Ring) Open(at Place, blob []byte) ([]byte, error) {
	if len(blob) < sealPrefix || blob[0] != sealVersion {
		return nil, fault.New(fault.Internal, "the encrypted value in %s %s has a form that this version does not know", at.Table, at.Row)
	}
	key, ok := r.key(blob[1 : 1+ringIDBytes])
	if !ok {
		return nil, fault.New(fault.Internal,
			"the encrypted value in %s %s was made with a key that is neither secrets.key nor in secrets.previous_keys", at.Table, at.Row)
	}
	plain, err := key.cipher.Open(nil, blob[1+ringIDBytes:sealPrefix], blob[sealPrefix:], sealedWith(at, blob))
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "the encrypted value in %s %s is damaged or belongs elsewhere", at.Table, at.Row)
	}
	return plain, nil
}

func (r *Ring) key(id []byte) (ringKey, bool) {
	for _, key := range r.keys {
		if bytes.Equal(key.id, id) {
			return key, true
		}
	}
	return ringKey{}, false
}

// sealedWith is the associated data: the blob's own head and the place, with a length so that no table's name runs
// into a row's.
func sealedWith(at Place, blob []byte) []byte {
	data := append([]byte(nil), blob[:1+ringIDBytes]...)
	data = binary.BigEndian.AppendUint32(data, uint32(len(at.Table)))
	data = append(data, at.Table...)
	return append(data, at.Row...)
}

func (k ringKey) sum(parts ...[]byte) []byte {
	h := hmac.New(sha256.New, k.mac)
	for _, part := range parts {
		h.Write(part)
	}
	return h.Sum(nil)
}

// IsCurrent tells that the current key made a sealed value, not one before it.
func (r *Ring) IsCurrent(blob []byte) bool {
	return len(blob) >= sealPrefix && bytes.Equal(blob[1:1+ringIDBytes], r.keys[0].id)
}
