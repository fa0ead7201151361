package manage

import (
	"net/http"
	"time"

	"catalogd/api"
	"catalogd/auth"
	"catalogd/catalog"
	"catalogd/internal/fault"
)

const (
	tokensRoute  = principalRoute + "/tokens"
	tokenRoute   = tokensRoute + "/{token}"
	networkRoute = "/network-policy"
)

func (h *handlers) tokenRows() []api.Endpoint {
	return []api.Endpoint{
		row(http.MethodGet, tokensRoute, "list-personal-tokens", load(named("principal"), h.service.ListPersonalTokens, answerTokens)),
		row(http.MethodPost, tokensRoute, "create-personal-token", h.createToken),
		row(http.MethodGet, tokenRoute, "load-personal-token", load(namedToken, h.service.FindPersonalToken, shown(newTokenAnswer))),
		row(http.MethodDelete, tokenRoute, "revoke-personal-token", drop(namedToken, h.service.DropPersonalToken)),
		row(http.MethodPost, tokenRoute+"/rotate", "rotate-personal-token", h.rotateToken),
		row(http.MethodPost, principalRoute+"/revoke-tokens", "revoke-tokens", h.revokeTokens),
		row(http.MethodGet, principalRoute+networkRoute, "load-network-policy", load(named("principal"), h.service.FindNetworkPolicy, answerNetworks)),
		row(http.MethodPut, principalRoute+networkRoute, "set-network-policy", h.setNetworks(named("principal"))),
		row(http.MethodGet, networkRoute, "load-server-network-policy", load(theServer, h.service.FindNetworkPolicy, answerNetworks)),
		row(http.MethodPut, networkRoute, "set-server-network-policy", h.setNetworks(theServer)),
	}
}

func namedToken(r *http.Request) (catalog.PersonalTokenName, error) {
	names, err := params(r, "principal", "token")
	if err != nil {
		return catalog.PersonalTokenName{}, err
	}
	return catalog.PersonalTokenName{Principal: names[0], ID: names[1]}, nil
}

// theServer is the name of what has no name in the path.
func theServer(*http.Request) (string, error) { return "", nil }

// tokenAnswer is a personal access token without its text. Times are milliseconds.
type tokenAnswer struct {
	ID           string    `json:"id"`
	Name         string    `json:"name"`
	Roles        []string  `json:"roles"`
	Networks     []string  `json:"networks"`
	CreatedBy    string    `json:"createdBy"`
	CreatedAt    int64     `json:"createTimestamp"`
	RotatedAt    int64     `json:"rotateTimestamp,omitempty"`
	ExpiresAt    int64     `json:"expireTimestamp"`
	OverlapUntil int64     `json:"overlapTimestamp,omitempty"`
	LastUse      *tokenUse `json:"lastUse,omitempty"`
}

type tokenUse struct {
	At      int64  `json:"timestamp"`
	Address string `json:"address"`
	Client  string `json:"client"`
}

func newTokenAnswer(t catalog.PersonalTokenRecord) tokenAnswer {
	a := tokenAnswer{
		ID: t.ID.String(), Name: t.Name, Roles: append([]string{}, t.Roles...), Networks: []string{}, CreatedBy: t.CreatedBy,
		CreatedAt: t.CreatedAt.UnixMilli(), RotatedAt: milliseconds(t.RotatedAt), ExpiresAt: t.ExpiresAt.UnixMilli(),
		OverlapUntil: milliseconds(t.OverlapUntil),
	}
	for _, n := range t.Networks {
		a.Networks = append(a.Networks, n.String())
	}
	if !t.LastUse.At.IsZero() {
		a.LastUse = &tokenUse{t.LastUse.At.UnixMilli(), t.LastUse.Address, t.LastUse.Client}
	}
	return a
}

func milliseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func answerTokens(w http.ResponseWriter, r *http.Request, all []catalog.PersonalTokenRecord) error {
	answer := struct {
		Tokens []tokenAnswer `json:"tokens"`
	}{[]tokenAnswer{}}
	for _, t := range all {
		answer.Tokens = append(answer.Tokens, newTokenAnswer(t))
	}
	return api.JSON(w, r, http.StatusOK, answer)
}

// answerTokenText shows a token with its text: the only answer that holds one.
func answerTokenText(w http.ResponseWriter, r *http.Request, status int, t catalog.PersonalTokenRecord, text auth.Secret) error {
	api.NoStore(w)
	return api.JSON(w, r, status, struct {
		Token  tokenAnswer `json:"token"`
		Secret string      `json:"secret"`
	}{newTokenAnswer(t), text.Reveal()})
}

func (h *handlers) createToken(w http.ResponseWriter, r *http.Request) error {
	name, err := param(r, "principal")
	if err != nil {
		return err
	}
	var body struct {
		Name     string   `json:"name"`
		Roles    []string `json:"roles"`
		Networks []string `json:"networks"`
		Days     *int     `json:"expiresInDays"`
	}
	if err := api.DecodeJSON(r, &body); err != nil {
		return err
	}
	days, err := daysOf(body.Days)
	if err != nil {
		return err
	}
	t, text, err := h.service.CreatePersonalToken(r.Context(), api.CallerOf(r), name, catalog.PersonalTokenDraft{
		Name: body.Name, Roles: body.Roles, Networks: body.Networks, Days: days,
	})
	if err != nil {
		return err
	}
	return answerTokenText(w, r, http.StatusCreated, t, text)
}

// daysOf gives what a body says of a token's life: 0 when it says nothing. A life that is said is a day at least.
func daysOf(days *int) (int, error) {
	switch {
	case days == nil:
		return 0, nil
	case *days == 0:
		return 0, fault.New(fault.BadRequest, "expiresInDays is 0; it must be 1 to %d", catalog.PersonalTokenDaysMax)
	}
	return *days, nil
}

// rotateToken takes a body or none.
func (h *handlers) rotateToken(w http.ResponseWriter, r *http.Request) error {
	name, err := namedToken(r)
	if err != nil {
		return err
	}
	var body struct {
		OverlapHours int  `json:"overlapHours"`
		Days         *int `json:"expiresInDays"`
	}
	if r.ContentLength != 0 {
		if err := api.DecodeJSON(r, &body); err != nil {
			return err
		}
	}
	days, err := daysOf(body.Days)
	if err != nil {
		return err
	}
	t, text, err := h.service.RotatePersonalToken(r.Context(), api.CallerOf(r), name, catalog.PersonalTokenChange{
		OverlapHours: body.OverlapHours, Days: days,
	})
	if err != nil {
		return err
	}
	return answerTokenText(w, r, http.StatusOK, t, text)
}

// revokeTokens takes a body or none.
func (h *handlers) revokeTokens(w http.ResponseWriter, r *http.Request) error {
	name, err := param(r, "principal")
	if err != nil {
		return err
	}
	var body struct {
		TokenID  string `json:"tokenId"`
		Personal bool   `json:"personalAccessTokens"`
	}
	if r.ContentLength != 0 {
		if err := api.DecodeJSON(r, &body); err != nil {
			return err
		}
	}
	which := catalog.TokensRevoked{TokenID: body.TokenID, Personal: body.Personal}
	if err := h.service.RevokeTokens(r.Context(), api.CallerOf(r), name, which); err != nil {
		return err
	}
	return api.NoContent(w)
}

type networksAnswer struct {
	Allowed []string `json:"allowed"`
	Blocked []string `json:"blocked"`
}

func answerNetworks(w http.ResponseWriter, r *http.Request, p auth.NetworkPolicy) error {
	answer := networksAnswer{[]string{}, []string{}}
	for _, n := range p.Allowed {
		answer.Allowed = append(answer.Allowed, n.String())
	}
	for _, n := range p.Blocked {
		answer.Blocked = append(answer.Blocked, n.String())
	}
	return api.JSON(w, r, http.StatusOK, answer)
}

func (h *handlers) setNetworks(name nameFunc[string]) api.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		principal, err := name(r)
		if err != nil {
			return err
		}
		var body struct {
			networksAnswer
			LockOut bool `json:"lockOut"`
		}
		if err := api.DecodeJSON(r, &body); err != nil {
			return err
		}
		p, err := h.service.SetNetworkPolicy(r.Context(), api.CallerOf(r), principal, catalog.NetworkPolicyDraft{
			Allowed: body.Allowed, Blocked: body.Blocked, LockOut: body.LockOut,
		})
		if err != nil {
			return err
		}
		return answerNetworks(w, r, p)
	}
}
