package mailtest_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"skep/spec"
	"skep/spec/openapi"
)

const root = "root-token-00000001"

// feedPath is the operation whose answer has no end.
const feedPath = "/skep/v1/pulse"

// fuzzRound is how many requests one host is sent, and fuzzWorkers how many at
// once.
const (
	fuzzRound   = 400
	fuzzWorkers = 4
)

// TestFuzzInterface sends every operation of the description requests that are
// of its shape or almost are. Each is answered as described; none with an error
// of the host; and afterwards there are no more goroutines and hardly more
// memory. SKEP_FUZZ_API=10m goes on for so long, with other requests each time
// (R-057, R-086, R-088, S-21).
func TestFuzzInterface(t *testing.T) {
	doc, err := openapi.Parse(spec.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	span, seed := time.Duration(0), uint64(1)
	if text := os.Getenv("SKEP_FUZZ_API"); text != "" {
		if span, err = time.ParseDuration(text); err != nil {
			t.Fatal("SKEP_FUZZ_API:", err)
		}
		seed = rand.Uint64()
	}
	fuzzHost(t, doc, seed)
	goroutines, heap := footprint(t)
	rounds := 1
	for begun := time.Now(); rounds < 2 || time.Since(begun) < span; rounds++ {
		fuzzHost(t, doc, seed+uint64(rounds))
		if t.Failed() {
			return
		}
	}
	g, h := footprint(t)
	t.Logf("%d rounds of %d requests: %d goroutines after %d, %d KiB of heap after %d KiB", rounds, fuzzRound, g, goroutines, h>>10, heap>>10)
	if g > goroutines+4 {
		t.Errorf("%d goroutines are left, %d after the first round", g, goroutines)
	}
	if h > heap+32<<20 {
		t.Errorf("%d bytes of heap are left, %d after the first round", h, heap)
	}
}

// footprint is what is left when nothing runs.
func footprint(t *testing.T) (goroutines int, heap uint64) {
	t.Helper()
	http.DefaultClient.CloseIdleConnections()
	goroutines = runtime.NumGoroutine()
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		// Connections end a moment after they are closed.
		goroutines = min(goroutines, runtime.NumGoroutine())
		if goroutines < 16 {
			break
		}
	}
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return goroutines, m.HeapAlloc
}

// fuzzHost sends one host a round of requests and stops it.
func fuzzHost(t *testing.T, doc *openapi.Document, seed uint64) {
	t.Helper()
	// The tenant acme is there to be erased.
	w := newWorld(t, "public = true\n", "[tenants.acme]\n[[auth.keys]]\nid = \"root\"\nrole = \"operator\"\nkey = \""+root+"\"\n[server]\ndebug = true\n")
	var wg sync.WaitGroup
	for i := range fuzzWorkers {
		wg.Go(func() {
			f := fuzzer{w, sampler{doc, rand.New(rand.NewPCG(seed, uint64(i)))}}
			for range fuzzRound / fuzzWorkers {
				f.send(pick(&f.sampler, doc.Operations()...))
			}
		})
	}
	wg.Wait()
	w.stop()
	if t.Failed() {
		t.Logf("the seed was %d", seed)
	}
}

type fuzzer struct {
	*world
	sampler
}

// send makes one request of an operation and judges the answer.
func (f *fuzzer) send(op *openapi.Operation) {
	target, header := f.target(op)
	body := ""
	if content := f.doc.Dig(op.Spec, "requestBody", "content", "application/json"); content != nil {
		body = f.body(content)
	}
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, op.Method, f.url+target, strings.NewReader(body))
	if err != nil {
		f.t.Errorf("%s %q: %v", op, target, err)
		return
	}
	if token := f.key(op); token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for name, value := range header {
		r.Header.Set(name, value)
	}
	rsp, err := http.DefaultClient.Do(r)
	if err != nil {
		f.t.Errorf("%s %q %q: %v", op, target, body, err)
		return
	}
	defer rsp.Body.Close()
	raw, err := readAnswer(op, rsp)
	if err != nil {
		f.t.Errorf("%s %q %q: %v", op, target, body, err)
	}
	f.judge(op, r.URL, body, reply{rsp.StatusCode, rsp.Header, string(raw)})
}

// readAnswer reads a whole body, or the first event of the host's feed, which does not end. The
// feed begins with a reset, as no id of the sampler's is one of a host, and with kept=true it
// ends.
func readAnswer(op *openapi.Operation, rsp *http.Response) ([]byte, error) {
	if op.Path != feedPath || rsp.StatusCode != http.StatusOK || rsp.Request.URL.Query().Get("kept") == "true" {
		return io.ReadAll(rsp.Body)
	}
	var event []byte
	lines := bufio.NewReader(rsp.Body)
	for !bytes.Contains(event, []byte("event: ")) || !bytes.HasSuffix(event, []byte("\r\n\r\n")) {
		line, err := lines.ReadBytes('\n')
		event = append(event, line...)
		if err != nil {
			return event, err
		}
	}
	if !bytes.Contains(event, []byte("event: reset\r\n")) {
		return event, fmt.Errorf("the feed begins with %q", event)
	}
	return event, nil
}

// key is mostly one that opens the operation.
func (f *fuzzer) key(op *openapi.Operation) string {
	keys := map[string]string{"user": alice, "admin": ada, "operator": root, "agent": depot}
	if roles := op.Roles(); len(roles) > 0 && !f.chance(10) {
		return keys[pick(&f.sampler, roles...)]
	}
	return pick(&f.sampler, "", alice, ada, root, depot, "nobody")
}

// missing is what a host without peers and definitions of others lacks.
var missing = []string{"interswarm router not available", "this host takes no swarm definitions over the network"}

func (f *fuzzer) judge(op *openapi.Operation, u *url.URL, body string, a reply) {
	f.t.Helper()
	known := slices.ContainsFunc(missing, func(text string) bool { return strings.Contains(a.body, text) })
	if a.status >= 500 && (a.status != http.StatusServiceUnavailable || !known) {
		f.t.Errorf("%s %s %q: %d %s", op, u, body, a.status, a.body)
		return
	}
	if err := f.doc.Response(op, a.status, a.header, []byte(a.body)); err != nil {
		f.t.Errorf("%s %s %q: %v\n%s", op, u, body, err, a.body)
	}
}
