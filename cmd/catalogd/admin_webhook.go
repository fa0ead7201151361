package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// webhookBody is a webhook as the API gives it.
type webhookBody struct {
	ID         string     `json:"id"`
	URL        string     `json:"url"`
	Catalog    string     `json:"catalog,omitempty"`
	Operations []string   `json:"operations"`
	Subject    string     `json:"subject,omitempty"`
	Enabled    bool       `json:"enabled"`
	CreatedBy  string     `json:"createdBy"`
	CreatedAt  time.Time  `json:"createdAt"`
	Behind     *int64     `json:"behind,omitempty"`
	Waiting    int64      `json:"waiting"`
	Dead       int64      `json:"dead"`
	Failures   int        `json:"failures"`
	Problem    string     `json:"problem,omitempty"`
	Delivered  *time.Time `json:"deliveredAt,omitempty"`
}

// behind is counted up to a bound; the answer to create has none.
func (w webhookBody) behind() string {
	if w.Behind == nil {
		return "0"
	}
	return strconv.FormatInt(*w.Behind, 10)
}

func (w webhookBody) state() string {
	switch {
	case !w.Enabled:
		return "disabled"
	case w.Failures > 0:
		return "failing"
	}
	return "good"
}

// webhookDelivery is an event that a webhook has not got.
type webhookDelivery struct {
	EventID   string     `json:"eventId,omitempty"`
	Operation string     `json:"operation,omitempty"`
	Subject   string     `json:"subject,omitempty"`
	State     string     `json:"state"`
	Attempts  int        `json:"attempts"`
	Problem   string     `json:"problem,omitempty"`
	Since     time.Time  `json:"since"`
	Next      *time.Time `json:"nextAttemptAt,omitempty"`
}

var webhookVerbs = []*command{
	{name: "create", arguments: "URL", summary: "have events sent to an address; shows the secret that they are signed with, once", run: webhookCreate},
	{name: "list", summary: "where events are sent, and how that goes", run: webhookList},
	{name: "show", arguments: "WEBHOOK", summary: "one webhook, and the events that it has not got", run: webhookShow},
	{name: "enable", arguments: "WEBHOOK", summary: "let deliveries go on, at once", run: webhookSwitch(true)},
	{name: "disable", arguments: "WEBHOOK", summary: "stop deliveries; events wait as long as they are kept", run: webhookSwitch(false)},
	{name: "redeliver", arguments: "WEBHOOK", summary: "send an event (--event) once more, or all that were given up", run: webhookRedeliver},
	{name: "test", arguments: "WEBHOOK", summary: "send a message of the type test now", run: webhookTest},
	{name: "delete", arguments: "WEBHOOK", summary: "forget a webhook and what it has not got", run: webhookDelete},
}

const webhookWarehouseHelp = "`name` of the warehouse; without it the whole service is meant (CATALOG_WAREHOUSE does not count here)"

func webhookCreate(ctx context.Context, c *call) error {
	var operations []string
	var subject, secretFile string
	s, err := c.begin(ctx, 1, func(k *connection, fs *flag.FlagSet) {
		k.warehouseFlag(fs, webhookWarehouseHelp)
		fs.Func("operation", "only this `operation`, for example commit-table; may be given several times", func(value string) error {
			operations = append(operations, value)
			return nil
		})
		fs.StringVar(&subject, "subject", "", "only of this `subject`, for example iot.readings")
		fs.StringVar(&secretFile, "write-secret", "", "`file` that the secret is written to, mode 0600, instead of being shown")
	})
	if err != nil {
		return err
	}
	kept, err := openCredentialFile(secretFile) // before the webhook is made: its secret is answered once
	if err != nil {
		return err
	}
	defer kept.abandon()
	var answer struct {
		Webhook webhookBody `json:"webhook"`
		Secret  string      `json:"secret,omitempty"`
	}
	body := map[string]any{"url": s.args[0], "catalog": s.warehouse, "operations": operations, "subject": subject}
	if err := s.do(ctx, http.MethodPost, []string{"webhooks"}, body, &answer); err != nil {
		return err
	}
	show := func() error {
		if s.output == "json" {
			return printJSON(c.Out, answer)
		}
		return printFields(c.Out, append(answer.Webhook.fields(), [2]string{"secret", firstOf(answer.Secret, secretFile)}))
	}
	if secretFile != "" {
		if err := kept.write(answer.Secret); err != nil {
			return errors.Join(fmt.Errorf("the secret is shown, because it could not be written: %w", err), show())
		}
		answer.Secret = ""
	}
	return show()
}

func (w webhookBody) fields() [][2]string {
	return [][2]string{
		{"webhook", w.ID}, {"url", w.URL}, {"warehouse", w.Catalog}, {"operations", strings.Join(w.Operations, ", ")}, {"subject", w.Subject},
		{"state", w.state()}, {"made", w.CreatedAt.UTC().Format(time.RFC3339) + " by " + w.CreatedBy}, {"last delivery", shortTime(w.Delivered)},
		{"behind", w.behind()}, {"waiting", strconv.FormatInt(w.Waiting, 10)}, {"given up", strconv.FormatInt(w.Dead, 10)},
		{"problem", w.Problem},
	}
}

func webhookList(ctx context.Context, c *call) error {
	s, err := c.begin(ctx, 0, func(k *connection, fs *flag.FlagSet) { k.warehouseFlag(fs, webhookWarehouseHelp) })
	if err != nil {
		return err
	}
	query := url.Values{}
	if s.warehouse != "" {
		query.Set("catalog", s.warehouse)
	}
	var answer struct {
		Webhooks []webhookBody `json:"webhooks"`
	}
	if err := s.call(ctx, http.MethodGet, "webhooks?"+query.Encode(), nil, &answer); err != nil {
		return err
	}
	if s.output == "json" {
		return printJSON(c.Out, answer)
	}
	var rows [][]string
	for _, w := range answer.Webhooks {
		rows = append(rows, []string{w.ID, w.URL, w.Catalog, w.state(), shortTime(w.Delivered), strconv.FormatInt(w.Waiting, 10), strconv.FormatInt(w.Dead, 10), w.Problem})
	}
	return printRows(c.Out, []string{"WEBHOOK", "URL", "WAREHOUSE", "STATE", "LAST DELIVERY", "WAITING", "GIVEN UP", "PROBLEM"}, rows)
}

func webhookShow(ctx context.Context, c *call) error {
	s, err := c.begin(ctx, 1)
	if err != nil {
		return err
	}
	var answer struct {
		Webhook    webhookBody       `json:"webhook"`
		Deliveries []webhookDelivery `json:"deliveries"`
	}
	if err := s.do(ctx, http.MethodGet, []string{"webhooks", s.args[0]}, nil, &answer); err != nil {
		return err
	}
	if s.output == "json" {
		return printJSON(c.Out, answer)
	}
	if err := printFields(c.Out, answer.Webhook.fields()); err != nil || len(answer.Deliveries) == 0 {
		return err
	}
	var rows [][]string
	for _, d := range answer.Deliveries {
		rows = append(rows, []string{d.EventID, d.Operation, d.Subject, d.State, strconv.Itoa(d.Attempts), shortTime(&d.Since), shortTime(d.Next), d.Problem})
	}
	fmt.Fprintln(c.Out)
	return printRows(c.Out, []string{"EVENT", "OPERATION", "SUBJECT", "STATE", "ATTEMPTS", "SINCE", "NEXT", "PROBLEM"}, rows)
}

// webhookSwitch enables or disables one.
func webhookSwitch(enabled bool) func(context.Context, *call) error {
	return func(ctx context.Context, c *call) error {
		s, err := c.begin(ctx, 1)
		if err != nil {
			return err
		}
		return s.do(ctx, http.MethodPut, []string{"webhooks", s.args[0]}, map[string]any{"enabled": enabled}, nil)
	}
}

func webhookRedeliver(ctx context.Context, c *call) error {
	event := ""
	s, err := c.begin(ctx, 1, func(_ *connection, fs *flag.FlagSet) {
		fs.StringVar(&event, "event", "", "`uuid` of the event; without it all that were given up")
	})
	if err != nil {
		return err
	}
	body := map[string]any{}
	if event != "" {
		body["eventId"] = event
	}
	var answer struct {
		Redelivered int `json:"redelivered"`
	}
	if err := s.do(ctx, http.MethodPost, []string{"webhooks", s.args[0], "redeliver"}, body, &answer); err != nil {
		return err
	}
	if s.output == "json" {
		return printJSON(c.Out, answer)
	}
	return printFields(c.Out, [][2]string{{"webhook", s.args[0]}, {"sent once more", strconv.Itoa(answer.Redelivered)}})
}

func webhookTest(ctx context.Context, c *call) error {
	s, err := c.begin(ctx, 1)
	if err != nil {
		return err
	}
	var answer struct {
		Delivered bool   `json:"delivered"`
		Problem   string `json:"problem,omitempty"`
	}
	if err := s.do(ctx, http.MethodPost, []string{"webhooks", s.args[0], "test"}, nil, &answer); err != nil {
		return err
	}
	if s.output == "json" {
		err = printJSON(c.Out, answer)
	} else if answer.Delivered {
		fmt.Fprintln(c.Out, "delivered")
	}
	if err == nil && !answer.Delivered {
		err = fmt.Errorf("not delivered: %s", answer.Problem)
	}
	return err
}

func webhookDelete(ctx context.Context, c *call) error {
	s, err := c.begin(ctx, 1)
	if err != nil {
		return err
	}
	return s.do(ctx, http.MethodDelete, []string{"webhooks", s.args[0]}, nil, nil)
}
