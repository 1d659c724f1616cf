package hosttest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skep/host/client"
	"skep/host/internal/guests"
)

// Everywhere is the two hosts of examples/everywhere, each a process of its own, at free
// ports. A question to the entrypoint of Hive passes both of them over each protocol.
type Everywhere struct {
	Hive, Depot *Process

	authorities *x509.CertPool
}

// EverywhereRoute is the agents that the question passes, in their order.
var EverywhereRoute = []string{
	"desk@hive", "porter@depot", "clerk@depot", "scout@hive", "miller@depot", "teller@hive", "broker@depot", "goal@hive",
}

// EverywhereAnswer is the answer to a question of a trace.
func EverywhereAnswer(question, traceID string) string {
	var text strings.Builder
	for _, agent := range EverywhereRoute {
		text.WriteString(agent + " " + traceID + "\n")
	}
	return text.String() + "arrived: " + question
}

// StartEverywhere starts both hosts. change edits the file of each.
func StartEverywhere(t *testing.T, change ...string) *Everywhere {
	t.Helper()
	e := &Everywhere{Hive: NewProcess(t, "127.0.0.1"), Depot: NewProcess(t, "127.0.0.1"), authorities: x509.NewCertPool()}
	cert, key := localhostCertificate(t)
	e.authorities.AppendCertsFromPEM(cert)
	root := filepath.Join(guests.Root(), "examples", "everywhere")
	guests.Bytes(t, "examples/everywhere/relay")
	ports := append(change,
		"8443", portOf(t, e.Hive.Addr), "8444", portOf(t, e.Hive.admin), "8445", portOf(t, FreeAddress(t, "127.0.0.1")),
		"9443", portOf(t, e.Depot.Addr), "9444", portOf(t, e.Depot.admin), "9445", portOf(t, FreeAddress(t, "127.0.0.1")),
		"../tls/", "", "../../../bin", filepath.Join(guests.Root(), "bin"))
	for name, p := range map[string]*Process{"hive": e.Hive, "depot": e.Depot} {
		p.authorities = filepath.Join(p.Dir, "cert.pem")
		files := map[string]string{"cert.pem": string(cert), "key.pem": string(key), "swarm.toml": ReadText(t, filepath.Join(root, name, "swarm.toml"))}
		if name == "hive" {
			files["depot.mcp.json"] = ReadText(t, filepath.Join(root, name, "depot.mcp.json"))
		}
		for file, text := range files {
			if file == "swarm.toml" {
				text = onServer(t, p.Data(), strings.NewReplacer(ports...).Replace(text))
				writeStoreKey(t, p.Dir)
			}
			if err := os.WriteFile(filepath.Join(p.Dir, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	e.Depot.launchWritten()
	e.ClientOf(e.Depot, "", "") // what hive finds nobody at it tries again half a minute later
	e.Hive.launchWritten()
	return e
}

// Client is a client of Hive with a key, whose posts have a traceparent; empty for none.
func (e *Everywhere) Client(key, traceparent string) *client.Client {
	return e.ClientOf(e.Hive, key, traceparent)
}

// ClientOf is a client of a host, as Client is one of Hive.
func (e *Everywhere) ClientOf(p *Process, key, traceparent string) *client.Client {
	t := e.Transport(p.t)
	return p.clientOf(client.Options{URL: e.URL(p), Token: key, HTTP: &http.Client{Transport: tracing{t, traceparent}}})
}

// URL is the address of a host, by the name in its certificate.
func (*Everywhere) URL(p *Process) string { return "https://localhost:" + portOf(p.t, p.Addr) }

// TLS is a configuration of clients of both hosts.
func (e *Everywhere) TLS() *tls.Config {
	return &tls.Config{RootCAs: e.authorities, ServerName: "localhost"}
}

// Transport makes connections to both hosts, HTTP/2 where it can.
func (e *Everywhere) Transport(t *testing.T) *http.Transport {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = e.TLS()
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}

// tracing adds a traceparent to requests.
type tracing struct {
	next        http.RoundTripper
	traceparent string
}

// RoundTrip implements [http.RoundTripper].
func (t tracing) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.traceparent != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Traceparent", t.traceparent)
	}
	return t.next.RoundTrip(r)
}

func portOf(t *testing.T, addr string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// localhostCertificate makes a certificate for localhost that is its own authority.
func localhostCertificate(t *testing.T) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(30 * 24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})
}
