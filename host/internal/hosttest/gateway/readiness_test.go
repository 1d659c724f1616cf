package gateway_test

import (
	"net/http"
	"strings"
	"testing"

	"skep/host/internal/hosttest"
)

// awayBrokers are tables of brokers at an address where nothing listens, by their names in the file.
var awayBrokers = map[string]string{
	"acp.mqtt":     "[gateways.acp.mqtt]\nbroker = \"mqtt://ADDRESS\"\n[gateways.acp.partners.acme]\nids = [\"agent*\"]\ntopics = \"acp/v1/acme\"\n",
	"amp.rabbitmq": "[gateways.amp.rabbitmq]\nbroker = \"amqp://ADDRESS\"\n" + queuedPartner,
	"amp.kafka":    "[gateways.amp.kafka]\nbrokers = [\"ADDRESS\"]\nplain = true\n" + queuedPartner,
}

const queuedPartner = "[gateways.amp.partners.acme]\nids = [\"agent-*\"]\nqueues = true\nhmac_key = \"a-key-that-is-shared-by-both\"\n"

// TestReadyWarnsOfAwayBroker (A-044, M-095, M-096): a host whose broker is away is ready, and warns
// with the table to look at; the warning ends when the broker is there.
func TestReadyWarnsOfAwayBroker(t *testing.T) {
	t.Parallel()
	for table, text := range awayBrokers {
		t.Run(table, func(t *testing.T) {
			t.Parallel()
			address, comes := "127.0.0.1:1", func() {}
			if table == "acp.mqtt" {
				b := hosttest.StartMosquitto(t, "allow_anonymous true\n", nil)
				b.Kill()
				address, comes = b.Addr, func() { b.Start(t) }
			}
			s := hosttest.EmptySite(t)
			name, _, _ := strings.Cut(table, ".")
			s.Write(strings.Replace(file("hive", strings.Replace(text, "ADDRESS", address, 1)), `"a2a"]`, `"a2a", "`+name+`"]`, 1))
			s.Start()
			hosttest.Eventually(t, "the host warns", func() bool {
				text := readiness(t, s)
				return strings.HasPrefix(text, "ready\nwarning: the gateway "+name+" is not well: the broker") && strings.Contains(text, "[gateways."+table+"]")
			})
			if comes(); table == "acp.mqtt" {
				hosttest.Eventually(t, "the warning ends", func() bool { return readiness(t, s) == "ready\n" })
			}
		})
	}
}

// readiness is what a host that is ready says of itself.
func readiness(t *testing.T, s *hosttest.Site) string {
	t.Helper()
	resp, text := hosttest.Fetch(t, http.DefaultClient, "http://"+s.AdminAddr()+"/readyz")
	if resp.StatusCode != http.StatusOK {
		t.Errorf("the host is not ready: %s", text)
	}
	return text
}
