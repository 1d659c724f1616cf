package security_test

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"skep/host"
	"skep/host/internal/definition"
	"skep/host/internal/definition/config"
	"skep/host/internal/guests"
	"skep/host/internal/hosttest"
	"skep/host/internal/turn/egress"
	"skep/host/internal/turn/model/modeltest"
)

// These tests have the line of the SSRF suite: redirects, DNS rebinding, IPv6-mapped,
// decimal and octal hosts, link-local metadata, credentials in URLs, response bombs and
// drips, each stopped with its error, for agents, for actions and for models. The
// tables of package egress have more of each; here, all of it goes through a guest.

// publicAddr is the one address of the tests that is dialled. It leads to a server of
// this machine.
const publicAddr = "93.184.216.34"

// internet is a network with names of the test's choosing. It is safe for concurrent
// use.
type internet struct {
	names map[string][]string // the answers to lookups, the last for ever
	at    string              // where publicAddr is

	mu      sync.Mutex
	lookups map[string]int
	dialled []netip.AddrPort
}

func (n *internet) into(o *egress.Options) { o.Resolver, o.Dial = n, n.dial }

// LookupNetIP implements [egress.Resolver].
func (n *internet) LookupNetIP(_ context.Context, _, name string) (out []netip.Addr, err error) {
	name = strings.TrimSuffix(name, ".")
	n.mu.Lock()
	defer n.mu.Unlock()
	answers := n.names[name]
	if len(answers) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
	}
	at := min(n.lookups[name], len(answers)-1)
	n.lookups[name]++
	for _, text := range strings.Fields(answers[at]) {
		out = append(out, netip.MustParseAddr(text))
	}
	return out, nil
}

func (n *internet) dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	n.mu.Lock()
	n.dialled = append(n.dialled, to)
	n.mu.Unlock()
	return (&net.Dialer{}).DialContext(ctx, "tcp", n.at)
}

// onlyOutside fails the test if anything but publicAddr was dialled.
func (n *internet) onlyOutside(t *testing.T) {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.dialled) == 0 {
		t.Error("nothing was dialled")
	}
	for _, to := range n.dialled {
		if to.Addr().String() != publicAddr {
			t.Errorf("dialled %s", to)
		}
	}
}

// newInternet starts the server at publicAddr.
func newInternet(t *testing.T, serve http.HandlerFunc) *internet {
	t.Helper()
	s := httptest.NewServer(serve)
	t.Cleanup(s.Close)
	return &internet{at: s.Listener.Addr().String(), lookups: map[string]int{}, names: map[string][]string{
		"api.test":      {publicAddr},
		"inside.test":   {"10.0.0.7"},
		"loop.test":     {"127.0.0.1"},
		"meta.test":     {"169.254.169.254"},
		"awsmeta6.test": {"fd00:ec2::254"},
		"six.test":      {"::ffff:169.254.169.254"},
		"compat.test":   {"::7f00:1"},
		"nat64.test":    {"64:ff9b::a9fe:a9fe"},
		"sixtofour":     {"2002:7f00:1::"},
		"teredo.test":   {"2001:0:7f00:1::"},
		"nowhere.test":  {"0.0.0.0 ::"},
		"private.test":  {"10.0.0.7 192.168.0.1 fd00::1"},
		"mixed.test":    {"10.0.0.7 " + publicAddr + " 127.0.0.1"},
		"rebind.test":   {publicAddr, "127.0.0.1"},
		"rehop.test":    {publicAddr, "169.254.169.254"},
	}}
}

// hostile is a server that wants to be asked what is inside, or to be listened to for
// ever.
func hostile(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/to":
		w.Header().Set("Location", r.URL.Query().Get("u"))
		w.WriteHeader(http.StatusTemporaryRedirect)
	case "/bomb":
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = io.Copy(z, io.LimitReader(zeros{}, 2<<20))
		_ = z.Close()
	case "/nested":
		w.Header().Set("Content-Encoding", "gzip, gzip")
		_, _ = io.WriteString(w, "anything")
	case "/large":
		_, _ = io.Copy(w, io.LimitReader(zeros{}, 2<<20))
	case "/promise":
		w.Header().Set("Content-Length", "1000000000")
	case "/drip":
		drip(r.Context(), w, "x")
	case "/drip-header":
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n")
			drip(context.Background(), conn, "X: y\r\n")
			_ = conn.Close()
		}
	case "/flood":
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n"+strings.Repeat("X-Flood: "+strings.Repeat("x", 1000)+"\r\n", 1000))
			_ = conn.Close()
		}
	default:
		_, _ = io.WriteString(w, "outside")
	}
}

// drip writes a little now and then: faster than any timeout of a read, and without end.
func drip(ctx context.Context, w io.Writer, text string) {
	beat := time.NewTicker(10 * time.Millisecond)
	defer beat.Stop()
	for ctx.Err() == nil {
		if _, err := io.WriteString(w, text); err != nil {
			return
		}
		if f, ok := w.(http.Flusher); ok {
			f.Flush()
		}
		<-beat.C
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

const ssrfSwarm = `schema = 1
[swarm]
name = "hive"
entrypoint = "boss"
[agents.boss]
source = "file:script.wasm"
enable_entrypoint = true
can_complete_tasks = true
actions = ["http_get"]
allow = { http = [GRANTS], http_private = true, llm = [MODELS] }
[actions.http_get]
source = "bundled:http"
allow = { http = [GRANTS], http_private = true }
[limits.http]
timeout = "8s"
response = "1MiB"
`

// literals are granted as they stand, which opens none of them.
func literals() []string {
	return []string{"0.0.0.0", "169.254.169.254", "[::]", "[::7f00:1]", "[fe80::1]", "168.63.129.16"}
}

func ssrfText(models ...string) string {
	grants, names := []string{`"http://*"`}, []string(nil)
	for _, l := range literals() {
		grants = append(grants, fmt.Sprintf("%q", "http://"+l))
	}
	for i := range models {
		names = append(names, fmt.Sprintf(`"m%d"`, i))
	}
	text := strings.NewReplacer("GRANTS", strings.Join(grants, ", "), "MODELS", strings.Join(names, ", ")).Replace(ssrfSwarm)
	for i, base := range models {
		text += fmt.Sprintf("[models.m%d]\nprovider = \"openai\"\nmodel = \"m\"\nretries = 0\ntimeout = \"2s\"\napi_key = \"a-key-for-tests\"\n%s\n", i, base)
	}
	return text
}

// wanted is a URL, and what an agent reads of it.
type wanted struct{ line, url, text string }

func redirectTo(target string) string { return "http://api.test/to?u=" + url.QueryEscape(target) }

// ssrf is what must be stopped, by the lines of the suite.
func ssrf() []wanted {
	const (
		resolves = "DENIED: %s resolves to an address that is not public (%s)"
		never    = "DENIED: %s is or resolves to an address that no grant opens (%s)"
		four     = "is not an IPv4 address of four decimal numbers"
	)
	ungranted := func(host string) string {
		return fmt.Sprintf("DENIED: GET http://%[1]s/ is not granted; it takes \"GET http://%[1]s/\" added to allow.http in [%%s]", host)
	}
	return []wanted{
		{"decimal", "http://2130706433/", four}, {"octal", "http://0177.0.0.1/", four}, {"octal, one number", "http://017700000001/", four},
		{"hex", "http://0x7f000001/", four}, {"hex in parts", "http://0x7f.0.0.1/", four}, {"short", "http://127.1/", four},
		{"overflow", "http://4294967297/", four}, {"a final dot", "http://127.0.0.1./", ungranted("127.0.0.1")},
		{"a final dot, decimal", "http://2130706433./", four}, {"fullwidth digits", "http://１２７.0.0.1/", "xn--"}, {"circled digits", "http://①②⑦.0.0.1/", "xn--"},
		{"another dot", "http://127。0。0。1/", "xn--"}, {"an escaped host", "http://%31%32%37.0.0.1/", "INVALID: the URL cannot be read"},
		{"loopback", "http://127.0.0.1/", ungranted("127.0.0.1")}, {"loopback, IPv6", "http://[::1]/", ungranted("[::1]")},
		{"localhost", "http://localhost/", ungranted("localhost")}, {"unspecified", "http://0.0.0.0/", fmt.Sprintf(never, "0.0.0.0", "unspecified")},
		{"unspecified, IPv6", "http://[::]/", fmt.Sprintf(never, "::", "unspecified")}, {"zero", "http://0/", four},
		{"mapped", "http://[::ffff:127.0.0.1]/", ungranted("127.0.0.1")}, {"mapped, hex", "http://[::ffff:7f00:1]/", ungranted("127.0.0.1")},
		{"mapped metadata", "http://[::ffff:a9fe:a9fe]/", fmt.Sprintf(never, "169.254.169.254", "link-local")}, {"compatible", "http://[::7f00:1]/", fmt.Sprintf(never, "::7f00:1", "reserved")},
		{"a zone", "http://[fe80::1%25eth0]/", "without zone"}, {"NAT64", "http://[64:ff9b::7f00:1]/", ungranted("[64:ff9b::7f00:1]")}, {"local NAT64", "http://[64:ff9b:1::7f00:1]/", ungranted("[64:ff9b:1::7f00:1]")},
		{"6to4", "http://[2002:7f00:1::]/", ungranted("[2002:7f00:1::]")}, {"Teredo", "http://[2001:0:7f00:1::]/", ungranted("[2001:0:7f00:1::]")},
		{"metadata", "http://169.254.169.254/latest/meta-data/", fmt.Sprintf(never, "169.254.169.254", "link-local")},
		{"metadata, Azure", "http://168.63.129.16/machine", fmt.Sprintf(never, "168.63.129.16", "link-local")},
		{"metadata, IPv6", "http://[fd00:ec2::254]/", ungranted("[fd00:ec2::254]")}, {"link-local, IPv6", "http://[fe80::1]/", fmt.Sprintf(never, "fe80::1", "link-local")},
		{"private", "http://10.0.0.7/", ungranted("10.0.0.7")},

		{"a private name", "http://inside.test/", fmt.Sprintf(resolves, "inside.test", "private")}, {"a loopback name", "http://loop.test/", fmt.Sprintf(resolves, "loop.test", "loopback")},
		{"a name of metadata", "http://meta.test/", fmt.Sprintf(never, "meta.test", "link-local")}, {"and IPv6", "http://awsmeta6.test/", fmt.Sprintf(resolves, "awsmeta6.test", "private")},
		{"and mapped", "http://six.test/", fmt.Sprintf(never, "six.test", "link-local")}, {"and NAT64", "http://nat64.test/", fmt.Sprintf(never, "nat64.test", "link-local")},
		{"compatible by name", "http://compat.test/", fmt.Sprintf(never, "compat.test", "reserved")}, {"6to4 by name", "http://sixtofour/", "(6to4)"},
		{"Teredo by name", "http://teredo.test/", "(protocol)"}, {"unspecified by name", "http://nowhere.test/", fmt.Sprintf(never, "nowhere.test", "unspecified")},
		{"many, all private", "http://private.test/", fmt.Sprintf(resolves, "private.test", "private")}, {"many, one public", "http://mixed.test/", "outside"},
		{"no such name", "http://gone.test/", "UNAVAILABLE: the name gone.test cannot be resolved"},
		{"before rebinding", "http://rebind.test/", "outside"}, {"rebinding", "http://rebind.test/", fmt.Sprintf(resolves, "rebind.test", "loopback")},
		{"rebinding between hops", "http://rehop.test/to?u=%2F", fmt.Sprintf(never, "rehop.test", "link-local")},

		{"credentials", "http://user:hunter2@api.test/", "INVALID: the URL holds credentials"}, {"a user that looks like a host", "http://api.test@127.0.0.1/", "holds credentials"},
		{"a scheme", "file:///etc/passwd", `INVALID: the URL's scheme must be http or https, not "file"`}, {"gopher", "gopher://api.test/", "http or https"},
		{"a port", "http://api.test:8080/", `"GET http://api.test:8080/" added to allow.http`}, {"line breaks", "http://api.test/\r\nX: y", "INVALID: the URL has the character"},

		{"redirect to metadata", redirectTo("http://169.254.169.254/latest/"), fmt.Sprintf(never, "169.254.169.254", "link-local")}, {"redirect to a private name", redirectTo("http://inside.test/"), "inside.test resolves to"},
		{"redirect to loopback", redirectTo("http://127.0.0.1:6379/"), "api.test/to redirects: GET http://127.0.0.1:6379/ is not granted"}, {"redirect to decimal", redirectTo("http://2130706433/"), four},
		{"redirect to mapped", redirectTo("http://[::ffff:127.0.0.1]/"), "redirects: GET http://127.0.0.1/ is not granted"}, {"redirect to a port", redirectTo("http://api.test:22/"), "redirects: GET http://api.test:22/ is not granted"},
		{"redirect to a scheme", redirectTo("https://api.test/"), "redirects: GET https://api.test/ is not granted"}, {"redirect to a file", redirectTo("file:///etc/passwd"), `redirects to a URL that is not allowed: the URL's scheme`},
		{"redirect with credentials", redirectTo("http://user:hunter2@api.test/"), "redirects to a URL that is not allowed: the URL holds credentials"},
		{"redirect to fullwidth", redirectTo("http://１２７.0.0.1/"), "xn--"}, {"endless redirects", redirectTo("/to?u=/to%3Fu=/to%253Fu=/to%25253Fu=/to%2525253Fu=/to%252525253Fu=/"), "LIMIT: more than 5 redirects"},

		{"a bomb", "http://api.test/bomb", "LIMIT: the body of the answer from http://api.test/bomb is larger than 1048576 bytes ([limits.http] response)"},
		{"a bomb in a bomb", "http://api.test/nested", "content coding"}, {"a large answer", "http://api.test/large", "larger than 1048576 bytes"},
		{"a promised one", "http://api.test/promise", "larger than 1048576 bytes"}, {"a flood of headers", "http://api.test/flood", "LIMIT: the header of the answer from http://api.test/flood is larger than 65536 bytes"},
		{"a drip", "http://api.test/drip", "DEADLINE: no whole answer from http://api.test/drip within 8s ([limits.http] timeout)"},
		{"a drip of headers", "http://api.test/drip-header", "DEADLINE: no whole answer from http://api.test/drip-header within 8s"},
	}
}

// startSSRF starts a host whose agents and models have no other network.
func startSSRF(t *testing.T, n *internet, text string) (*hosttest.Host, *hosttest.LogBuffer) {
	t.Helper()
	return hosttest.StartText(t, text, nil, func(o *host.Options) { o.Network = n.into })
}

// asked has an agent make the calls, and returns what came of each.
func asked(t *testing.T, h *hosttest.Host, task string, calls ...hosttest.Step) []string {
	t.Helper()
	var places []string
	for i := range calls {
		places = append(places, fmt.Sprintf("{{%d}}", i))
	}
	const between = "\n<next>\n"
	a := h.Answer(t, task, append(calls, hosttest.Step{"task_complete", hosttest.Args{"finish_message": strings.Join(places, between)}})...)
	got := strings.Split(a.Body, between)
	if len(got) != len(calls) {
		t.Fatalf("%d answers to %d calls: %s", len(got), len(calls), a.Body)
	}
	return got
}

// TestSSRF: what an agent asks for, and what an action asks for it, is stopped.
func TestSSRF(t *testing.T) {
	t.Parallel()
	for who, call := range map[string]func(url string) hosttest.Step{
		"agents.boss": func(url string) hosttest.Step {
			return hosttest.Step{"http.fetch", hosttest.Args{"method": "GET", "url": url}}
		},
		"actions.http_get": func(url string) hosttest.Step { return hosttest.Step{"http_get", hosttest.Args{"url": url}} },
	} {
		t.Run(who, func(t *testing.T) {
			t.Parallel()
			outside := newInternet(t, hostile)
			h, log := startSSRF(t, outside, ssrfText())
			var calls []hosttest.Step
			for _, c := range ssrf() {
				calls = append(calls, call(c.url))
			}
			for i, got := range asked(t, h, "t", calls...) {
				c := ssrf()[i]
				if want := strings.ReplaceAll(c.text, "%s", who); !strings.Contains(got, want) || c.text != "outside" && strings.Contains(got, "outside") {
					t.Errorf("%s: %s: %.300q, want %q", c.line, c.url, got, want)
				}
				if strings.Contains(got, "hunter2") {
					t.Errorf("%s: the password is in %q", c.line, got)
				}
			}
			outside.onlyOutside(t)
			if strings.Contains(string(log.Bytes()), "hunter2") {
				t.Error("the password is in the log")
			}
		})
	}
}

// TestSSRFOfModels: a model's base_url leads where an agent's URL would, and no
// further; only the operator writes it.
func TestSSRFOfModels(t *testing.T) {
	t.Parallel()
	provider := modeltest.OpenAI(func(modeltest.Request) modeltest.Reply {
		return modeltest.Reply{Header: map[string]string{"Connection": "close"}, Text: []string{"outside"}}
	})
	outside := newInternet(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/to/chat/completions":
			http.Redirect(w, r, "http://169.254.169.254/v1/chat/completions", http.StatusTemporaryRedirect)
		case "/drip/chat/completions":
			w.Header().Set("Content-Type", "application/json")
			drip(r.Context(), w, " ")
		default:
			provider.ServeHTTP(w, r)
		}
	})
	const notPublic = "UNAVAILABLE: models.m%d: base_url leads to an address that is not public; set allow_private = true if that is meant"
	cases := []struct{ base, text string }{
		{"http://inside.test/v1", notPublic}, {"http://teredo.test/v1", notPublic},
		{"http://meta.test/v1", "m%d: base_url leads to an address"}, {"http://169.254.169.254/v1\"\nallow_private = true #", "m%d: base_url leads to an address"},
		{"http://nat64.test/v1\"\nallow_private = true #", "m%d: base_url leads to an address"},
		{"http://api.test/to", "m%d: the provider redirects, and neither prompt nor key follows"}, {"http://api.test/drip", "m%d: no whole answer within 2s"},
		{"http://rebind.test/v1", "outside"}, {"http://mixed.test/v1", "outside"},
	}
	var models []string
	var calls []hosttest.Step
	for i, c := range cases {
		base, more, _ := strings.Cut(c.base, "\"\n")
		models = append(models, fmt.Sprintf("base_url = %q\n%s", base, more))
		calls = append(calls, hosttest.ChatStep(fmt.Sprintf("m%d", i)))
	}
	again := len(cases) - 2 // of rebind.test
	calls = append(calls, hosttest.ChatStep(fmt.Sprintf("m%d", again)))
	h, _ := startSSRF(t, outside, ssrfText(models...))
	got := asked(t, h, "t", calls...)
	for i, c := range cases {
		want := c.text
		if strings.Contains(want, "%d") {
			want = fmt.Sprintf(want, i)
		}
		if !strings.Contains(got[i], want) {
			t.Errorf("%s: %q, want %q", c.base, got[i], want)
		}
	}
	if want := fmt.Sprintf(notPublic, again); !strings.Contains(got[len(cases)], want) {
		t.Errorf("rebinding: %q, want %q", got[len(cases)], want)
	}
	outside.onlyOutside(t)
}

// TestSSRFInTheFile: a base_url that two readers would read as two hosts, or of an
// address that is not public, starts no host, and a password in it is not repeated.
func TestSSRFInTheFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "script.wasm"), guests.Bytes(t, "plugins/script"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, base := range []string{
		"http://2130706433/v1", "http://0177.0.0.1/v1", "http://0x7f000001/v1", "http://127.1/v1", "http://１２７.0.0.1/v1",
		"http://user:hunter2@api.test/v1", "http://api.test@127.0.0.1/v1", "file:///etc/passwd", "http://[fe80::1%25eth0]/v1",
		"http://127.0.0.1/v1", "http://[::ffff:10.0.0.7]/v1", "http://localhost/v1",
	} {
		text := ssrfText(fmt.Sprintf("base_url = %q", base))
		cfg, err := config.Parse("swarm.toml", []byte(text), dir, config.Options{BundleDir: hosttest.Bundles()})
		said := fmt.Sprint(err)
		if err == nil {
			said = fmt.Sprint(definition.Faults(cfg))
		}
		if !strings.Contains(said, "models.m0") || strings.Contains(said, "hunter2") {
			t.Errorf("%s: %s", base, said)
		}
	}
}
