package pages_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skep/host/internal/hosttest"
)

// TestACPGatewayPage: the files of the page on ACP are whole as they
// stand, and the commands after each have the answers that it shows, over HTTP, WebSocket,
// standard streams and a broker.
func TestACPGatewayPage(t *testing.T) {
	t.Parallel()
	const list = "SKEP_TOKEN=a-key-of-the-operator-on-this-machine skep gateway list"
	w := newWalk(t, "swarm.toml", "shop.acp", "mosquitto.conf", "acl")
	w.begun["PATH=$PATH:/usr/sbin mosquitto -c mosquitto.conf"] = func() { beginBroker(w) }
	w.waits[list] = "for n in $(seq 600); do " + list + " | grep -q 'acp *well' && break; sleep 0.1; done"
	w.read(hosttest.ReadText(t, "../../../docs/gateway-acp.md"))
	if w.tried != 16 {
		t.Errorf("%d commands", w.tried)
	}
}

// beginBroker starts the broker of the page's files, at a free port.
func beginBroker(w *walk) {
	w.t.Helper()
	own, is := strings.CutPrefix(hosttest.ReadText(w.t, filepath.Join(w.dir, "mosquitto.conf")), "listener 1884 127.0.0.1\n")
	b := hosttest.StartMosquitto(w.t, own, map[string]string{"acl": hosttest.ReadText(w.t, filepath.Join(w.dir, "acl"))})
	_, port, err := net.SplitHostPort(b.Addr)
	if err != nil || !is {
		w.t.Fatal(err, own)
	}
	w.replace = append(w.replace, "1884", port)
	file := filepath.Join(w.dir, "swarm.toml")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(hosttest.ReadText(w.t, file), "1884", port)), 0o600); err != nil {
		w.t.Fatal(err)
	}
}
