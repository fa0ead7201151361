package catalog_test

import (
	"fmt"
	"strings"
	"testing"

	"catalogd/internal/fault"
)

// A refusal speaks of the report and not of how it is read.
func TestReportMetrics_RefusesWhatIsNoReport(t *testing.T) {
	b := newBench(t)
	b.mustCreate("t")
	for body, want := range map[string]string{
		`{"report-type":"scan-report","new":[1]}`: "", `{"report-type":"of another kind"}`: "",
		`{`: "not a JSON object", `[]`: "not a JSON object", `{"report-type":5}`: "not a JSON object", `{}`: "no report-type", `null`: "no report-type",
	} {
		err := b.ReportMetrics(ctx, system, "w", id("t"), []byte(body))
		if want == "" && err != nil {
			t.Errorf("%s: %v", body, err)
		}
		if message := fault.Message(err); want != "" && (!fault.Is(err, fault.BadRequest) || !strings.Contains(message, want) || strings.Contains(message, "Go ")) {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// Readers of JSON stop at some depth, most at 1,000: one report that is deeper would hide all others from them.
func TestReportMetrics_DepthIsBounded(t *testing.T) {
	b := newBench(t)
	b.mustCreate("t")
	nested := func(depth int, around string) []byte {
		return []byte(fmt.Sprintf(`{"report-type":"x","note":"\\\"[[{{","a":`+around+`}`, strings.Repeat("[", depth)+strings.Repeat("]", depth)))
	}
	flat := []byte(`{"report-type":"x","a":[` + strings.Repeat(`{"b":[]},`, 2000) + `{}]}`)
	for _, body := range [][]byte{nested(499, "%s"), nested(498, `{"b":%s}`), nested(9000, `"%s"`), flat} {
		if err := b.ReportMetrics(ctx, system, "w", id("t"), body); err != nil {
			t.Errorf("%.60s: %v", body, err)
		}
	}
	for _, body := range [][]byte{nested(500, "%s"), nested(499, `{"b":%s}`), nested(1200, "%s"), nested(9000, "%s"), nested(50_000, "%s")} {
		if err := b.ReportMetrics(ctx, system, "w", id("t"), body); !fault.Is(err, fault.BadRequest) || !strings.Contains(fault.Message(err), "500 deep") {
			t.Errorf("%.60s: %v", body, err)
		}
	}
}
