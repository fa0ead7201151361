package main

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"
)

// connectionsOfLoad is how many connections send requests, each its next one when it has the answer.
const connectionsOfLoad = 16

// shot is a request as it goes over the wire, and the status that must come back.
type shot struct {
	request []byte
	status  int
}

// request spells an HTTP/1.1 request.
func request(method, path string, header map[string]string, body []byte) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: bench\r\n", method, path)
	for name, value := range header {
		fmt.Fprintf(&b, "%s: %s\r\n", name, value)
	}
	if body != nil {
		fmt.Fprintf(&b, "Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	}
	b.WriteString("\r\n")
	b.Write(body)
	return b.Bytes()
}

// measured is what a run of load came to.
type measured struct {
	requests  int
	perSecond float64
	median    float64 // milliseconds
	p99       float64
	bytes     int // of one answer's body, the last one's
}

// fire lets so many connections send shots for a time. next gives the shot of a connection's turn. What is wrong with
// one answer ends it all. It reads no more of an answer than it must, so that little of what is measured is its own.
func fire(address string, connections int, d time.Duration, next func(connection, turn int) shot) (measured, error) {
	var all sync.WaitGroup
	took := make([][]time.Duration, connections)
	errs := make([]error, connections)
	size := make([]int, connections)
	began := time.Now()
	for c := range connections {
		all.Go(func() {
			took[c], size[c], errs[c] = fireOne(address, began.Add(d), func(turn int) shot { return next(c, turn) })
		})
	}
	all.Wait()
	seconds := time.Since(began).Seconds()
	for _, err := range errs {
		if err != nil {
			return measured{}, err
		}
	}
	every := slices.Concat(took...)
	slices.Sort(every)
	return measured{
		requests: len(every), perSecond: float64(len(every)) / seconds, bytes: size[0],
		median: float64(every[len(every)/2].Microseconds()) / 1000,
		p99:    float64(every[len(every)*99/100].Microseconds()) / 1000,
	}, nil
}

func fireOne(address string, until time.Time, next func(turn int) shot) (took []time.Duration, size int, err error) {
	connection, err := net.Dial("tcp", address)
	if err != nil {
		return nil, 0, err
	}
	defer connection.Close()
	in := bufio.NewReaderSize(connection, 64<<10)
	for turn := 0; turn == 0 || time.Now().Before(until); turn++ {
		s := next(turn)
		began := time.Now()
		if _, err := connection.Write(s.request); err != nil {
			return nil, 0, err
		}
		status, n, err := readAnswer(in, bytes.HasPrefix(s.request, []byte("HEAD ")))
		if err != nil {
			return nil, 0, err
		}
		if status != s.status {
			return nil, 0, fmt.Errorf("%.80q was answered %d, not %d", s.request, status, s.status)
		}
		took, size = append(took, time.Since(began)), n
	}
	return took, size, nil
}

// readAnswer reads one answer and throws its body away.
func readAnswer(in *bufio.Reader, head bool) (status, size int, err error) {
	line, err := in.ReadSlice('\n')
	if err != nil || len(line) < 12 {
		return 0, 0, fmt.Errorf("no answer: %q, %w", line, err)
	}
	if status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return 0, 0, err
	}
	chunked := false
	for {
		if line, err = in.ReadSlice('\n'); err != nil {
			return 0, 0, err
		}
		if len(line) <= 2 {
			break
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch {
		case bytes.EqualFold(name, []byte("Content-Length")):
			if size, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return 0, 0, err
			}
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			chunked = true
		}
	}
	switch {
	case head || status == 204 || status == 304:
		return status, 0, nil
	case chunked:
		size, err = discardChunks(in)
	default:
		_, err = in.Discard(size)
	}
	return status, size, err
}

func discardChunks(in *bufio.Reader) (size int, err error) {
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		n, err := strconv.ParseInt(string(bytes.TrimSpace(line)), 16, 64)
		if err != nil {
			return 0, err
		}
		if _, err := in.Discard(int(n) + 2); err != nil {
			return 0, err
		}
		if size += int(n); n == 0 {
			return size, nil
		}
	}
}
