package egress_test

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"skep/abi"
	"skep/host/internal/turn/egress"
)

// greeter is a server that greets over TCP.
func greeter(t *testing.T) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "hello")
			_ = c.Close()
		}
	}()
	return l.Addr().String()
}

// A connection without HTTP is opened to granted addresses alone, and to private ones where
// the policy opens them.
func TestDial(t *testing.T) {
	t.Parallel()
	address := "http://" + greeter(t)
	grant, err := egress.ParseGrant(address)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	client := egress.New(egress.Options{})
	open := egress.Policy{Grants: []egress.Grant{grant}, AllowPrivate: true}
	c, err := client.Dial(ctx, open, address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got, err := io.ReadAll(c); string(got) != "hello" || err != nil { // the other end speaks first
		t.Errorf("read %q, %v", got, err)
	}
	closed := open
	closed.AllowPrivate = false
	for name, d := range map[string]struct {
		policy  egress.Policy
		address string
		code    abi.Code
	}{
		"another port":     {open, "http://127.0.0.1:1", abi.CodeDenied},
		"a private one":    {closed, address, abi.CodeDenied},
		"no address":       {open, "127.0.0.1", abi.CodeInvalid},
		"no TLS is spoken": {open, strings.Replace(address, "http", "https", 1), abi.CodeDenied},
	} {
		var fault *abi.Error
		if _, err := client.Dial(ctx, d.policy, d.address); !errors.As(err, &fault) || fault.Code != d.code {
			t.Errorf("%s: %v, want %s", name, err, d.code)
		}
	}
}

// With an https URL the connection is TLS, and the host's certificate must be for its name.
func TestDialTLS(t *testing.T) {
	t.Parallel()
	s := httptest.NewTLSServer(nil)
	t.Cleanup(s.Close)
	grant, err := egress.ParseGrant(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	policy := egress.Policy{Grants: []egress.Grant{grant}, AllowPrivate: true}
	if _, err := egress.New(egress.Options{RootCAs: x509.NewCertPool()}).Dial(ctx, policy, s.URL); err == nil || !strings.Contains(err.Error(), "TLS with") {
		t.Errorf("an unknown authority: %v", err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	c, err := egress.New(egress.Options{RootCAs: roots}).Dial(ctx, policy, s.URL)
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
}
