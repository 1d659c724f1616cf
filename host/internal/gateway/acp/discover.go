package acp

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/acp/broker"
)

// errNoConnection means that messages for a partner wait until it comes.
var errNoConnection = errors.New("it has no connection open, and no url or topics: messages for it wait in its mailbox")

// Discover implements [gateway.Gateway]. The protocol has no list of agents: those are
// known that have spoken on a connection that is open. It is an error when a way does not
// work on which messages for the partner leave.
func (g *Gateway) Discover(ctx context.Context, p gateway.Partner) ([]gateway.ForeignAgent, error) {
	names, open, err := g.sockets.Probe(ctx, p.Caller())
	switch {
	case err != nil:
	case topicsOf(p) != "":
		err = g.probeBroker(ctx, p)
	case p.URL != "" && p.Client != nil:
		err = g.probeURL(ctx, p)
	case !open:
		err = errNoConnection
	}
	if err != nil {
		return nil, err
	}
	list := []gateway.ForeignAgent{}
	for _, name := range names {
		list = append(list, gateway.ForeignAgent{Name: name})
	}
	return list, nil
}

// probeBroker connects to the broker as for the partner's messages and subscribes them.
// Then it looks at the connection that is there for them.
func (g *Gateway) probeBroker(ctx context.Context, p gateway.Partner) error {
	if g.MQTT == nil {
		return fmt.Errorf("it has topics, and the host started without broker in [gateways.%s.mqtt]: start it again", Name)
	}
	own := g.brokerOptions(topicsOf(p))
	own.ClientID += ":" + uuid.NewString()
	err := broker.Probe(ctx, own)
	if err == nil {
		err = broker.ErrAway
		if q := g.queues.find(p.Name); q != nil {
			err = q.conn.State()
		}
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("the broker %s: %w", g.MQTT.URL, g.MQTT.fault(p.Name, err))
}

// fault adds the line that decides to why there is no connection for a partner.
func (m *MQTT) fault(partner string, err error) error {
	var step *broker.StepError
	var invalid x509.CertificateInvalidError
	table := "[gateways." + Name + ".mqtt]"
	switch {
	case !errors.As(err, &step):
		return err
	case errors.As(err, new(x509.HostnameError)):
		return fmt.Errorf("%w: look at broker in %s: its certificate is for other names", err, table)
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return fmt.Errorf("%w: renew the broker's certificate, or look at the clock of this host", err)
	case errors.As(err, new(*tls.CertificateVerificationError)):
		return fmt.Errorf("%w: set ca in %s to the authorities of its certificate", err, table)
	case step.Step == broker.Dialing:
		return fmt.Errorf("%w: look at broker in %s", err, table)
	case step.Step == broker.Connecting && !step.Refused && strings.HasPrefix(m.URL, "mqtt://"):
		return fmt.Errorf("it did not answer as a broker of MQTT 5: %w: look at broker in %s: at this port it may speak TLS, which is mqtts://", err, table)
	case step.Step == broker.Connecting:
		return fmt.Errorf("%w: look at username, password and certificate in %s", err, table)
	}
	return fmt.Errorf("%w: look at topics in [gateways.%s.partners.%s], and at what the broker lets username in %s read", err, Name, partner, table)
}

// probeURL looks whether the partner answers at its url, whatever it says to a GET: a
// message is sent when there is one. What it does not let in, it will not then.
func (g *Gateway) probeURL(ctx context.Context, p gateway.Partner) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL, http.NoBody)
	if err != nil {
		return err
	}
	resp, err := p.Client.Do(req)
	if err != nil {
		return fmt.Errorf("%w: look at url in [gateways.%s.partners.%s]", err, Name, p.Name)
	}
	_ = resp.Body.Close()
	if resp.StatusCode >= http.StatusInternalServerError {
		return &gateway.StatusError{Code: resp.StatusCode}
	}
	return gateway.CredentialRefused(Name, p, resp.StatusCode)
}
