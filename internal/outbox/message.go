// Package outbox sends committed events to webhooks: at least once, and those of one table in order. An event is written
// with its change, in one transaction; whatever dies afterwards, a deliverer finds it again. Messages are signed as
// Standard Webhooks has it (standardwebhooks.com): the receiver checks webhook-signature, and drops what it has seen by
// webhook-id.
package outbox

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"

	"catalogd/catalog"
)

// messageBytesMax bounds a message's body. An event whose details do not fit goes without them.
const messageBytesMax = 64 << 10

// The headers of a message.
const (
	headerID        = "webhook-id"
	headerTimestamp = "webhook-timestamp"
	headerSignature = "webhook-signature"
)

// message is the body.
type message struct {
	Type      string    `json:"type"` // the operation
	Timestamp time.Time `json:"timestamp"`
	Data      data      `json:"data"`
}

type data struct {
	ID        uuid.UUID       `json:"id"`
	Sequence  int64           `json:"sequence,omitempty"` // grows from event to event of one securable
	Operation string          `json:"operation"`
	Principal string          `json:"principal,omitempty"`
	Catalog   string          `json:"catalog,omitempty"`
	CatalogID *uuid.UUID      `json:"catalogId,omitempty"`
	Subject   string          `json:"subject"`
	Securable *uuid.UUID      `json:"securableId,omitempty"`
	Details   json.RawMessage `json:"details,omitempty"`
	Truncated bool            `json:"truncated,omitempty"`
}

// bodyOf writes an event as a message's body; the same event is always the same body.
func bodyOf(e catalog.EventRow) ([]byte, error) {
	m := message{Type: e.Operation, Timestamp: e.At.UTC(), Data: data{
		ID: e.ID, Sequence: e.Turn, Operation: e.Operation, Principal: e.Principal, Catalog: e.Warehouse, CatalogID: known(e.WarehouseID),
		Subject: e.Subject, Securable: known(e.SecurableID), Details: e.Details,
	}}
	body, err := json.Marshal(m)
	if err == nil && len(body) > messageBytesMax {
		m.Data.Details, m.Data.Truncated = nil, true
		body, err = json.Marshal(m)
	}
	if err != nil {
		return nil, fmt.Errorf("encode event %s: %w", e.ID, err)
	}
	return body, nil
}

func known(id uuid.UUID) *uuid.UUID {
	if id == uuid.Nil {
		return nil
	}
	return &id
}

// signature signs what is sent at a moment: id, moment and body, so that none of them can be changed and an old message
// cannot be sent again as a new one.
func signature(secret []byte, id string, at time.Time, body []byte) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(id + "." + strconv.FormatInt(at.Unix(), 10) + "."))
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
