package contract_test

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"skep/host/internal/gateway/contract"
)

// TestUAMPHTTP3 (U-052, U-056, U-057, G-042): the contract of gateways, held by UAMP over HTTP/3
// in both directions.
func TestUAMPHTTP3(t *testing.T) {
	t.Parallel()
	c := newUAMPCertificate(t)
	p := c.secure(uampProtocol(), c.serve3, func(t testing.TB) *http.Client {
		calls := &http3.Transport{TLSClientConfig: c.trusted(), QUICConfig: watchedQUIC()}
		t.Cleanup(func() { _ = calls.Close() })
		return &http.Client{Transport: calls}
	})
	p.Table += "http3 = true\n"
	p.Partner += "\nbinding = \"http3\""
	contract.Run(t, p)
}

// watchedQUIC ends a connection whose other end is gone: a killed process does not end its connection.
func watchedQUIC() *quic.Config {
	return &quic.Config{MaxIdleTimeout: 15 * time.Second, KeepAlivePeriod: 3 * time.Second}
}

// serve3 runs a foreign agent that answers over HTTP/3.
func (c uampCertificate) serve3(t testing.TB, address string, handle contract.Handler) (string, func()) {
	t.Helper()
	socket, err := net.ListenPacket("udp", address)
	if err != nil {
		t.Fatal(err)
	}
	server := &http3.Server{
		Handler: newUAMPHandler(handle), TLSConfig: &tls.Config{Certificates: []tls.Certificate{c.pair}}, QUICConfig: watchedQUIC(),
		ConnContext: func(ctx context.Context, conn *quic.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, conn.Context())
		},
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(socket)
	}()
	return "https://" + socket.LocalAddr().String(), func() {
		_ = server.Close()
		_ = socket.Close()
		<-done
	}
}
