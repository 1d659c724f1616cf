package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/coder/websocket"
	"github.com/quic-go/quic-go/http3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	"skep/host/internal/gateway/uamp/envelope"
	"skep/spec/gateways/uamp/uamppb"
)

// bindingClients ask at the same time over each binding.
const bindingClients = 16

// overUAMPBindings compares a signed ask of 4 KiB, from its envelope to the end of its stream, over
// each binding with HTTP/2, all with TLS at one host.
func overUAMPBindings(b *bench) {
	agent := must(newUAMPAgent())
	dir, remove := must2(scratch())
	defer remove()
	trusted := must(writeCertificate(dir))
	swarm := strings.Replace(uampSwarm(agent), "[gateways.uamp]\n", "[gateways.uamp]\nhttp3 = true\n", 1) +
		fmt.Sprintf("\n[server]\ntls = { cert = %q, key = %q }\n", filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
	host := must(startHost(b.ctx, swarm))
	defer host.stop()
	address := strings.TrimPrefix(host.url, "http://")
	url := "https://" + address
	overHTTP := func(name string, open func() (http.RoundTripper, func())) subject {
		return subject{name, func(span time.Duration) (int, time.Duration, error) {
			transport, end := open()
			defer end()
			cl := &http.Client{Transport: transport}
			return parallel(bindingClients, span, func(int) error { return agent.ask(cl, url) })
		}}
	}
	rates := must(b.rates(
		overHTTP("UAMP over HTTP/2", func() (http.RoundTripper, func()) {
			t := &http.Transport{TLSClientConfig: trusted.Clone(), ForceAttemptHTTP2: true}
			return t, t.CloseIdleConnections
		}),
		overHTTP("UAMP over HTTP/3", func() (http.RoundTripper, func()) {
			t := &http3.Transport{TLSClientConfig: trusted.Clone()}
			return t, func() { _ = t.Close() }
		}),
		agent.askingBySocket(address, trusted), agent.askingByGRPC(address, trusted)))
	for n, name := range []string{"HTTP/3", "WebSocket", "gRPC"} {
		b.report.compare(fmt.Sprintf("UAMP ask over %s, 4 KiB, %d clients", name, bindingClients), rates[n+1], rate, "HTTP/2", rates[0], atLeast(0.8))
	}
}

// writeCertificate writes a certificate of this machine's own address to cert.pem and key.pem, and
// returns what trusts it.
func writeCertificate(dir string) (*tls.Config, error) {
	cert, trust, err := certificate()
	if err != nil {
		return nil, err
	}
	key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(trust)
	return &tls.Config{RootCAs: roots}, errors.Join(
		os.WriteFile(filepath.Join(dir, "cert.pem"), trust, 0o600),
		os.WriteFile(filepath.Join(dir, "key.pem"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), 0o600))
}

// newSigned is the signed text of an envelope, and the name of its stream.
func (a uampAgent) newSigned() (text []byte, stream string, err error) {
	e := a.newEnvelope()
	sum, err := e.Sum()
	if err == nil {
		e.Sig, err = a.key.Sign(sum)
	}
	if err == nil {
		text, err = e.Text()
	}
	return text, "str-" + string(e.ID), err
}

// askingBySocket is a subject that asks by a WebSocket of each client.
func (a uampAgent) askingBySocket(address string, trusted *tls.Config) subject {
	return subject{"UAMP over WebSockets", func(span time.Duration) (int, time.Duration, error) {
		calls := &http.Client{Transport: &http.Transport{TLSClientConfig: trusted.Clone()}}
		var conns [bindingClients]*websocket.Conn
		for n := range conns {
			conn, _, err := websocket.Dial(context.Background(), "wss://"+address+"/uamp/1/ws", &websocket.DialOptions{
				HTTPClient: calls, HTTPHeader: http.Header{"Authorization": {"Bearer " + labKey}},
			})
			if err != nil {
				return 0, 0, err
			}
			defer func() { _ = conn.CloseNow() }()
			conn.SetReadLimit(1 << 20)
			conns[n] = conn
		}
		return parallel(bindingClients, span, func(n int) error { return a.askBySocket(conns[n]) })
	}}
}

// askBySocket sends an envelope and reads its receipt, and its stream to the end.
func (a uampAgent) askBySocket(conn *websocket.Conn) error {
	ctx := context.Background()
	text, _, err := a.newSigned()
	if err != nil {
		return err
	}
	if err := conn.Write(ctx, websocket.MessageBinary, append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...)); err != nil {
		return err
	}
	for {
		_, message, err := conn.Read(ctx)
		switch {
		case err != nil:
			return err
		case strings.Contains(string(message), `"intent":"error"`):
			return fmt.Errorf("it is refused: %s", message)
		case strings.Contains(string(message), "boss got"):
			return nil
		}
	}
}

// askingByGRPC is a subject that asks by calls of the service on one connection.
func (a uampAgent) askingByGRPC(address string, trusted *tls.Config) subject {
	return subject{"UAMP over gRPC", func(span time.Duration) (int, time.Duration, error) {
		conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(credentials.NewTLS(trusted.Clone())))
		if err != nil {
			return 0, 0, err
		}
		defer conn.Close()
		c := uamppb.NewAgentClient(conn)
		ctx := metadata.AppendToOutgoingContext(context.Background(), "authorization", "Bearer "+labKey)
		return parallel(bindingClients, span, func(int) error { return a.askByGRPC(ctx, c) })
	}}
}

// askByGRPC sends an envelope by one call and reads its stream by another.
func (a uampAgent) askByGRPC(ctx context.Context, c uamppb.AgentClient) error {
	text, stream, err := a.newSigned()
	if err != nil {
		return err
	}
	if _, err := c.Send(ctx, &uamppb.Envelope{Json: text}); err != nil {
		return err
	}
	in, err := c.Subscribe(ctx, &uamppb.StreamRequest{StreamId: stream})
	if err != nil {
		return err
	}
	var last *uamppb.Delta
	for {
		d, err := in.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		last = d
	}
	if last.GetType() != string(envelope.DeltaDone) {
		return fmt.Errorf("the stream ends with %v", last)
	}
	return nil
}
