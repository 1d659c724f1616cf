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
	Username string
	Password Secret
	// CA, Certificate and Key are files of mqtts, TLS is what they hold; nil without them.
	CA, Certificate, Key string
	TLS                  *tls.Config
}

// Schemes of brokers.
const (
	mqttScheme  = "mqtt"
	mqttsScheme = "mqtts"
)

// Settings are the keys of the table.
func (m *MQTT) Settings() []Setting {
	return []Setting{
		field(&m.Broker, "broker", "address", (*table).broker, "Where the broker is, as in `mqtts://broker.example:8883`; `mqtt` is without TLS.").by(Fixed).restarts(),
		field(&m.ClientID, "client_id", "string", (*table).plain, "Begin of the names under which the host is known to the broker; a colon and the partner's name follow.").withDefaultText("skep-SWARM").restarts(),
		field(&m.Username, "username", "string", (*table).plain, "User that the broker knows.").restarts(),
		secretText(&m.Password, "password", "Password of `username`.").restarts(),
		field(&m.CA, "ca", "path", (*table).usedFile, "Authorities of the broker's certificate, in PEM; without it, the system's.").restarts(),
		field(&m.Certificate, "certificate", "path", (*table).usedFile, "The certificate that the broker is shown, with its chain, in PEM.").restarts(),
		field(&m.Key, "key", "path", (*table).usedFile, "The private key of `certificate`, in PEM.").restarts(),
	}
}

// TopicsKey is the key of [ACPPartner].Topics.
const TopicsKey = "topics"

// broker reads the address of a broker.
func (t *table) broker(key string) string {
	v, ok := t.value(key)
	if !ok {
		return ""
	}
	u, err := url.Parse(v.text)
	if err != nil || u.Scheme != mqttScheme && u.Scheme != mqttsScheme || u.Hostname() == "" || u.User != nil || strings.Trim(u.Path, "/")+u.RawQuery+u.Fragment != "" {
		t.d.atValue(v.location, fmt.Sprintf(`%s must be an address as in "mqtts://broker.example:8883", which %s is not`, v.path, v.shown))
		return ""
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{mqttScheme: "1883", mqttsScheme: "8883"}[u.Scheme]
	}
	return u.Scheme + "://" + net.JoinHostPort(u.Hostname(), port)
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
	r.checkBroker(t, m)
}

// checkBroker looks at how the broker is reached.
func (r gatewayReader) checkBroker(t location, m *MQTT) {
	scheme, host, _ := strings.Cut(m.Broker, "://")
	name, _, _ := net.SplitHostPort(host)
	ip, err := netip.ParseAddr(name)
	switch near := name == "localhost" || err == nil && ip.IsLoopback(); {
	case scheme == mqttScheme && m.CA+m.Certificate+m.Key != "":
		r.d.atKey(t.child("broker"), t.child("broker").path+" is without TLS, and certificates are set; write mqtts://"+host)
	case scheme == mqttScheme && !near:
		r.d.warn(t.child("broker"), t.child("broker").path+": messages and the password go over the network in the clear; use mqtts")
	}
	if m.Password != "" && m.Username == "" {
		r.d.atKey(t.child("password"), t.child("password").path+" needs username")
	}
	if m.TLS, err = (listener.ClientFiles{CA: m.CA, Cert: m.Certificate, Key: m.Key}).Load(r.d.opt.Now); err != nil {
		r.d.atKey(t, fmt.Sprintf("%s: %s", t.path, err))
	} else if m.Key != "" {
		r.d.checkKeyFile(t.child("key"), m.Key)
	}
}
