package registry_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"skep/host/internal/peer/registry"
	"skep/host/internal/turn/egress"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeNetwork is a network in memory, so that time in it can be made up. Each swarm has
// an address of its own.
type fakeNetwork struct {
	mu sync.Mutex
	// down are those that refuse connections, mute those that never answer.
	down, mute map[string]bool
	// says is what is answered, by address and path or by path; else it is 404.
	says  map[string]string
	asked map[string]int // by address and path
	open  int
	most  int
}

func newFakeNetwork() *fakeNetwork {
	return &fakeNetwork{
		down: map[string]bool{}, mute: map[string]bool{}, asked: map[string]int{},
		says: map[string]string{"/health": `{"status":"healthy"}`, "/": about("parts", "1.3")},
	}
}

func about(description, version string) string {
	return fmt.Sprintf(`{"name":"mail","protocol_version":%q,"swarm":{"name":"depot","description":%q,"entrypoint":"chief","keywords":["k"],"public":true}}`, version, description)
}

func (w *fakeNetwork) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

// times returns how often a path of an address was requested.
func (w *fakeNetwork) times(address, path string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asked[address+path]
}

func (w *fakeNetwork) dial(_ context.Context, to netip.AddrPort) (net.Conn, error) {
	address := to.Addr().String()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.down[address] {
		return nil, syscall.ECONNREFUSED
	}
	w.open++
	w.most = max(w.most, w.open)
	here, there := net.Pipe()
	go w.serve(address, there)
	return &tracked{Conn: here, closed: func() { w.set(func() { w.open-- }) }}, nil
}

// tracked tells once when it is closed.
type tracked struct {
	net.Conn
	once   sync.Once
	closed func()
}

func (c *tracked) Close() error {
	c.once.Do(c.closed)
	return c.Conn.Close()
}

func (w *fakeNetwork) serve(address string, conn net.Conn) {
	defer func() { _ = conn.Close() }()
	req, err := http.ReadRequest(bufio.NewReader(conn))
	if err != nil {
		return
	}
	path := req.URL.Path
	w.mu.Lock()
	w.asked[address+path]++
	body, known := w.says[address+path]
	if !known {
		body, known = w.says[path]
	}
	mute := w.mute[address]
	w.mu.Unlock()
	if mute {
		_, _ = conn.Read(make([]byte, 1)) // until the host gives up
		return
	}
	status := http.StatusOK
	if !known {
		status = http.StatusNotFound
	}
	fmt.Fprintf(conn, "HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%s", status, len(body), body)
}

// registry opens a registry in this network, where every address is private.
func (w *fakeNetwork) registry(t *testing.T, opt registry.Options) *registry.Registry {
	t.Helper()
	opt.Egress = egress.Options{Dial: w.dial, Resolver: opt.Egress.Resolver}
	return open(t, opt)
}

// running runs a registry; the result ends it and waits.
func running(t *testing.T, r *registry.Registry) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Run(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}

func entry(t *testing.T, r *registry.Registry, name string) registry.Entry {
	t.Helper()
	e, ok := r.Entry(name)
	if !ok {
		t.Fatalf("swarm %s is not known", name)
	}
	return e
}

// written writes a file of n registered swarms s0, s1 … at 10.0.x.y.
func written(t *testing.T, n int) (path string) {
	t.Helper()
	text := `{"schema":1,"endpoints":{`
	for i := range n {
		if i > 0 {
			text += ","
		}
		text += fmt.Sprintf(`"s%d":{"swarm_name":"s%d","base_url":"http://10.0.%d.%d","registered":"2026-01-01T00:00:00Z"}`, i, i, i/250, i%250)
	}
	path = filepath.Join(t.TempDir(), "registry.json")
	if err := os.WriteFile(path, []byte(text+"}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
