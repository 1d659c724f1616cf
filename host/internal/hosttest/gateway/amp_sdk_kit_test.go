package gateway_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"skep/host/internal/guests"
	"skep/host/internal/hosttest"
)

const (
	acmeAtHive, shownToAcme = "the-token-of-acme-at-hive", "what-acme-wants-to-see"
	whileAway               = "are you there?" // what the agent asks while the host is away
)

// meshSite is a host with the partner acme behind a proxy, whose address stays when the host is
// started again.
type meshSite struct {
	*hosttest.Site
	proxy, agent, key string // the URL of the proxy, the address of acme's agent, the key for HMAC or ""
	target            atomic.Pointer[string]
	direct            http.Transport
	beats, away       atomic.Int64 // heartbeats that were answered, requests that found no host
}

// newMeshSite starts a host whose partner acme has an agent at a free address. With a key all
// messages are signed.
func newMeshSite(t *testing.T, key string) *meshSite {
	t.Helper()
	m, signed := &meshSite{agent: hosttest.FreeAddress(t, "127.0.0.1"), key: key}, ""
	if key != "" {
		signed = fmt.Sprintf("hmac_key = %q", key)
	}
	m.Site = hosttest.NewSite(t, strings.Replace(file("hive", fmt.Sprintf(`[gateways.amp]
[gateways.amp.partners.acme]
url = "http://%s/invoke"
ids = ["agent-*"]
may = ["ask", "tell", "register", "contexts"]
auth_token = %q
allow_private = true
%s
[[auth.keys]]
id = "acme"
role = "agent"
key = %q
`, m.agent, shownToAcme, signed, acmeAtHive)), `"a2a"]`, `"a2a", "amp"]`, 1))
	m.target.Store(new(m.URL()))
	m.direct.DisableKeepAlives = true
	server := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:   func(*httputil.ProxyRequest) {},
		Transport: m,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			w.WriteHeader(http.StatusBadGateway)
		},
	})
	t.Cleanup(server.Close)
	m.proxy = server.URL
	return m
}

// RoundTrip implements [http.RoundTripper]: it sends a request to the host that runs.
func (m *meshSite) RoundTrip(r *http.Request) (*http.Response, error) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	at, err := url.Parse(*m.target.Load())
	if err != nil {
		return nil, err
	}
	r.URL.Scheme, r.URL.Host, r.Body = at.Scheme, at.Host, io.NopCloser(bytes.NewReader(text))
	rsp, err := m.direct.RoundTrip(r)
	switch {
	case err != nil && bytes.Contains(text, []byte(whileAway)):
		m.away.Add(1)
	case err == nil && rsp.StatusCode == http.StatusOK && bytes.Contains(text, []byte(`"heartbeat"`)):
		m.beats.Add(1)
	}
	return rsp, err
}

// meshAgent is a program of sdk/amp, which calls its mesh as its standard input has it.
type meshAgent struct {
	t       *testing.T
	address string
	cmd     *exec.Cmd
	in      io.WriteCloser
	lines   *bufio.Reader
}

// sdkAMP is the directory of the clients.
func sdkAMP() string { return filepath.Join(guests.Root(), "sdk", "amp") }

func startPython(t *testing.T, m *meshSite) *meshAgent {
	return m.start(t, sdkAMP(), "python3", "-B", "translator.py")
}

func startTypeScript(t *testing.T, m *meshSite) *meshAgent {
	return m.start(t, compileTypeScript(t), "node", "translator.mjs")
}

// compileTypeScript compiles the client, strictly, into a directory with the programs that use it.
func compileTypeScript(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	tsc := filepath.Join(guests.Root(), "host/internal/gateway/acp/gen/testdata/typescript/node_modules/.bin/tsc")
	if _, err := os.Stat(tsc); err != nil {
		tsc = hosttest.SystemProgram(t, "tsc")
	}
	cmd := exec.CommandContext(t.Context(), tsc, "--project", sdkAMP(), "--outDir", dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range []string{"translator.mjs", "amp_mesh_test.mjs"} {
		text, err := os.ReadFile(filepath.Join(sdkAMP(), name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// start starts a program in a directory.
func (m *meshSite) start(t *testing.T, dir, program string, args ...string) *meshAgent {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), hosttest.SystemProgram(t, program), args...)
	cmd.Dir = dir
	cmd.Env = append(cmd.Environ(), "MESH_URL="+m.proxy+"/aip/v1/invoke", "MESH_TOKEN="+acmeAtHive, "MESH_KEY="+m.key, "AGENT_ADDRESS="+m.agent, "AGENT_TOKEN="+shownToAcme, "RENEW=0.2")
	cmd.Stderr = t.Output()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return &meshAgent{t, m.agent, cmd, in, bufio.NewReader(out)}
}

// read returns the program's next line.
func (p *meshAgent) read() string {
	p.t.Helper()
	line, err := p.lines.ReadString('\n')
	if err != nil {
		p.t.Fatalf("the program has written %q: %v", line, err)
	}
	return line
}

// wants fails the test unless the program's next line has a text. It returns the line.
func (p *meshAgent) wants(text string) string {
	p.t.Helper()
	line := p.read()
	if !strings.Contains(line, text) {
		p.t.Errorf("got %swant %s", line, text)
	}
	return line
}

// write lets a method of the program's client be called, with arguments and named ones.
func (p *meshAgent) write(method, args, named string) {
	p.t.Helper()
	if _, err := fmt.Fprintf(p.in, "[%q, [%s], %s]\n", method, args, named); err != nil {
		p.t.Fatal(err)
	}
}

// call lets a method be called, and returns its result, which must have a text.
func (p *meshAgent) call(method, args, named, want string) string {
	p.t.Helper()
	p.write(method, args, named)
	return p.wants(want)
}

// end closes the program's input, and waits for its end.
func (p *meshAgent) end() {
	p.t.Helper()
	if err := p.in.Close(); err != nil {
		p.t.Fatal(err)
	}
	if err := p.cmd.Wait(); err != nil {
		p.t.Errorf("the program ended with %v", err)
	}
}
