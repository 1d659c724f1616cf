package gateway_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"skep/host/client"
	"skep/host/internal/gateway/uamp/uamptest/peers"
	"skep/host/internal/hosttest"
)

// asksPeers is a swarm whose agent asks agents of two partners, which it knows by their DIDs.
const asksPeers = `schema = 1
[swarm]
name = "hive"
entrypoint = "boss"
enable_interswarm = true
[agents.boss]
source = "file:script.wasm"
enable_entrypoint = true
enable_interswarm = true
can_complete_tasks = true
comm_targets = ["*@node", "*@python"]
expose = ["uamp"]
[server]
public_url = "https://hive.example"
tls = { cert = "cert.pem", key = "key.pem" }
[gateways.uamp]
[[auth.keys]]
id = "alice"
role = "user"
key = "a-key-of-alice-the-user"
`

// peerPartner is the partner whose program serves an agent at a port of this machine, with the
// credential that it is shown.
func peerPartner(name peers.Language, port, credential string) string {
	return fmt.Sprintf(`[gateways.uamp.partners.%[1]s]
ids = ["did:web:localhost%%3A%[2]s"]
%[3]s
ca = "ca.pem"
allow_private = true
[[auth.keys]]
id = "%[1]s"
role = "agent"
key = "a-token-of-the-realm-%[1]s"
`, name, port, credential)
}

// tokenEndpoint is a server that gives tokens to clients by their credentials.
func tokenEndpoint(t *testing.T, cert tls.Certificate, give func(id, secret string) string) (url string) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, secret, _ := r.BasicAuth()
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"access_token":%q,"token_type":"Bearer","expires_in":3600}`, give(id, secret))
	}))
	s.EnableHTTP2, s.TLS = true, &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS13}
	s.StartTLS()
	t.Cleanup(s.Close)
	return strings.Replace(s.URL, "127.0.0.1", "localhost", 1)
}

// TestUAMPPeerServers (U-020, U-023, U-030, U-033, U-034, U-041, U-042, U-051, U-061, U-065, U-067, U-080,
// U-100, V-U03): an agent of ours asks agents of programs that were written from the document
// alone, and which it knows by their DIDs. It reads their manifests, signs what they verify by our
// DID document, shows a capability token that they ask for, and reads their answers: a stream in
// windows, which is cut once, a signed envelope in the response, one that is sent to it later,
// and a failure. The program in Python is shown a token of its token endpoint.
func TestUAMPPeerServers(t *testing.T) {
	t.Parallel()
	p := peers.Find(t)
	hive := hosttest.EmptySite(t)
	ca, caText := newAuthority(t)
	cert, key := ca.sign(t, &x509.Certificate{DNSNames: []string{"hive.example", "localhost"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}, nil)
	for name, text := range map[string]string{"ca.pem": caText, "cert.pem": cert, "key.pem": key} {
		if err := os.WriteFile(filepath.Join(hive.Dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pair, err := tls.X509KeyPair([]byte(cert), []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	var given atomic.Int32
	credentials := map[peers.Language]string{
		peers.Node: `auth_token = "a-token-of-the-realm-node"`,
		peers.Python: fmt.Sprintf(`oauth = { token_url = "%s/token", client_id = "hive", client_secret = "env::SKEP_TEST_KEY" }`, tokenEndpoint(t, pair, func(id, secret string) string {
			if given.Add(1); id != "hive" || secret != "a+secret" {
				t.Errorf("a token for %q, %q", id, secret)
			}
			return "a-token-of-the-realm-python"
		})),
	}
	languages, ports, file := []peers.Language{peers.Node, peers.Python}, map[peers.Language]string{}, asksPeers
	for _, l := range languages {
		_, port, err := net.SplitHostPort(hosttest.FreeAddress(t, "127.0.0.1"))
		if err != nil {
			t.Fatal(err)
		}
		ports[l] = port
		file += peerPartner(l, port, credentials[l])
	}
	hive.Write(file)
	hive.Start()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(caText))
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "hive.example"}}
	t.Cleanup(tr.CloseIdleConnections)
	alice, err := client.New(client.Options{URL: "https://" + hive.Addr(), Token: "a-key-of-alice-the-user", HTTP: &http.Client{Transport: tr}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(alice.Close)
	for _, l := range languages {
		t.Run(string(l), func(t *testing.T) {
			t.Parallel()
			in := func(name string) string { return filepath.Join(hive.Dir, name) }
			server := p.Serve(t, l, "--did", "web", "--host", "localhost", "--port", ports[l], "--cert", in("cert.pem"), "--cert-key", in("key.pem"), "--ca", in("ca.pem"),
				"--connect", "hive.example="+hive.Addr(), "--bearer", "a-token-of-the-realm-"+string(l), "--require-cap", "--service", "UAMPMessages", "--quirk", "cut")
			for body, want := range map[string]string{
				"count 9": "9", "hello there": "hello there", "direct tea": "tea", "callback later": "later", "fail": "busy",
			} {
				text := hosttest.Script(hosttest.Step{"send_request", hosttest.Args{"target": strings.ReplaceAll(server.DID, "%", "%25") + "@" + string(l), "subject": "s", "body": body}}, hosttest.Step{"await_message", hosttest.Args{}})
				got, err := alice.PostMessage(t.Context(), client.Post{Body: text})
				if err != nil || !strings.HasSuffix(got.Body, " "+want) && !strings.HasSuffix(got.Body, "\n"+want) {
					t.Errorf("%s: %q, %v", body, got.Body, err)
				}
			}
		})
	}
	t.Cleanup(func() {
		if n := given.Load(); n != 1 {
			t.Errorf("%d tokens", n)
		}
	})
}
