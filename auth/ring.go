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
	ringInfoCursor = "catalogd ring cursor cipher v1"
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
	// cursors is apart: there are so many of them that their random nonces would wear out the other.
	cursors cipher.AEAD
	mac     []byte
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
	mac, err := derive(ringInfoMAC, ringKeyBytes)
	if err != nil {
		return ringKey{}, fault.Wrap(fault.Internal, err, "derive keys")
	}
	aead := func(info string) (cipher.AEAD, error) {
		key, err := derive(info, ringKeyBytes)
		if err != nil {
			return nil, err
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, err
		}
		return cipher.NewGCM(block)
	}
	k := ringKey{id: id, mac: mac}
	if k.cipher, err = aead(ringInfoCipher); err == nil {
		k.cursors, err = aead(ringInfoCursor)
	}
	if err != nil {
		return ringKey{}, fault.Wrap(fault.Internal, err, "derive keys")
	}
	return k, nil
}

// LogValue hides the keys.
func (*Ring) LogValue() slog.Value { return slog.StringValue("***") }

// String hides the keys.
func (*Ring) String() string { return "***" }

// Seal encrypts a value for its place: version, key id, nonce, ciphertext.
func (r *Ring) Seal(at Place, plain []byte) []byte {
	return r.keys[0].seal(r.keys[0].cipher, at, plain)
}

func (k ringKey) seal(with cipher.AEAD, at Place, plain []byte) []byte {
	blob := make([]byte, sealPrefix, sealPrefix+len(plain)+with.Overhead())
	blob[0] = sealVersion
	copy(blob[1:], k.id)
	nonce := blob[1+ringIDBytes : sealPrefix]
	_, _ = rand.Read(nonce)
	return with.Seal(blob, nonce, plain, sealedWith(at, blob))
}

// cursorsPlace is what cursors are encrypted for: nothing in the database.
const cursorsPlace = "cursors"

// SealCursor encrypts a number that is only of use to who gave it out, for a kind of list. The same number looks another
// way each time, and all of a kind are equally long.
func (r *Ring) SealCursor(kind string, n int64) []byte {
	return r.keys[0].seal(r.keys[0].cursors, Place{cursorsPlace, kind}, binary.BigEndian.AppendUint64(nil, uint64(n)))
}

// OpenCursor gives back what SealCursor was given; false when no key of the ring made the cursor, or for another kind.
func (r *Ring) OpenCursor(kind string, blob []byte) (n int64, ok bool) {
	if len(blob) < sealPrefix || blob[0] != sealVersion {
		return 0, false
	}
	key, ok := r.key(blob[1 : 1+ringIDBytes])
	if !ok {
		return 0, false
	}
	plain, err := key.cursors.Open(nil, blob[1+ringIDBytes:sealPrefix], blob[sealPrefix:], sealedWith(Place{cursorsPlace, kind}, blob))
	if err != nil || len(plain) != 8 {
		return 0, false
	}
	return int64(binary.BigEndian.Uint64(plain)), true
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
