package egress_test

import (
	"crypto/tls"
	"io"
	"net"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"skep/host/internal/turn/egress"
)

// Frames of HTTP/2 (https://www.rfc-editor.org/rfc/rfc9113#section-6): SETTINGS without a
// setting, and GOAWAY of a server that has handled no stream.
const (
	settings = "\x00\x00\x00\x04\x00\x00\x00\x00\x00"
	goAway   = "\x00\x00\x08\x07\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
)

// sendAway answers a request by a GOAWAY.
func sendAway(conn net.Conn) {
	header := make([]byte, 9)
	if _, err := io.CopyN(io.Discard, conn, int64(len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))); err != nil {
		return
	}
	_, _ = io.WriteString(conn, settings)
	for {
		if _, err := io.ReadFull(conn, header); err != nil {
			return
		}
		length := int64(header[0])<<16 | int64(header[1])<<8 | int64(header[2])
		if _, err := io.CopyN(io.Discard, conn, length); err != nil {
			return
		}
		if header[3] == 1 { // HEADERS
			_, _ = io.WriteString(conn, goAway)
		}
	}
}

// TestGoAway: a host that sends each request of HTTP/2 away is not asked again and again on
// new connections until the request's time is over.
func TestGoAway(t *testing.T) {
	for name, change := range map[string]func(*egress.Options){
		"kept":  func(o *egress.Options) { o.KeepAlive.MaxIdlePerHost = 1 },
		"alone": func(*egress.Options) {},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFakeNet(t)
			w.resolve("api.example.com", "93.184.216.34")
			own := httptest.NewUnstartedServer(nil)
			own.EnableHTTP2 = true
			own.StartTLS()
			w.roots.AddCert(own.Certificate())
			own.Close()
			var begun atomic.Int64
			w.raw("93.184.216.34:443", func(c net.Conn) {
				begun.Add(1)
				conn := tls.Server(c, own.TLS)
				if conn.Handshake() == nil {
					sendAway(conn)
				}
			})
			p := granted(t, "https://api.example.com")
			p.HTTP2 = true
			c := w.client(change)
			t.Cleanup(c.Close)
			resp, err := carry(t, c.Transport(p), "https://api.example.com/")
			if err == nil {
				_ = resp.Body.Close()
				t.Fatal(resp.Status)
			}
			if n := begun.Load(); n > 4 {
				t.Errorf("%d connections for one request: %v", n, err)
			}
		})
	}
}
