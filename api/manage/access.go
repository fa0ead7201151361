package manage

import (
	"net/http"
	"net/url"
	"time"

	"github.com/google/uuid"

	"catalogd/api"
	"catalogd/authz"
	"catalogd/catalog"
)

func (h *handlers) accessRows() []api.Endpoint {
	return []api.Endpoint{
		row(http.MethodGet, "/whoami", "who-am-i", h.whoAmI),
		row(http.MethodPost, "/can-i", "can-i", h.canI),
		row(http.MethodGet, "/who-can", "who-can", h.whoCan),
		row(http.MethodGet, principalRoute+"/reach", "list-reach", h.listReach),
		row(http.MethodGet, catalogRoute+"/owner", "load-owner", h.loadOwner),
		row(http.MethodPut, catalogRoute+"/owner", "set-owner", h.setOwner),
	}
}

// securableBody names a securable: nothing is the service, a catalog alone a warehouse.
type securableBody struct {
	Catalog   string   `json:"catalog,omitempty"`
	Namespace []string `json:"namespace,omitempty"`
	Table     string   `json:"table,omitempty"`
	View      string   `json:"view,omitempty"`
}

func (b securableBody) name() catalog.SecurableName {
	return catalog.SecurableName{Warehouse: b.Catalog, Namespace: b.Namespace, Table: b.Table, View: b.View}
}

// securableAnswer is a securable with its kind.
type securableAnswer struct {
	Type authz.SecurableKind `json:"type"`
	securableBody
}

func newSecurableAnswer(n catalog.SecurableName) securableAnswer {
	return securableAnswer{n.Kind(), securableBody{n.Warehouse, n.Namespace, n.Table, n.View}}
}

// chainAnswer is one way by which a right is held: the principal has principalRole, which has catalogRole, which holds
// the privilege on the securable.
type chainAnswer struct {
	PrincipalRole string          `json:"principalRole"`
	CatalogRole   string          `json:"catalogRole,omitempty"`
	Privilege     authz.Privilege `json:"privilege"`
	On            securableAnswer `json:"on"`
}

func newChainAnswer(g catalog.HeldGrant, on catalog.SecurableName) chainAnswer {
	return chainAnswer{g.PrincipalRole, g.CatalogRole, g.Privilege, newSecurableAnswer(on)}
}

func (h *handlers) whoAmI(w http.ResponseWriter, r *http.Request) error {
	self, err := h.service.WhoAmI(r.Context(), api.CallerOf(r))
	if err != nil {
		return err
	}
	type token struct {
		ID        string     `json:"id"`
		ExpiresAt *time.Time `json:"expiresAt,omitempty"`
		AllRoles  bool       `json:"allRoles"`
	}
	answer := struct {
		Name    string    `json:"name"`
		ID      uuid.UUID `json:"id"`
		Active  []string  `json:"activeRoles"`
		Held    []string  `json:"heldRoles"`
		Token   token     `json:"token"`
		Client  string    `json:"clientAddress"`
		Issuer  string    `json:"issuer,omitempty"`
		Subject string    `json:"subject,omitempty"`
		Actor   string    `json:"actor,omitempty"`
	}{
		Name: self.Principal.Name, ID: self.Principal.ID, Active: api.List(self.Active), Held: api.List(self.Held),
		Token: token{ID: self.Principal.TokenID, AllRoles: self.Principal.Roles.All}, Client: self.Client,
		Issuer: self.Principal.Issuer, Subject: self.Principal.Subject, Actor: self.Principal.ActorName(),
	}
	if at := self.Principal.ExpiresAt; !at.IsZero() {
		at = at.UTC()
		answer.Token.ExpiresAt = &at
	}
	return api.JSON(w, r, http.StatusOK, answer)
}

// questionBody asks for a privilege or an operation.
type questionBody struct {
	Privilege string        `json:"privilege,omitempty"`
	Operation string        `json:"operation,omitempty"`
	On        securableBody `json:"securable"`
}

func (b questionBody) question() catalog.Question {
	return catalog.Question{Privilege: authz.Privilege(b.Privilege), Operation: b.Operation, On: b.On.name()}
}

// answerBody is a question with its answer.
type answerBody struct {
	Privilege string          `json:"privilege,omitempty"`
	Operation string          `json:"operation,omitempty"`
	On        securableAnswer `json:"securable"`
	Allowed   bool            `json:"allowed"`
	Reason    string          `json:"reason"`
	By        []byAnswer      `json:"by"`
	Missing   []lackAnswer    `json:"missing"`
	Commands  []string        `json:"commands"`
}

// byAnswer is a chain and what it was needed for.
type byAnswer struct {
	Needed authz.Privilege `json:"needed"`
	chainAnswer
}

type lackAnswer struct {
	Privilege authz.Privilege `json:"privilege"`
	On        securableAnswer `json:"on"`
}

func newAnswerBody(q questionBody, a catalog.Answer) answerBody {
	body := answerBody{
		Privilege: q.Privilege, Operation: q.Operation, On: newSecurableAnswer(a.On), Allowed: a.Allowed, Reason: a.Reason,
		By: []byAnswer{}, Missing: []lackAnswer{}, Commands: api.List(a.Grants),
	}
	for _, why := range a.By {
		body.By = append(body.By, byAnswer{why.Wanted, newChainAnswer(why.Grant, why.On)})
	}
	for _, lack := range a.Missing {
		body.Missing = append(body.Missing, lackAnswer{lack.Privilege, newSecurableAnswer(lack.On)})
	}
	return body
}

func (h *handlers) canI(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Principal string         `json:"principal"`
		Questions []questionBody `json:"questions"`
	}
	if err := api.DecodeJSON(r, &body); err != nil {
		return err
	}
	api.Annotate(r, "", body.Principal)
	questions := make([]catalog.Question, len(body.Questions))
	for i, q := range body.Questions {
		questions[i] = q.question()
	}
	caller := api.CallerOf(r)
	answers, err := h.service.CanI(r.Context(), caller, body.Principal, questions)
	if err != nil {
		return err
	}
	answer := struct {
		Principal string       `json:"principal"`
		Answers   []answerBody `json:"answers"`
	}{body.Principal, []answerBody{}}
	if answer.Principal == "" {
		answer.Principal = caller.Principal.Name
	}
	for i, a := range answers {
		answer.Answers = append(answer.Answers, newAnswerBody(body.Questions[i], a))
	}
	return api.JSON(w, r, http.StatusOK, answer)
}

// accessPaging reads how a list of these is wanted: always in pages.
func accessPaging(query url.Values) (api.Paging, error) {
	if !query.Has("pageToken") {
		query.Set("pageToken", "")
	}
	return pagingOf(query)
}

func (h *handlers) whoCan(w http.ResponseWriter, r *http.Request) error {
	query, err := api.Query(r)
	if err != nil {
		return err
	}
	on := catalog.SecurableName{
		Warehouse: query.Get("catalog"), Namespace: levelsOf(query.Get("namespace")), Table: query.Get("table"), View: query.Get("view"),
	}
	api.Annotate(r, on.Warehouse, on.String())
	paging, err := accessPaging(query)
	if err != nil {
		return err
	}
	found, err := h.service.WhoCan(r.Context(), api.CallerOf(r), catalog.Question{
		Privilege: authz.Privilege(query.Get("privilege")), Operation: query.Get("operation"), On: on,
	}, paging.Page())
	if err != nil {
		return err
	}
	type access struct {
		Principal string        `json:"principal"`
		By        []chainAnswer `json:"by"`
	}
	who, next := api.CutPage(paging, found.Who, func(a catalog.Access) string { return a.Principal })
	answer := struct {
		On         securableAnswer `json:"securable"`
		Principals []access        `json:"principals"`
		Next       *string         `json:"next-page-token"`
	}{newSecurableAnswer(found.On), []access{}, next}
	for _, one := range who {
		a := access{Principal: one.Principal}
		for _, g := range one.By {
			a.By = append(a.By, newChainAnswer(g, found.NameOf(g)))
		}
		answer.Principals = append(answer.Principals, a)
	}
	return api.JSON(w, r, http.StatusOK, answer)
}

func (h *handlers) listReach(w http.ResponseWriter, r *http.Request) error {
	principal, err := param(r, "principal")
	if err != nil {
		return err
	}
	query, err := api.Query(r)
	if err != nil {
		return err
	}
	paging, err := accessPaging(query)
	if err != nil {
		return err
	}
	found, err := h.service.Reach(r.Context(), api.CallerOf(r), principal, query.Get("catalog"), paging.Page())
	if err != nil {
		return err
	}
	type reached struct {
		On         securableAnswer   `json:"securable"`
		Privileges []authz.Privilege `json:"privileges"`
		By         []chainAnswer     `json:"by"`
	}
	found, next := api.CutPage(paging, found, func(r catalog.Reached) string { return catalog.PageKey(r.Key) })
	answer := struct {
		Principal  string    `json:"principal"`
		Securables []reached `json:"securables"`
		Next       *string   `json:"next-page-token"`
	}{principal, []reached{}, next}
	for _, one := range found {
		a := reached{On: newSecurableAnswer(one.Name()), Privileges: api.List(one.Effective())}
		for _, g := range one.By {
			a.By = append(a.By, newChainAnswer(g, one.Name()))
		}
		answer.Securables = append(answer.Securables, a)
	}
	return api.JSON(w, r, http.StatusOK, answer)
}
