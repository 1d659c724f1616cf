package config

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"skep/host/internal/api/listener"
	"skep/spec/mail"
)

// MQTT has the keys of [gateways.acp.mqtt]: the broker over which partners with topics
// send and get messages.
type MQTT struct {
	Broker   string // mqtt://HOST[:PORT] or mqtts://HOST[:PORT], empty for none
	ClientID string // empty for skep-SWARM
	BrokerAccess
}

// BrokerAccess is how a broker lets the host in.
type BrokerAccess struct {
	Username string
	Password Secret
	// CA, Certificate and Key are files of TLS, TLS is what they hold; nil without them.
	CA, Certificate, Key string
	TLS                  *tls.Config
}

// Settings are the keys of the table.
func (m *MQTT) Settings() []Setting {
	return append([]Setting{
		field(&m.Broker, "broker", "address", mqttPorts.address, "Where the broker is, as in `mqtts://broker.example:8883`; `mqtt` is without TLS.").by(Fixed).restarts(),
		field(&m.ClientID, "client_id", "string", (*table).plain, "Begin of the names under which the host is known to the broker; a colon and the partner's `topics` follow.").withDefaultText("skep-SWARM").restarts(),
	}, m.BrokerAccess.settings()...)
}

// settings are the keys of a broker's table about what lets the host in.
func (m *BrokerAccess) settings() []Setting {
	return []Setting{
		field(&m.Username, "username", "string", (*table).plain, "User that the broker knows.").restarts(),
		secretText(&m.Password, "password", "Password of `username`.").restarts(),
		field(&m.CA, "ca", "path", (*table).usedFile, "Authorities of the broker's certificate, in PEM; without it, the system's.").restarts(),
		field(&m.Certificate, "certificate", "path", (*table).usedFile, "The certificate that the broker is shown, with its chain, in PEM.").restarts(),
		field(&m.Key, "key", "path", (*table).usedFile, "The private key of `certificate`, in PEM.").restarts(),
	}
}

// TopicsKey is the key of [ACPPartner].Topics.
const TopicsKey = "topics"

// brokerPorts are the schemes of a broker's address, without TLS and with it, and their ports.
type brokerPorts struct {
	scheme, port, tlsScheme, tlsPort string
	// hasPath allows a path, the broker's virtual host.
	hasPath bool
}

var (
	mqttPorts = brokerPorts{scheme: "mqtt", port: "1883", tlsScheme: "mqtts", tlsPort: "8883"}
	amqpPorts = brokerPorts{scheme: "amqp", port: "5672", tlsScheme: "amqps", tlsPort: "5671", hasPath: true}
)

// address reads the address of a broker.
func (b brokerPorts) address(t *table, key string) string {
	v, ok := t.value(key)
	if !ok {
		return ""
	}
	u, err := url.Parse(v.text)
	if err != nil || u.Scheme != b.scheme && u.Scheme != b.tlsScheme || u.Hostname() == "" || u.User != nil || u.RawQuery+u.Fragment != "" || !b.hasPath && strings.Trim(u.Path, "/") != "" {
		t.d.atValue(v.location, fmt.Sprintf(`%s must be an address as in "%s://broker.example:%s", which %s is not`, v.path, b.tlsScheme, b.tlsPort, v.shown))
		return ""
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{b.scheme: b.port, b.tlsScheme: b.tlsPort}[u.Scheme]
	}
	address := u.Scheme + "://" + net.JoinHostPort(u.Hostname(), port)
	if b.hasPath {
		address += u.EscapedPath()
	}
	return address
}

// Limits of names at a broker, in bytes.
const (
	maxPlain = 128
	maxTopic = 256
)

// plain reads a text of printable characters.
func (t *table) plain(key string) string {
	v, ok := t.value(key)
	if ok && (v.text == "" || len(v.text) > maxPlain || !mail.Printable(v.text)) {
		t.d.atValue(v.location, fmt.Sprintf("%s must have 1 to %d printable bytes", v.path, maxPlain))
	}
	return v.text
}

// topic reads a topic without wildcards.
func (t *table) topic(key string) string {
	v, ok := t.value(key)
	bad := len(v.text) > maxTopic || !mail.Printable(v.text) || strings.ContainsAny(v.text, "+#") || strings.HasPrefix(v.text, "$") || slices.Contains(strings.Split(v.text, "/"), "")
	if ok && bad {
		t.d.atValue(v.location, fmt.Sprintf(`%s must be a topic as in "acp/v1/acme", of at most %d bytes and without +, # and empty levels`, v.path, maxTopic))
		return ""
	}
	return v.text
}

// checkMQTT holds the broker and the topics of partners against each other.
func (r gatewayReader) checkMQTT(g Gateway) {
	own, t := g.Protocol.(*ACP), r.t.child("mqtt")
	m := &own.MQTT
	topics := map[string]string{}
	for _, p := range g.Partners {
		of, at := p.Protocol.(*ACPPartner).Topics, r.t.child("partners").child(p.Name)
		if of == "" {
			continue
		}
		other := topics[of]
		switch topics[of] = p.Name; {
		case m.Broker == "":
			r.d.atKey(at.child(TopicsKey), at.child(TopicsKey).path+" needs broker in "+t.path+", which says where they are")
		case other != "":
			r.d.atKey(at.child(TopicsKey), fmt.Sprintf("%s is %q, which the partner %s has as well", at.child(TopicsKey).path, of, other))
		case p.URL != "":
			r.d.warn(at.child("url"), at.child("url").path+" has no effect: its messages leave by its topics")
		}
	}
	if m.Broker == "" {
		return
	}
	if len(topics) == 0 {
		r.d.warn(t.child("broker"), t.child("broker").path+" has no effect: no partner of the file has topics")
	}
	mqttPorts.check(r, t, m.Broker, &m.BrokerAccess)
}

// check looks at how a broker at an address is reached.
func (b brokerPorts) check(r gatewayReader, t location, address string, m *BrokerAccess) {
	scheme, host, _ := strings.Cut(address, "://")
	bare, _, _ := strings.Cut(host, "/")
	switch {
	case scheme == b.scheme && m.CA+m.Certificate+m.Key != "":
		r.d.atKey(t.child("broker"), t.child("broker").path+" is without TLS, and certificates are set; write "+b.tlsScheme+"://"+host)
	case scheme == b.scheme && !isNear(bare):
		r.d.warn(t.child("broker"), t.child("broker").path+": messages and the password go over the network in the clear; use "+b.tlsScheme)
	}
	r.checkAccess(t, m)
}

// isNear reports whether HOST:PORT is this machine.
func isNear(address string) bool {
	name, _, _ := net.SplitHostPort(address)
	ip, err := netip.ParseAddr(name)
	return name == "localhost" || err == nil && ip.IsLoopback()
}

// checkAccess looks at what lets the host in, and reads its files.
func (r gatewayReader) checkAccess(t location, m *BrokerAccess) {
	if m.Password != "" && m.Username == "" {
		r.d.atKey(t.child("password"), t.child("password").path+" needs username")
	}
	var err error
	if m.TLS, err = (listener.ClientFiles{CA: m.CA, Cert: m.Certificate, Key: m.Key}).Load(r.d.opt.Now); err != nil {
		r.d.atKey(t, fmt.Sprintf("%s: %s", t.path, err))
	} else if m.Key != "" {
		r.d.checkKeyFile(t.child("key"), m.Key)
	}
}
