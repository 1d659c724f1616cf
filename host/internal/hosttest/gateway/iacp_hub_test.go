package gateway_test

import (
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"skep/host/internal/gateway/iacp/iacptest/peers"
	"skep/host/internal/hosttest"
)

// hubTable is the partner mill, to which the host connects.
const hubTable = `[gateways.iacp.partners.mill]
url = "SCHEME://127.0.0.1:PORT"
ids = ["mill-*"]
CREDENTIAL
allow_private = true
[[auth.keys]]
id = "alice"
`

const millKey = "a-key-of-hive-at-the-mill"

// millOptions are the flags of a peer of mill, in the role of the hub or of another spoke of it,
// and the keys of the hub's table.
type millOptions struct {
	scheme, credential string
	hub, spoke         []string
}

// millFiles writes the certificates of mill's authority, which the system does not know, and
// returns their folder.
func millFiles(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	ca, caText := newAuthority(t)
	server, serverKey := ca.sign(t, &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}, nil)
	spoke, spokeKey := ca.sign(t, &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, nil)
	for name, text := range map[string]string{"ca.pem": caText, "mill.pem": server, "mill.key": serverKey, "spoke.pem": spoke, "spoke.key": spokeKey} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestIACPHub (I-023, I-028, I-036, I-054, I-057, I-072, I-074, V-I15): the host is a spoke of a
// hub that was written from the document, over TCP, over TLS with a key, and with a client
// certificate that the hub demands: it authenticates, registers its agents, asks and is asked, by
// the hub itself and by another spoke of the hub, and is there again after the hub was restarted.
func TestIACPHub(t *testing.T) {
	t.Parallel()
	dir := millFiles(t)
	file := func(name string) string { return filepath.Join(dir, name) }
	key, ca := "api_key = \""+millKey+"\"\n", fmt.Sprintf("ca = %q\n", file("ca.pem"))
	server := []string{"--cert", file("mill.pem"), "--cert-key", file("mill.key")}
	for name, o := range map[string]millOptions{
		"TCP":            {"iacp", key, []string{"--api-key", millKey}, []string{"--api-key", millKey}},
		"TLS with a key": {"iacps", key + ca, append(server, "--api-key", millKey), []string{"--api-key", millKey, "--tls", "--ca", file("ca.pem")}},
		"TLS with a certificate": {
			"iacps", ca + fmt.Sprintf("certificate = %q\nkey = %q\n", file("spoke.pem"), file("spoke.key")), append(server, "--ca", file("ca.pem")),
			[]string{"--tls", "--ca", file("ca.pem"), "--cert", file("spoke.pem"), "--cert-key", file("spoke.key")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkHub(t, o)
		})
	}
}

// newMillSite starts a hub and a host that connects to it.
func newMillSite(t *testing.T, o millOptions) (s *hosttest.Site, hub *peers.Peer, port string) {
	t.Helper()
	hub, port = startMill(t, "0", o)
	table := strings.NewReplacer("SCHEME", o.scheme, "PORT", port, "CREDENTIAL", o.credential).Replace(hubTable)
	s, _ = newFramedSite(t, false, "[[auth.keys]]\nid = \"alice\"\n", table, `"*@depot"`, `"*@depot", "*@mill"`)
	return s, hub, port
}

// startMill starts the hub, at any port for "0".
func startMill(t *testing.T, port string, o millOptions) (hub *peers.Peer, at string) {
	t.Helper()
	hub = peers.Start(t, "hub", append([]string{"--port", port, "--agent-id", "mill-hub"}, o.hub...)...)
	got, _ := hub.Next(t, "listens")["port"].(float64)
	return hub, strconv.Itoa(int(got))
}

func checkHub(t *testing.T, o millOptions) {
	t.Helper()
	s, hub, port := newMillSite(t, o)
	for round := range 2 {
		for range 4 {
			hub.Next(t, "registered")
		}
		kind, payload := answerOf(t, hub.Do(t, spokeJob("boss", "task_request", `{"task_type":"mail.message","parameters":{"body":"hello"}}`)))
		if kind != "task_response" || payload["status"] != "completed" {
			t.Errorf("the hub gets a %s %v", kind, payload)
		}
		spoke := peers.Start(t, "spoke", slices.Concat([]string{"--connect", "127.0.0.1:" + port, "--agent-id", "mill-2", "--backoff", "0.2"}, o.spoke)...)
		spoke.Next(t, "registered")
		hub.Next(t, "registered")
		kind, payload = answerOf(t, spoke.Do(t, spokeJob("boss", "task_request", `{"task_type":"mail.message","parameters":{"body":"hello"}}`)))
		if kind != "task_response" || payload["status"] != "completed" {
			t.Errorf("the hub's other spoke gets a %s %v", kind, payload)
		}
		for _, agent := range []string{"mill-hub", "mill-2"} {
			got := s.Do(hosttest.AliceKey, fmt.Sprint(agent, round), hosttest.Step{"send_request", hosttest.Args{"target": agent + "@mill", "subject": "s", "body": "flour"}}, hosttest.Step{"await_message", hosttest.Args{}})
			if !strings.Contains(got, "flour") {
				t.Errorf("%s answers %s", agent, got)
			}
		}
		spoke.Stop()
		if hub.Stop(); round == 0 {
			hub, _ = startMill(t, port, o)
		}
	}
}

// TestIACPUnknownHub (I-072, I-074): a hub whose certificate is of an authority that nothing names,
// or that demands another certificate, gets no message, and the ping has the reason.
func TestIACPUnknownHub(t *testing.T) {
	t.Parallel()
	dir := millFiles(t)
	file := func(name string) string { return filepath.Join(dir, name) }
	server, key := []string{"--cert", file("mill.pem"), "--cert-key", file("mill.key")}, "api_key = \""+millKey+"\"\n"
	for name, c := range map[string]struct {
		o    millOptions
		want string
	}{
		"no authority": {millOptions{"iacps", key, server, nil}, "certificate signed by unknown authority"},
		// the connection may end before the alert of TLS 1.3 is read
		"no certificate": {millOptions{"iacps", key + fmt.Sprintf("ca = %q\n", file("ca.pem")), append(server, "--ca", file("ca.pem")), nil}, "no handshake_ack"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _, _ := newMillSite(t, c.o)
			// until the first attempt has ended there is no reason but that there is no connection
			hosttest.Eventually(t, "the ping has the reason "+c.want, func() bool {
				got, err := s.As("a-key-of-the-operator").PingPartner(t.Context(), "mill")
				if got.Active {
					t.Errorf("the ping: %+v, %v", got, err)
				}
				return strings.Contains(fmt.Sprint(got, err), c.want)
			})
		})
	}
}
