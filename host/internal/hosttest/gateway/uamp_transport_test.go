package gateway_test

import (
	"bytes"
	"cmp"
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skep/host/internal/gateway/uamp/envelope"
	"skep/host/internal/gateway/uamp/seal"
	"skep/host/internal/hosttest"
)

// uampSite is a host with TLS and an agent that is asked over UAMP.
type uampSite struct {
	*hosttest.Site
	roots *x509.CertPool
	// lab is a certificate of the partner; key is the did:key of an agent there.
	lab tls.Certificate
	id  string
	key seal.Key
}

func newUAMPSite(t *testing.T, more string) *uampSite {
	t.Helper()
	s := &uampSite{Site: hosttest.EmptySite(t), roots: x509.NewCertPool()}
	ca, caText := newAuthority(t)
	cert, key := ca.sign(t, &x509.Certificate{DNSNames: []string{"hive.example"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}, nil)
	spiffe := &url.URL{Scheme: "spiffe", Host: "lab.example", Path: "/agents"}
	labCert, labKey := ca.sign(t, &x509.Certificate{URIs: []*url.URL{spiffe}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, nil)
	for name, text := range map[string]string{"ca.pem": caText, "cert.pem": cert, "key.pem": key} {
		if err := os.WriteFile(filepath.Join(s.Dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if s.lab, err = tls.X509KeyPair([]byte(labCert), []byte(labKey)); err != nil || !s.roots.AppendCertsFromPEM([]byte(caText)) {
		t.Fatal(err)
	}
	k, err := seal.NewKey("", ed25519.NewKeyFromSeed(bytes.Repeat([]byte("l"), ed25519.SeedSize)))
	if err != nil {
		t.Fatal(err)
	}
	s.id = "did:key:" + k.Public().Multikey()
	s.key = k.WithID(s.id + "#" + k.Public().Multikey())
	s.Write(strings.NewReplacer(
		`key = "key.pem" }`, `key = "key.pem", client_ca = "ca.pem" }`,
		`max_body = "256KB"`, `max_body = "256KB"`+"\n"+more,
		`ids = ["did:key:*"]`, `ids = ["did:key:*"]`+"\n"+`certificates = ["spiffe://lab.example/agents"]`,
	).Replace(enveloped))
	s.Start()
	return s
}

// client is a client of the host, whose TLS a test changes.
func (s *uampSite) client(t *testing.T, change func(*tls.Config, *http.Transport)) *http.Client {
	t.Helper()
	c := &tls.Config{RootCAs: s.roots, ServerName: "hive.example"}
	tr := &http.Transport{TLSClientConfig: c, ForceAttemptHTTP2: true}
	change(c, tr)
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// newAsk is the signed text of an ask whose agent answers with two chunks and the end.
func (s *uampSite) newAsk(t *testing.T) string {
	t.Helper()
	text, _ := s.askFor(t, "a", "b")
	return text
}

// askFor is the signed text of an ask whose agent answers with chunks and the end, and the name of
// its stream. The window is 2.
func (s *uampSite) askFor(t *testing.T, chunks ...string) (text, stream string) {
	t.Helper()
	var steps []hosttest.Step
	for _, c := range chunks {
		steps = append(steps, hosttest.Step{"emit", hosttest.Args{"chunk": c}})
	}
	steps = append(steps, hosttest.Step{"task_complete", hosttest.Args{"finish_message": "done"}})
	e := envelope.Envelope{ID: envelope.NewID(), Intent: envelope.Ask, Body: envelope.NewBody("text/plain", []byte(hosttest.Script(steps...)))}
	return s.sign(t, e), "str-" + string(e.ID)
}

// sign is the signed text of an envelope to the host, with a new id if it has none. The window is 2.
func (s *uampSite) sign(t *testing.T, e envelope.Envelope) string {
	t.Helper()
	e.ID = cmp.Or(e.ID, envelope.NewID())
	e.Time, e.From, e.To, e.Window = time.Now(), s.id, []string{"did:web:hive.example"}, 2
	sum, err := e.Sum()
	if err != nil {
		t.Fatal(err)
	}
	if e.Sig, err = s.key.Sign(sum); err != nil {
		t.Fatal(err)
	}
	signed, err := e.Text()
	if err != nil {
		t.Fatal(err)
	}
	return string(signed)
}

// send sends a request with the token of lab, if one is wanted.
func (s *uampSite) send(t *testing.T, c *http.Client, method, path, token, body string, header ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "https://"+s.Addr()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", envelope.MediaType)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	rsp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer rsp.Body.Close()
	text, err := io.ReadAll(rsp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return rsp, string(text)
}

// deltasOf are the events of a stream without its comments.
func deltasOf(text string) string { return strings.ReplaceAll(text, ":\n\n", "") }

const labToken = "a-token-of-the-realm-lab"

// TestUAMPTransport (U-040, U-041, U-103, V-U17, V-U18, V-U36, V-U39): envelopes come by TLS
// 1.3 and h2, from a caller with a token or with the partner's certificate, no more than the
// rate allows; their stream is read to its end after a restart.
func TestUAMPTransport(t *testing.T) {
	t.Parallel()
	s := newUAMPSite(t, `rate_limit = { requests = 3, per = "1h" }`)
	plain, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	if _, err := io.WriteString(plain, "POST /v1/messages HTTP/1.1\r\nHost: hive.example\r\nContent-Length: 0\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(plain); err != nil || strings.Contains(string(got), " 202 ") || strings.Contains(string(got), " 401 ") {
		t.Errorf("in the clear: %q %v", got, err)
	}
	old := s.client(t, func(c *tls.Config, _ *http.Transport) { c.MaxVersion = tls.VersionTLS12 })
	if rsp, err := old.Get("https://" + s.Addr() + "/.well-known/did.json"); err == nil {
		rsp.Body.Close()
		t.Error("TLS 1.2 is served")
	}
	other := s.client(t, func(_ *tls.Config, tr *http.Transport) { tr.ForceAttemptHTTP2 = false })
	if rsp, _ := s.send(t, other, http.MethodPost, "/v1/messages", labToken, s.newAsk(t)); rsp.StatusCode != http.StatusHTTPVersionNotSupported {
		t.Errorf("HTTP/1.1: %s", rsp.Status)
	}
	bare := s.client(t, func(*tls.Config, *http.Transport) {})
	if rsp, text := s.send(t, bare, http.MethodPost, "/v1/messages", "", s.newAsk(t)); rsp.StatusCode != http.StatusUnauthorized || rsp.Header.Get("WWW-Authenticate") != "Bearer" {
		t.Errorf("without a credential: %s %s", rsp.Status, text)
	}
	certified := s.client(t, func(c *tls.Config, _ *http.Transport) { c.Certificates = []tls.Certificate{s.lab} })
	first, text := s.send(t, certified, http.MethodPost, "/v1/messages", "", s.newAsk(t))
	if first.StatusCode != http.StatusAccepted {
		t.Fatalf("with a certificate: %s %s", first.Status, text)
	}
	at := first.Header.Get("Location")
	_, begin := s.send(t, bare, http.MethodGet, at, labToken, "")
	if strings.Count(begin, "data: ") != 2 || !strings.Contains(begin, "id: 1\n") {
		t.Errorf("a window: %s", begin)
	}
	for i := range 3 {
		rsp, text := s.send(t, bare, http.MethodPost, "/v1/messages", labToken, s.newAsk(t))
		switch {
		case i < 2 && rsp.StatusCode != http.StatusAccepted:
			t.Errorf("with a token: %s %s", rsp.Status, text)
		case i == 2 && (rsp.StatusCode != http.StatusTooManyRequests || rsp.Header.Get("Retry-After") == "" || !strings.Contains(text, `4.29`) || !strings.Contains(text, "rate_limit")):
			t.Errorf("above the rate: %s %v %s", rsp.Status, rsp.Header, text)
		}
	}
	s.Restart()
	if _, again := s.send(t, bare, http.MethodGet, at, labToken, ""); deltasOf(again) != deltasOf(begin) {
		t.Errorf("after a restart: %s\nbefore: %s", again, begin)
	}
	if _, end := s.send(t, bare, http.MethodGet, at, labToken, "", "Last-Event-ID", "1"); strings.Count(end, "data: ") != 1 || !strings.Contains(end, `"type":"done"`) {
		t.Errorf("the end after a restart: %s", end)
	}
}
