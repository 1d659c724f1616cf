package gateway_test

import (
	"cmp"
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
comm_targets = ["*@*"]
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

// peerPartner is the partner whose program serves an agent at a port of this machine. more has the
// credential that it is shown.
func peerPartner(name, port, more string) string {
	return fmt.Sprintf(`[gateways.uamp.partners.%[1]s]
ids = ["did:web:localhost%%3A%[2]s"]
%[3]s
ca = "ca.pem"
allow_private = true
[[auth.keys]]
id = "%[1]s"
role = "agent"
key = "a-token-of-the-realm-%[1]s"
`, name, port, more)
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

// peerSite is a host whose partners are programs at ports of this machine.
type peerSite struct {
	hive  *hosttest.Site
	peers peers.Peers
	alice *client.Client
	ports map[string]string
}

// newPeerSite starts a host with these partners. tables returns what the tables of some have, by
// the partner's name, in place of a token; it gets the host's certificate.
func newPeerSite(t *testing.T, names []string, tables func(tls.Certificate) map[string]string) *peerSite {
	t.Helper()
	s := &peerSite{hive: hosttest.EmptySite(t), peers: peers.Find(t), ports: map[string]string{}}
	ca, caText := newAuthority(t)
	cert, key := ca.sign(t, &x509.Certificate{DNSNames: []string{"hive.example", "localhost"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}, nil)
	for name, text := range map[string]string{"ca.pem": caText, "cert.pem": cert, "key.pem": key} {
		if err := os.WriteFile(filepath.Join(s.hive.Dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pair, err := tls.X509KeyPair([]byte(cert), []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	more, file := tables(pair), asksPeers
	for _, name := range names {
		_, port, err := net.SplitHostPort(hosttest.FreeAddress(t, "127.0.0.1"))
		if err != nil {
			t.Fatal(err)
		}
		s.ports[name] = port
		file += peerPartner(name, port, cmp.Or(more[name], `auth_token = "`+peerToken(name)+`"`))
	}
	s.hive.Write(file)
	s.hive.Start()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(caText))
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "hive.example"}}
	t.Cleanup(tr.CloseIdleConnections)
	if s.alice, err = client.New(client.Options{URL: "https://" + s.hive.Addr(), Token: "a-key-of-alice-the-user", HTTP: &http.Client{Transport: tr}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.alice.Close)
	return s
}

func peerToken(name string) string { return "a-token-of-the-realm-" + name }

// serve starts the program of a partner.
func (s *peerSite) serve(t *testing.T, l peers.Language, name string, flags ...string) *peers.Server {
	t.Helper()
	in := func(name string) string { return filepath.Join(s.hive.Dir, name) }
	return s.peers.Serve(t, l, append([]string{"--did", "web", "--host", "localhost", "--port", s.ports[name], "--cert", in("cert.pem"), "--cert-key", in("key.pem"), "--ca", in("ca.pem"),
		"--connect", "hive.example=" + s.hive.Addr(), "--bearer", peerToken(name), "--service", "UAMPMessages"}, flags...)...)
}

// does lets our agent work with the agent of a server, whose address is in the arguments of each
// step, and returns what it answers at the end.
func (s *peerSite) does(t *testing.T, server *peers.Server, name string, steps ...hosttest.Step) string {
	t.Helper()
	for _, step := range steps {
		if args, is := step[1].(hosttest.Args); is && len(args) > 0 {
			args["target"] = strings.ReplaceAll(server.DID, "%", "%25") + "@" + name
		}
	}
	got, err := s.alice.PostMessage(t.Context(), client.Post{Body: hosttest.Script(steps...)})
	if err != nil {
		t.Fatal(err)
	}
	return got.Body
}

func (s *peerSite) asks(t *testing.T, server *peers.Server, name, body string) string {
	t.Helper()
	return s.does(t, server, name, hosttest.Step{"send_request", hosttest.Args{"subject": "s", "body": body}}, hosttest.Step{"await_message", hosttest.Args{}})
}

// nextOf is the next envelope of an intent that a server has accepted.
func nextOf(t *testing.T, server *peers.Server, intent string) map[string]any {
	t.Helper()
	for {
		if sent, _ := server.Next(t, "accepted")["envelope"].(map[string]any); sent["intent"] == intent {
			return sent
		}
	}
}

// TestUAMPPeerServers (U-020, U-023, U-030, U-033, U-034, U-041, U-042, U-051, U-061, U-065, U-067, U-080,
// U-089, U-100, V-U03): an agent of ours asks agents of programs that were written from the
// document alone, and which it knows by their DIDs. It reads their manifests, signs what they
// verify by our DID document, shows a capability token that they ask for, and reads their answers:
// a stream in windows, which is cut once, a signed envelope in the response, one that is sent to
// it later, and a failure. What they ask is confirmed to them by an envelope. The program in Python is shown a token of its token endpoint.
func TestUAMPPeerServers(t *testing.T) {
	t.Parallel()
	var given atomic.Int32
	languages := []peers.Language{peers.Node, peers.Python}
	s := newPeerSite(t, []string{"node", "python"}, func(cert tls.Certificate) map[string]string {
		at := tokenEndpoint(t, cert, func(id, secret string) string {
			if given.Add(1); id != "hive" || secret != "a+secret" {
				t.Errorf("a token for %q, %q", id, secret)
			}
			return peerToken("python")
		})
		return map[string]string{"python": fmt.Sprintf(`oauth = { token_url = "%s/token", client_id = "hive", client_secret = "env::SKEP_TEST_KEY" }`, at)}
	})
	for _, l := range languages {
		t.Run(string(l), func(t *testing.T) {
			t.Parallel()
			server := s.serve(t, l, string(l), "--require-cap", "--quirk", "cut")
			for body, want := range map[string]string{
				"count 9": "9", "hello there": "hello there", "direct tea": "tea", "callback later": "later", "fail": "busy",
			} {
				if got := s.asks(t, server, string(l), body); !strings.HasSuffix(got, " "+want) && !strings.HasSuffix(got, "\n"+want) {
					t.Errorf("%s: %q", body, got)
				}
			}
			did := server.Do(t, fmt.Sprintf(`{"intent":"ask","to":"did:web:hive.example:agents:hive:boss","url":"https://hive.example","content":%q}`,
				hosttest.Script(hosttest.Step{"task_complete", hosttest.Args{"finish_message": "told"}})))
			sent := nextOf(t, server, "confirm")
			if ext, _ := sent["ext"].(map[string]any); sent["reply_to"] != did["id"] || ext["x-answer-sha256"] == nil {
				t.Errorf("%v is confirmed by %v", did, sent)
			}
		})
	}
	t.Cleanup(func() {
		if n := given.Load(); n != 1 {
			t.Errorf("%d tokens", n)
		}
	})
}

// refusedPeers are what programs do wrong, and what of the reason our agent gets.
var refusedPeers = map[string]string{
	"altered":          "the envelope was changed",
	"unsigned":         "sig is missing",
	"wrong-key":        "made with another key",
	"other-from":       "it is from did:web:other.example",
	"redirect":         "it redirects, which is not followed",
	"other-document":   "other.example",
	"manifest-altered": "it is not signed by its issuer",
	"bad-json":         "the delta is not JSON",
	"busy":             "tea",
}

// TestUAMPPeerServersRefused (U-023, U-026, U-027, U-030, U-085, U-087, U-100, U-104): what is not signed by who was
// asked, or altered, is no answer, and our agent gets why. A busy program is asked again, and one
// that does not answer in time gets a cancel.
func TestUAMPPeerServersRefused(t *testing.T) {
	t.Parallel()
	names, tables := []string{}, map[string]string{}
	for _, l := range []string{"node", "python"} {
		names = append(names, l+"-slow")
		tables[l+"-slow"] = "auth_token = \"" + peerToken(l+"-slow") + "\"\ntimeout = \"5s\""
		for quirk := range refusedPeers {
			name := l + "-" + quirk
			names = append(names, name)
			if quirk != "busy" {
				tables[name] = "auth_token = \"" + peerToken(name) + "\"\ngive_up = \"1s\""
			}
		}
	}
	s := newPeerSite(t, names, func(tls.Certificate) map[string]string { return tables })
	for _, l := range []peers.Language{peers.Node, peers.Python} {
		t.Run(string(l), func(t *testing.T) {
			t.Parallel()
			for quirk, want := range refusedPeers {
				name := string(l) + "-" + quirk
				body := "direct tea"
				if quirk == "bad-json" {
					body = "count 2"
				}
				if got := s.asks(t, s.serve(t, l, name, "--quirk", quirk), name, body); !strings.Contains(got, want) {
					t.Errorf("%s: %q", quirk, got)
				}
			}
			name := string(l) + "-slow"
			server := s.serve(t, l, name)
			if got := s.asks(t, server, name, "slow"); !strings.Contains(got, "did not answer within 5s") {
				t.Errorf("slow: %q", got)
			}
			if asked, cancelled := nextOf(t, server, "ask"), nextOf(t, server, "cancel"); cancelled["reply_to"] != asked["id"] {
				t.Errorf("%v is withdrawn by %v", asked, cancelled)
			}
		})
	}
}
