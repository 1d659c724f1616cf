package gateway_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skep/host/client"
	"skep/host/internal/gateway/acp/acptest"
	"skep/host/internal/gateway/acp/broker"
	"skep/host/internal/hosttest"
)

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// newAuthority returns an authority with its own certificate in PEM.
func newAuthority(t *testing.T) (a authority, text string) {
	t.Helper()
	text, _ = a.sign(t, &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, &a)
	return a, text
}

// sign makes a certificate and its key, in PEM; into, if set, becomes an authority with
// them, which signs itself.
func (a authority) sign(t *testing.T, form *x509.Certificate, into *authority) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form.SerialNumber, form.NotBefore, form.NotAfter = big.NewInt(time.Now().UnixNano()), time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	form.Subject.CommonName = fmt.Sprint("name ", form.SerialNumber) // its issuer's is another
	form.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	parent, signer := a.cert, a.key
	if into != nil {
		parent, signer = form, private
	}
	raw, err := x509.CreateCertificate(rand.Reader, form, parent, private.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	if into != nil {
		if into.cert, err = x509.ParseCertificate(raw); err != nil {
			t.Fatal(err)
		}
		into.key = private
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// overTLS is the table of a broker that has a certificate of its own authority and wants one.
const overTLS = `[gateways.acp.mqtt]
broker = "mqtts://BROKER"
ca = "ca.pem"
certificate = "host.pem"
key = "host.key"
[gateways.acp.partners.acme]
ids = ["agent*"]
topics = "acp/v1/acme"
[[auth.keys]]
id = "op"
role = "operator"
key = "a-key-of-the-operator"
`

// TestMQTTOverTLS: with ca, certificate and key a broker is reached that has a
// certificate of its own authority and demands one, and a question goes over it. A broker
// of another authority is refused, and the key that decides is named.
func TestMQTTOverTLS(t *testing.T) {
	t.Parallel()
	own, ownText := newAuthority(t)
	_, otherText := newAuthority(t)
	brokerCert, brokerKey := own.sign(t, &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}, nil)
	clientCert, clientKey := own.sign(t, &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, nil)
	b := hosttest.StartMosquitto(t, "allow_anonymous true\ncafile ca.pem\ncertfile cert.pem\nkeyfile key.pem\nrequire_certificate true\n",
		map[string]string{"ca.pem": ownText, "cert.pem": brokerCert, "key.pem": brokerKey})
	s := hosttest.EmptySite(t)
	s.Write(withACP(file("hive", strings.Replace(overTLS, "BROKER", b.Addr, 1))))
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(s.Dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("host.pem", clientCert)
	write("host.key", clientKey)
	ping := func() client.PartnerPing {
		t.Helper()
		got, err := s.As("a-key-of-the-operator").PingPartner(t.Context(), "acme")
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	write("ca.pem", otherText)
	s.Start()
	if got := ping(); got.Active || !strings.Contains(got.Error, "unknown authority") || !strings.Contains(got.Error, "set ca in [gateways.acp.mqtt]") {
		t.Errorf("a broker of another authority: %+v", got)
	}
	write("ca.pem", ownText)
	s.Restart()
	hosttest.Eventually(t, "the broker is reached", func() bool { return ping().Active })
	pair, err := tls.X509KeyPair([]byte(clientCert), []byte(clientKey))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(own.cert)
	askOverBroker(t, broker.Options{URL: "mqtts://" + b.Addr, TLS: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}}})
}

// askOverBroker asks boss as agentA of acme.
func askOverBroker(t *testing.T, o broker.Options) {
	t.Helper()
	got := make(chan string, 10)
	o.ClientID, o.Filter, o.MaxPacket, o.Log = "acme", "acp/v1/acme/agentA/in", 1<<20, slog.New(slog.DiscardHandler)
	o.Take = func(_ context.Context, m broker.Message) bool {
		got <- string(m.Payload)
		return true
	}
	conn := broker.New(o)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		conn.Run(ctx)
	}()
	defer func() {
		stop()
		<-ended
	}()
	hosttest.Eventually(t, "acme is at the broker", func() bool { return conn.State() == nil })
	q := acptest.New("REQUEST", "agentA", "boss", "hello")
	if _, err := conn.Publish(ctx, "acp/v1/acme/agentA/out", "application/json", []byte(q.Text())); err != nil {
		t.Fatal(err)
	}
	select {
	case text := <-got:
		if m, err := acptest.Parse([]byte(text)); err != nil || m.Header.Type != "RESPONSE" || m.Header.ReplyTo != q.Header.ID {
			t.Errorf("it got %s, %v", text, err)
		}
	case <-time.After(time.Minute):
		t.Errorf("%s has no answer", q.Header.ID)
	}
}
