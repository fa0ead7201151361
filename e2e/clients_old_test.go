package e2e

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

// A client that is older than a table's format fails by itself, with a right answer in its hands; what it says is in
// docs/compatibility.md, and the server's log says which client it was.
func TestField_C186_OldReadersOfVersion3(t *testing.T) {
	t.Parallel()
	plain := fileServer(t)
	s := recorded(t, plain, "old readers")
	r := plain.rest(t)
	if status, raw := r.call("POST", "/dev/namespaces", object{"namespace": []string{"old_readers"}}); status != 200 {
		t.Fatalf("%d %s", status, raw)
	}
	for name, version := range map[string]string{"two": "2", "three": "3"} {
		status, raw := r.call("POST", "/dev/namespaces/old_readers/tables", object{"name": name, "schema": goodSchema(),
			"properties": object{"format-version": version}})
		if status != 200 {
			t.Fatalf("%d %s", status, raw)
		}
	}
	for _, c := range []struct {
		e            engine
		script, says string
	}{
		{spark35(t), "stories/engine_spark.py", "Cannot read unsupported version 3"},
		{pyicebergOld(t), "stories/load_pyiceberg.py", "Input tag '3' found"},
	} {
		name := c.e.title
		if out, err := c.e.attempt(t, s, c.script, "read:old_readers.two"); err != nil || !strings.Contains(out, "old_readers.two 0") {
			t.Errorf("%s cannot read version 2: %v\n%s", name, err, tail(out, 40))
		}
		out, err := c.e.attempt(t, s, c.script, "read:old_readers.three")
		if err == nil || !strings.Contains(out, c.says) {
			t.Errorf("%s on version 3 ended with %v and does not say %q:\n%s", name, err, c.says, tail(out, 40))
		}
		t.Logf("%s on version 3: %s", name, lineWith(out, c.says))
	}
	log := plain.log.String()
	for _, client := range []string{"Apache Iceberg 1.6.1", "PyIceberg/0.5.1"} {
		if !strings.Contains(log, client) {
			t.Errorf("the server's log does not name %s", client)
		}
	}
}

// lineWith gives the first line that holds the text.
func lineWith(out, text string) string {
	for line := range strings.Lines(out) {
		if strings.Contains(line, text) {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// serviceUser makes a principal that may work with the warehouse's content and gives the server as it sees it.
func (s *server) serviceUser(t *testing.T, name string) *server {
	t.Helper()
	var made struct {
		Credentials struct {
			ID     string `json:"clientId"`
			Secret string `json:"clientSecret"`
		} `json:"credentials"`
	}
	out := s.catalogd(t, "principal", "create", name, "--output", "json")
	if err := json.Unmarshal([]byte(out), &made); err != nil || made.Credentials.Secret == "" {
		t.Fatalf("principal create printed %d bytes: %v", len(out), err)
	}
	w := s.env["CATALOG_WAREHOUSE"]
	for _, command := range [][]string{
		{"role", "create", name + "_people"}, {"role", "assign", name + "_people", "--principal", name},
		{"role", "create", name + "_content", "-w", w}, {"grant", "create", "CATALOG_MANAGE_CONTENT", "-w", w, "--role", name + "_content"},
		{"role", "assign", name + "_content", "-w", w, "--principal-role", name + "_people"},
	} {
		s.catalogd(t, command...)
	}
	other := *s
	other.env = map[string]string{}
	for key, value := range s.env {
		if strings.HasPrefix(key, "CATALOG_") {
			other.env[key] = value
		}
	}
	other.env["CATALOG_CREDENTIAL"] = made.Credentials.ID + ":" + made.Credentials.Secret
	return &other
}

// Story S2: a VARIANT column in a table of format version 3, by Spark 4 as a service user, on S3 with vended
// credentials. Our worker refuses to rewrite variants and says which column; Spark's own compaction keeps values and ids.
func TestStory_VariantInVersion3(t *testing.T) {
	t.Parallel()
	s := s3Server(t)
	user := recorded(t, s.serviceUser(t, "variant_writer"), "variants")
	sp := spark(t)
	sp.env = append(sp.env, "SPARK_IO=org.apache.iceberg.aws.s3.S3FileIO")
	const table = "ice.myns.variant_demo"
	insert := "sql:INSERT INTO " + table + ` SELECT event_id, device_id, event_ts, parse_json(payload) FROM VALUES
		('e1', 'd1', timestamp'2026-01-01 00:00:00', '{"temperature":23.5,"humidity":62.1,"location":{"city":"Osaka"},"tags":["indoor","floor3"]}'),
		('e2', 'd2', timestamp'2026-01-01 00:01:00', '{"temperature":26.25,"humidity":40.0,"location":{"city":"東京"},"tags":["outdoor"]}'),
		('e3', 'd3', timestamp'2026-01-01 00:02:00', '{"temperature":19.0,"humidity":50.5,"location":{"city":"Kyoto"}}')
		AS t(event_id, device_id, event_ts, payload)`
	questions := []string{
		"sql:SELECT 'rows', count(*), count(DISTINCT _row_id) FROM " + table,
		"sql:SELECT 'temperatures', sum(variant_get(payload, '$.temperature', 'DOUBLE')) FROM " + table,
		"sql:SELECT 'city', variant_get(payload, '$.location.city', 'STRING') FROM " + table + " WHERE event_id = 'e2' LIMIT 1",
		"sql:SELECT 'no tag', count(*) FROM " + table + " WHERE variant_get(payload, '$.tags[0]', 'STRING') IS NULL",
		"sql:SELECT 'warm', count(*) FROM " + table + " WHERE variant_get(payload, '$.temperature', 'DOUBLE') > 25.0",
		"sql:SELECT 'ids', event_id, _row_id, _last_updated_sequence_number FROM " + table + " ORDER BY _row_id",
	}
	answers := []string{"rows 6 6", "temperatures 137.5", "city 東京", "no tag 2", "warm 2"}
	out := sp.run(t, user, "stories/engine_spark.py", append([]string{
		"sql:CREATE NAMESPACE IF NOT EXISTS ice.myns",
		"sql:CREATE TABLE IF NOT EXISTS " + table + ` (event_id STRING NOT NULL, device_id STRING NOT NULL, event_ts TIMESTAMP NOT NULL,
			payload VARIANT NOT NULL) USING iceberg TBLPROPERTIES ('format-version'='3')`, insert, insert}, questions...)...)
	wantLines(t, out, answers...)
	ids := linesWith(out, "ids")
	if len(ids) != 6 {
		t.Fatalf("no row ids in\n%s", tail(out, 60))
	}
	refused := exec.Command(binary(t), "maintenance", "run", "-w", "dev", "myns.variant_demo", "--wait", "--output", "json")
	refused.Env = cleanEnv()
	for key, value := range s.env {
		refused.Env = append(refused.Env, key+"="+value)
	}
	var job jobAnswer
	raw, err := refused.Output()
	if jsonErr := json.Unmarshal(raw, &job); err == nil || jsonErr != nil || job.State != "refused" || !strings.Contains(job.Reason.Message, `"payload"`) {
		t.Errorf("compaction ended with %v as %+v, wanted a refusal that names the column (%v)", err, job, jsonErr)
	}
	out = sp.run(t, user, "stories/engine_spark.py", append([]string{
		"sql:CALL ice.system.rewrite_data_files(table => 'myns.variant_demo', options => map('rewrite-all', 'true'))"},
		append(questions, "sql:SELECT 'files', count(*) FROM "+table+".files WHERE content = 0")...)...)
	wantLines(t, out, append(answers, "files 1")...)
	if after := linesWith(out, "ids"); fmt.Sprint(after) != fmt.Sprint(ids) {
		t.Errorf("rows and their ids were %v and are %v", ids, after)
	}
}
