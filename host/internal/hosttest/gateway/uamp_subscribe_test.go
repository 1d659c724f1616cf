package gateway_test

import (
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quic-go/quic-go/http3"

	"skep/host/client"
	"skep/host/internal/gateway/uamp/envelope"
	"skep/host/internal/gateway/uamp/seal"
	"skep/host/internal/hosttest"
)

// watching is a swarm whose agent subscribes to events of an agent of lab.
const watching = `schema = 1
[swarm]
name = "hive"
entrypoint = "boss"
[agents.boss]
source = "file:script.wasm"
enable_entrypoint = true
can_complete_tasks = true
actions = ["watch"]
[actions.watch]
source = "gateway:uamp/subscribe"
partners = ["lab"]
[server]
public_url = "https://hive.example"
[gateways.uamp]
[gateways.uamp.partners.lab]
url = "%s"
%s
ids = ["did:web:lab.example:agents:*"]
keys = ['%s']
may = ["ask", "tell"]
allow_private = true
[[auth.keys]]
id = "alice"
role = "user"
key = "a-key-of-alice-the-user"
`

// watchedLab takes each envelope, and tells of an event once it may.
type watchedLab struct {
	t       *testing.T
	major   int // of the version of HTTP that it wants
	sent    chan envelope.Signed
	publish chan struct{}
}

func (l *watchedLab) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor != l.major {
		l.t.Errorf("%s %s by %s", r.Method, r.URL, r.Proto)
	}
	if r.Method == http.MethodGet {
		select {
		case <-l.publish:
			w.Header().Set("Content-Type", "text/event-stream")
			next := 0
			if _, err := fmt.Sscan(r.Header.Get("Last-Event-ID"), &next); err == nil {
				next++
			}
			_, _ = fmt.Fprintf(w, "id: %[1]d\ndata: {\"delta_seq\":%[1]d,\"type\":\"chunk\",\"payload\":{\"text\":\"it is green\"}}\n\n", next)
		case <-r.Context().Done():
		}
		return
	}
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s, err := envelope.Reader{Strict: true, MaxBytes: 1 << 20, MaxDepth: 64}.Read(text)
	if err != nil {
		l.t.Errorf("%s: %v", text, err)
	}
	w.Header().Set("Location", "/v1/stream/tea")
	w.WriteHeader(http.StatusAccepted)
	l.sent <- s
}

// serve3 serves the lab over HTTP/3, and returns its url and the text of its authority.
func (l *watchedLab) serve3(t *testing.T) (url, authority string) {
	t.Helper()
	ca, authority := newAuthority(t)
	cert, err := tls.X509KeyPair(pemsOf(ca.sign(t, &x509.Certificate{
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, nil)))
	if err != nil {
		t.Fatal(err)
	}
	socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	server := &http3.Server{Handler: l, TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(socket)
	}()
	t.Cleanup(func() {
		_ = server.Close()
		_ = socket.Close()
		<-done
	})
	return "https://" + socket.LocalAddr().String(), authority
}

func pemsOf(cert, key string) (certPEM, keyPEM []byte) { return []byte(cert), []byte(key) }

// TestUAMPSubscription (U-052, U-093, V-U31): an agent subscribes by an action and goes on. Its
// host is started again, then an event reaches the task, and as the task ends the subscription is
// withdrawn. The partner is called over HTTP/3 as well.
func TestUAMPSubscription(t *testing.T) {
	t.Parallel()
	for binding, major := range map[string]int{"http": 1, "http3": 3} {
		t.Run(binding, func(t *testing.T) {
			t.Parallel()
			lab := &watchedLab{t: t, major: major, sent: make(chan envelope.Signed, 9), publish: make(chan struct{})}
			key, err := seal.NewKey("did:web:lab.example:agents:x", ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
			if err != nil {
				t.Fatal(err)
			}
			hive, url, more := hosttest.EmptySite(t), "", ""
			if binding == "http3" {
				var authority string
				url, authority = lab.serve3(t)
				more = "binding = \"http3\"\nca = \"lab.pem\""
				if err := os.WriteFile(filepath.Join(hive.Dir, "lab.pem"), []byte(authority), 0o600); err != nil {
					t.Fatal(err)
				}
			} else {
				plain := httptest.NewServer(lab)
				t.Cleanup(plain.Close)
				url = plain.URL
			}
			hive.Write(fmt.Sprintf(watching, url, more, key.Public().JWK()))
			hive.Start()
			checkSubscription(t, hive, lab)
		})
	}
}

func checkSubscription(t *testing.T, hive *hosttest.Site, lab *watchedLab) {
	t.Helper()
	body := hosttest.Script(hosttest.Step{"watch", hosttest.Args{"agent": "x", "topic": "tea", "filter": "green"}}, hosttest.Step{"await_message", hosttest.Args{}})
	post := client.Post{Task: "t", Body: body, Key: "once"}
	if _, err := hive.As(hosttest.AliceKey).PostAsync(t.Context(), post); err != nil {
		t.Fatal(err)
	}
	asked := <-lab.sent
	if asked.Intent != envelope.Subscribe || asked.Body.Content != `{"topic":"tea","filter":"green","ttl":3600}` {
		t.Errorf("%+v", asked.Envelope)
	}
	hive.Restart()
	close(lab.publish)
	if got, err := hive.As(hosttest.AliceKey).PostMessage(t.Context(), post); err != nil || !strings.Contains(got.Body, "it is green") {
		t.Fatalf("the task ends with %+v, %v", got, err)
	}
	for late := time.After(time.Minute); ; {
		select {
		case s := <-lab.sent:
			if s.Intent == envelope.Cancel && s.ReplyTo == asked.ID {
				return
			}
			t.Logf("the partner got %s %s for %q", s.Intent, s.ID, s.ReplyTo)
		case <-late:
			t.Fatal("the subscription is not withdrawn")
		}
	}
}
