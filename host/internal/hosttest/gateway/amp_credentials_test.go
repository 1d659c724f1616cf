package gateway_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skep/host/internal/gateway/amp/amptest"
	"skep/host/internal/gateway/amp/message"
	"skep/host/internal/hosttest"
)

// TestCertificateOverAMP (M-072): a client certificate with a name of the partner proves its
// agents and no others; a certificate with another name and none prove no caller.
func TestCertificateOverAMP(t *testing.T) {
	t.Parallel()
	s := hosttest.EmptySite(t)
	ca, caText := newAuthority(t)
	cert, key := ca.sign(t, &x509.Certificate{DNSNames: []string{"hive.example"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}, nil)
	for name, text := range map[string]string{"ca.pem": caText, "cert.pem": cert, "key.pem": key} {
		if err := os.WriteFile(filepath.Join(s.Dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.Write(strings.NewReplacer(
		`key = "key.pem" }`, `key = "key.pem", client_ca = "ca.pem" }`,
		"uamp", "amp", `ids = ["did:key:*"]`, `ids = ["agent-*"]`+"\n"+`certificates = ["spiffe://lab.example/agents"]`,
	).Replace(enveloped))
	s.Start()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(caText)) {
		t.Fatal("no certificate of the authority")
	}
	for name, c := range map[string]struct {
		path, source string // the path of the certificate's name; "" for no certificate
		status       int
		reason       string
	}{
		"the partner":             {"/agents", "agent-1", http.StatusOK, ""},
		"an agent of no partner":  {"/agents", "other-1", http.StatusForbidden, message.ReasonForbidden},
		"a name of no partner":    {"/others", "agent-1", http.StatusUnauthorized, message.ReasonCredential},
		"without any certificate": {"", "agent-1", http.StatusUnauthorized, message.ReasonCredential},
	} {
		t.Run(name, func(t *testing.T) {
			config := &tls.Config{RootCAs: roots, ServerName: "hive.example"}
			if c.path != "" {
				spiffe := &url.URL{Scheme: "spiffe", Host: "lab.example", Path: c.path}
				cert, key := ca.sign(t, &x509.Certificate{URIs: []*url.URL{spiffe}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, nil)
				pair, err := tls.X509KeyPair([]byte(cert), []byte(key))
				if err != nil {
					t.Fatal(err)
				}
				config.Certificates = []tls.Certificate{pair}
			}
			tr := &http.Transport{TLSClientConfig: config}
			t.Cleanup(tr.CloseIdleConnections)
			rsp, err := (&http.Client{Transport: tr}).Post("https://"+s.Addr()+"/aip/v1/invoke", "application/json", strings.NewReader(amptest.Mail(c.source, "boss", "hello").Text()))
			if err != nil {
				t.Fatal(err)
			}
			defer rsp.Body.Close()
			text, err := io.ReadAll(rsp.Body)
			if err != nil {
				t.Fatal(err)
			}
			m, err := amptest.Parse(text)
			if err != nil {
				t.Fatalf("%d %s: %v", rsp.StatusCode, text, err)
			}
			_, _, reason := m.Fault()
			if rsp.StatusCode != c.status || reason != c.reason {
				t.Errorf("got %d %s", rsp.StatusCode, text)
			}
		})
	}
}

// signedAMP signs a message of now.
func signedAMP(t *testing.T, m amptest.Message, key string) amptest.Message {
	t.Helper()
	m.Message.Timestamp = time.Now().UTC().Format(time.RFC3339)
	in, err := (message.Reader{Depth: 64}).Read([]byte(m.Text()))
	if err != nil {
		t.Fatal(err)
	}
	if err := message.Sign(&in.Message, []byte(key)); err != nil {
		t.Fatal(err)
	}
	m.Message.Headers["signature"] = amptest.Object{"algorithm": in.Headers.Signature.Algorithm, "value": in.Headers.Signature.Value}
	return m
}

// TestGuessedSignaturesAreLimited (M-073): messages whose signature proves no sender
// count in the rate of their address. Beyond it no signature is checked, valid or not, while
// a caller with a token keeps the limits of its own.
func TestGuessedSignaturesAreLimited(t *testing.T) {
	t.Parallel()
	const key, acmeToken = "a-shared-key-of-the-partner", "the-token-of-acme-at-hive"
	const limit = 5
	s := hosttest.NewSite(t, strings.Replace(file("hive", `[server]
rate_limit = { requests = 5, per = "1h" }
[gateways.amp]
[gateways.amp.partners.lone]
ids = ["lone-*"]
hmac_key = "`+key+`"
hmac_alone = true
[gateways.amp.partners.acme]
ids = ["agent-*"]
[[auth.keys]]
id = "acme"
role = "agent"
key = "`+acmeToken+`"
`), `expose = ["mcp", "a2a"]`, `expose = ["mcp", "a2a", "amp"]`, 1))
	post := func(m amptest.Message, token string) int {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+"/aip/v1/invoke", strings.NewReader(m.Text()))
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		rsp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		rsp.Body.Close()
		return rsp.StatusCode
	}
	send := func(key string) int {
		t.Helper()
		return post(signedAMP(t, amptest.Mail("lone-1", "boss", "hello"), key), "")
	}
	if got := send(key); got != http.StatusOK {
		t.Fatalf("the shared key gets %d", got)
	}
	refused := 0
	for range limit {
		switch got := send("a-key-that-is-a-guess"); got {
		case http.StatusUnauthorized:
			refused++
		case http.StatusTooManyRequests:
		default:
			t.Errorf("a guess gets %d", got)
		}
	}
	if refused == 0 || refused == limit {
		t.Errorf("%d of %d guesses are checked", refused, limit)
	}
	if got := send(key); got != http.StatusTooManyRequests {
		t.Errorf("beyond the limit the shared key gets %d", got)
	}
	if got := post(amptest.Mail("agent-1", "boss", "hello"), acmeToken); got != http.StatusOK {
		t.Errorf("a caller with a token gets %d", got)
	}
}
