package manage

import (
	"encoding/json"
	"net/http"
	"time"

	"catalogd/api"
	"catalogd/auth"
	"catalogd/catalog"
	"catalogd/internal/fault"
)

func (h *handlers) keyRows() []api.Endpoint {
	return []api.Endpoint{
		row(http.MethodGet, "/signing-keys", "list-signing-keys", h.listSigningKeys),
		row(http.MethodPost, "/signing-keys/rotate", "rotate-signing-keys", h.rotateSigningKeys),
		row(http.MethodGet, principalRoute+"/keys", "list-principal-keys", h.listClientKeys),
		row(http.MethodPost, principalRoute+"/keys", "add-principal-key", h.addClientKey),
		row(http.MethodDelete, principalRoute+"/keys/{key}", "remove-principal-key", h.removeClientKey),
	}
}

// signingKeyAnswer is a signing key without its private half.
type signingKeyAnswer struct {
	KID           string     `json:"kid"`
	Algorithm     string     `json:"algorithm"`
	State         string     `json:"state"`
	CreatedAt     time.Time  `json:"createdAt"`
	SignsFrom     time.Time  `json:"signsFrom"`
	RetiredAt     *time.Time `json:"retiredAt,omitempty"`
	VerifiesUntil *time.Time `json:"verifiesUntil,omitempty"`
}

func answerSigningKeys(w http.ResponseWriter, r *http.Request, keys []auth.StoredKey) error {
	answer := struct {
		Keys []signingKeyAnswer `json:"keys"`
	}{[]signingKeyAnswer{}}
	now := time.Now()
	for _, k := range keys {
		a := signingKeyAnswer{KID: k.KID, Algorithm: k.Algorithm, State: k.State(now), CreatedAt: k.CreatedAt, SignsFrom: k.SignsFrom}
		if k.SignsFrom.IsZero() {
			a.SignsFrom = k.CreatedAt
		}
		if !k.RetiredAt.IsZero() {
			until := k.VerifiesUntil()
			a.RetiredAt, a.VerifiesUntil = &k.RetiredAt, &until
		}
		answer.Keys = append(answer.Keys, a)
	}
	return api.JSON(w, r, http.StatusOK, answer)
}

func (h *handlers) listSigningKeys(w http.ResponseWriter, r *http.Request) error {
	keys, err := h.service.SigningKeys(r.Context(), api.CallerOf(r))
	if err != nil {
		return err
	}
	return answerSigningKeys(w, r, keys)
}

// rotateSigningKeys takes a body or none.
func (h *handlers) rotateSigningKeys(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		EndTokens bool `json:"endTokens"`
	}
	if r.ContentLength != 0 {
		if err := api.DecodeJSON(r, &body); err != nil {
			return err
		}
	}
	others := catalog.RetireOtherKeys
	if body.EndTokens {
		others = catalog.RemoveOtherKeys
	}
	keys, err := h.service.RotateSigningKeys(r.Context(), api.CallerOf(r), others)
	if err != nil {
		return err
	}
	return answerSigningKeys(w, r, keys)
}

// clientKeyAnswer is a principal's public key.
type clientKeyAnswer struct {
	KID       string     `json:"kid"`
	Algorithm string     `json:"algorithm"`
	CreatedAt time.Time  `json:"createdAt"`
	ExpiresAt *time.Time `json:"expiresAt,omitempty"`
	Expired   bool       `json:"expired"`
	Key       auth.JWK   `json:"key"`
}

func newClientKeyAnswer(k auth.ClientKey) (clientKeyAnswer, error) {
	jwk, err := k.JWK()
	a := clientKeyAnswer{KID: k.ID, Algorithm: k.Algorithm, CreatedAt: k.CreatedAt, Expired: !k.Live(time.Now()), Key: jwk}
	if !k.EndsAt.IsZero() {
		a.ExpiresAt = &k.EndsAt
	}
	return a, err
}

func (h *handlers) listClientKeys(w http.ResponseWriter, r *http.Request) error {
	name, err := param(r, "principal")
	if err != nil {
		return err
	}
	keys, err := h.service.ClientKeys(r.Context(), api.CallerOf(r), name)
	if err != nil {
		return err
	}
	answer := struct {
		Keys []clientKeyAnswer `json:"keys"`
	}{[]clientKeyAnswer{}}
	for _, k := range keys {
		a, err := newClientKeyAnswer(k)
		if err != nil {
			return err
		}
		answer.Keys = append(answer.Keys, a)
	}
	return api.JSON(w, r, http.StatusOK, answer)
}

// addClientKey takes the key as a text (PEM, or a JWK in it) or as the JWK's object.
func (h *handlers) addClientKey(w http.ResponseWriter, r *http.Request) error {
	name, err := param(r, "principal")
	if err != nil {
		return err
	}
	var body struct {
		Key       json.RawMessage `json:"key"`
		ExpiresAt time.Time       `json:"expiresAt"`
	}
	if err := api.DecodeJSON(r, &body); err != nil {
		return err
	}
	if len(body.Key) == 0 {
		return missing("key")
	}
	draft := catalog.ClientKeyDraft{Text: string(body.Key), EndsAt: body.ExpiresAt}
	if body.Key[0] == '"' {
		if err := json.Unmarshal(body.Key, &draft.Text); err != nil {
			return fault.New(fault.BadRequest, "key is not a correct text")
		}
	}
	key, err := h.service.AddClientKey(r.Context(), api.CallerOf(r), name, draft)
	if err != nil {
		return err
	}
	answer, err := newClientKeyAnswer(key)
	if err != nil {
		return err
	}
	return api.JSON(w, r, http.StatusCreated, answer)
}

func (h *handlers) removeClientKey(w http.ResponseWriter, r *http.Request) error {
	names, err := params(r, "principal", "key")
	if err != nil {
		return err
	}
	if err := h.service.RemoveClientKey(r.Context(), api.CallerOf(r), names[0], names[1]); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
