package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
)

// The bare server is what the REST catalog is compared with: a chi router, one statement in pgx's pool for each request,
// and an answer that is there already. It checks no caller and decides nothing.

// bareArgument makes this program the bare server.
const bareArgument = "bare-server"

const bareName = "bare handler"

// connectionsOfPool is the size of both servers' pools.
const connectionsOfPool = 16

type bare struct {
	pool    *pgxpool.Pool
	dir     string
	mu      sync.RWMutex
	answers map[string]bareAnswer
}

type bareAnswer struct {
	status   int
	encoding string
	body     []byte
}

// serveBare serves until standard input ends. It prints its address.
func serveBare(url, dir string) error {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return err
	}
	config.MaxConns = connectionsOfPool
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		return err
	}
	b := &bare{pool: pool, dir: dir, answers: map[string]bareAnswer{}}
	router := chi.NewRouter()
	router.Put("/answers/{name}", b.learn)
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		router.MethodFunc(method, "/answers/{name}/{id}", b.answer)
	}
	router.Post("/commits/{name}/{id}/{bytes}", b.commit)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	return http.Serve(listener, router)
}

// learn takes the answer of a name.
func (b *bare) learn(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err)
	}
	status, err := strconv.Atoi(r.Header.Get("X-Status"))
	if err != nil {
		panic(err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answers[chi.URLParam(r, "name")] = bareAnswer{status: status, encoding: r.Header.Get("X-Encoding"), body: body}
	w.WriteHeader(http.StatusNoContent)
}

func (b *bare) write(w http.ResponseWriter, name string) {
	b.mu.RLock()
	a := b.answers[name]
	b.mu.RUnlock()
	h := w.Header()
	if len(a.body) > 0 {
		h.Set("Content-Type", "application/json")
		h.Set("Content-Length", strconv.Itoa(len(a.body)))
	}
	if a.encoding != "" {
		h.Set("Content-Encoding", a.encoding)
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body) // the client sees that it is cut
}

func (b *bare) answer(w http.ResponseWriter, r *http.Request) {
	var location string
	err := b.pool.QueryRow(r.Context(), "SELECT metadata_location FROM catalogd.tables WHERE id = $1", chi.URLParam(r, "id")).Scan(&location)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	b.write(w, chi.URLParam(r, "name"))
}

func (b *bare) commit(w http.ResponseWriter, r *http.Request) {
	if err := b.commitOne(r); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	b.write(w, chi.URLParam(r, "name"))
}

func (b *bare) commitOne(r *http.Request) error {
	if _, err := io.ReadAll(r.Body); err != nil {
		return err
	}
	size, err := strconv.Atoi(chi.URLParam(r, "bytes"))
	if err != nil {
		return err
	}
	id := uuid.New()
	path := filepath.Join(b.dir, id.String())
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(make([]byte, size)); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	tx, err := b.pool.Begin(r.Context())
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(context.Background()) }() // does nothing after a commit
	if _, err := tx.Exec(r.Context(), "UPDATE bare_tables SET location = $2 WHERE id = $1", chi.URLParam(r, "id"), path); err != nil {
		return err
	}
	if _, err := tx.Exec(r.Context(), "INSERT INTO bare_events (id, location) VALUES ($1, $2)", id, path); err != nil {
		return err
	}
	return tx.Commit(r.Context())
}

// startBare starts the bare server as a process of its own and gives its address. It ends with this process.
func startBare(url, dir string) (string, *exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	cmd := exec.Command(self, bareArgument, url, dir)
	cmd.Stderr = os.Stderr
	if _, err := cmd.StdinPipe(); err != nil { // closed by our end
		return "", nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	line := make([]byte, 64)
	n, err := out.Read(line)
	if err != nil {
		return "", nil, fmt.Errorf("the bare server did not start: %w", err)
	}
	return strings.TrimSpace(string(line[:n])), cmd, nil
}
