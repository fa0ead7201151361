// Package telemetry declares what operators watch: every Prometheus metric of the server and the rules of its logs.
// Labels come from tables of the program (operations, kinds, classes), never from requests: names, paths and
// principals would make the number of series unbounded.
package telemetry

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// requestSecondsBuckets reaches from a cached 304 to the deadline of the longest request.
var requestSecondsBuckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}

// Metrics are all metrics of the server. The zero value is not usable; see NewMetrics.
type Metrics struct {
	requests         *prometheus.CounterVec
	requestSeconds   *prometheus.HistogramVec
	requestsInFlight prometheus.Gauge
	panics           prometheus.Counter
}

// NewMetrics declares the metrics and registers them. It panics when registry already has one of them: two servers
// in one process need two registries.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "catalogd_http_requests_total",
			Help: "Requests answered, by operation of the endpoint table and class of the HTTP status.",
		}, []string{"operation", "class"}),
		requestSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "catalogd_http_request_seconds",
			Help:    "Time from a request's first byte to the end of its answer, by operation.",
			Buckets: requestSecondsBuckets,
		}, []string{"operation"}),
		requestsInFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "catalogd_http_requests_in_flight",
			Help: "Requests that are being answered now.",
		}),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "catalogd_http_panics_total",
			Help: "Requests that ended in a panic of a handler. Anything but zero is a bug.",
		}),
	}
	registry.MustRegister(m.requests, m.requestSeconds, m.requestsInFlight, m.panics, prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "catalogd_log_lines_lost_total",
		Help: "Lines of the log and of the audit that nobody took in time from standard error and output. The audit's rows are in the database all the same.",
	}, func() float64 { return float64(linesLost.Load()) }))
	return m
}

// CountRoundTrips declares the counter of round trips to the database, which the store keeps.
func CountRoundTrips(registry prometheus.Registerer, sent func() int64) {
	registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "catalogd_database_round_trips_total",
		Help: "Statements, batches and preparations that were sent to the database and waited for.",
	}, func() float64 { return float64(sent()) }))
}

// CountDeniedLogins declares the counter of logins that were refused, which the token route keeps.
func CountDeniedLogins(registry prometheus.Registerer, denied func() uint64) {
	registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "catalogd_logins_denied_total",
		Help: "Logins that were refused or sent away to wait, whether the audit has a row for each or counts them.",
	}, func() float64 { return float64(denied()) }))
}

// NewRegistry makes a registry that holds the metrics of the Go runtime and of the process.
func NewRegistry() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return registry
}

// RequestBegan counts a request in. Each call is followed by one of RequestEnded.
func (m *Metrics) RequestBegan() { m.requestsInFlight.Inc() }

// RequestEnded counts a request out. The operation is the endpoint table's name, or a fixed word for no endpoint.
func (m *Metrics) RequestEnded(operation string, status int, took time.Duration) {
	m.requestsInFlight.Dec()
	m.requests.WithLabelValues(operation, statusClass(status)).Inc()
	m.requestSeconds.WithLabelValues(operation).Observe(took.Seconds())
}

// Panicked counts a panic of a handler.
func (m *Metrics) Panicked() { m.panics.Inc() }

// statusClass gives "2xx" for 204 and so on.
func statusClass(status int) string {
	if status < 100 || status > 599 {
		return "other"
	}
	return strconv.Itoa(status/100) + "xx"
}
