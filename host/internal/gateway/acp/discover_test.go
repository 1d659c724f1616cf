package acp_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/packets"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/acp"
	"skep/host/internal/gateway/acp/acptest"
	"skep/host/internal/hosttest"
)

// brokerWith answers connections and subscriptions with reason codes, and returns its
// address.
func brokerWith(t *testing.T, connack, suback byte) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			for read, err := packets.ReadPacket(conn); err == nil; read, err = packets.ReadPacket(conn) {
				switch p := read.Content.(type) { // a client may ping in between
				case *packets.Connect:
					_, _ = (&packets.Connack{ReasonCode: connack, Properties: &packets.Properties{}}).WriteTo(conn)
				case *packets.Subscribe:
					_, _ = (&packets.Suback{PacketID: p.PacketID, Reasons: []byte{suback}, Properties: &packets.Properties{}}).WriteTo(conn)
				}
			}
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return "mqtt://" + l.Addr().String()
}

// A partner with topics is asked by a connection to the broker; what is wrong is named
// with the line that decides.
func TestDiscoverBroker(t *testing.T) {
	t.Parallel()
	other := httptest.NewTLSServer(http.NotFoundHandler())
	defer other.Close()
	otherURL := strings.Replace(other.URL, "https", "mqtts", 1)
	trusted := other.Client().Transport.(*http.Transport).TLSClientConfig
	elsewhere, later := trusted.Clone(), trusted.Clone()
	elsewhere.ServerName = "broker.example"
	later.Time = func() time.Time { return time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC) }
	const refused = 0x87
	for name, c := range map[string]struct {
		mqtt *acp.MQTT
		want []string
	}{
		"none":                    {nil, []string{"the host started without broker in [gateways.acp.mqtt]"}},
		"nobody":                  {&acp.MQTT{URL: "mqtt://" + hosttest.FreeAddress(t, "127.0.0.1")}, []string{"refused: look at broker in [gateways.acp.mqtt]"}},
		"another authority":       {&acp.MQTT{URL: otherURL}, []string{"unknown authority: set ca in [gateways.acp.mqtt]"}},
		"another name":            {&acp.MQTT{URL: otherURL, TLS: elsewhere}, []string{"not broker.example: look at broker in [gateways.acp.mqtt]: its certificate is for other names"}},
		"an old certificate":      {&acp.MQTT{URL: otherURL, TLS: later}, []string{"expired", "renew the broker's certificate"}},
		"TLS":                     {&acp.MQTT{URL: strings.Replace(other.URL, "https", "mqtt", 1)}, []string{"look at broker in [gateways.acp.mqtt]: at this port it may speak TLS, which is mqtts://"}},
		"no TLS":                  {&acp.MQTT{URL: strings.Replace(brokerWith(t, 0, 1), "mqtt", "mqtts", 1)}, []string{"look at broker in [gateways.acp.mqtt]"}},
		"a wrong password":        {&acp.MQTT{URL: brokerWith(t, refused, 0)}, []string{"the reason 0x87: look at username, password and certificate in [gateways.acp.mqtt]"}},
		"topics of somebody else": {&acp.MQTT{URL: brokerWith(t, 0, refused)}, []string{"acp/v1/acme/+/out", "the reason is 0x87: look at topics in [gateways.acp.partners.acme]"}},
		"no connection":           {&acp.MQTT{URL: brokerWith(t, 0, 1)}, []string{"the broker is not connected"}},
	} {
		s := newSite(t, func(o *acp.Options) { o.MQTT = c.mqtt })
		_, err := s.g.Discover(t.Context(), gateway.Partner{Name: "acme", Tenant: "default", Options: map[string]any{"topics": "acp/v1/acme"}})
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", name, err, want)
			}
		}
	}
}

// A partner without url and topics is asked on its connections, and those are its agents
// that have spoken there. Without a connection its mailbox is named.
func TestDiscoverSockets(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	p := gateway.Partner{Name: "acme", Tenant: "default"}
	if _, err := s.g.Discover(t.Context(), p); err == nil || !strings.Contains(err.Error(), "mailbox") {
		t.Errorf("without a connection: %v", err)
	}
	for _, agent := range []string{"agentB", "agentA"} {
		c := s.dial(t)
		exchange(t, c, acptest.New("REQUEST", agent, "calc", "7").Text())
		go func() { _, _ = c.ReadText(t.Context()) }() // answers pings
	}
	got, err := s.g.Discover(t.Context(), p)
	var names []string
	for _, a := range got {
		names = append(names, a.Name)
	}
	if err != nil || !slices.Equal(names, []string{"agentA", "agentB"}) {
		t.Errorf("got %q, %v", names, err)
	}
}

// A partner with a url answers there, and takes the credential.
func TestDiscoverURL(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	for status, want := range map[int]string{http.StatusMethodNotAllowed: "", http.StatusForbidden: "auth_token in [gateways.acp.partners.shop]", http.StatusBadGateway: "502"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		p := gateway.Partner{Name: "shop", URL: server.URL, Client: server.Client()}
		if _, err := s.g.Discover(t.Context(), p); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%d: %v", status, err)
		}
		server.Close()
	}
	away := gateway.Partner{Name: "shop", URL: "http://127.0.0.1:1", Client: http.DefaultClient} // which no test listens on
	if _, err := s.g.Discover(t.Context(), away); err == nil || !strings.Contains(err.Error(), "look at url in [gateways.acp.partners.shop]") {
		t.Errorf("away: %v", err)
	}
}
