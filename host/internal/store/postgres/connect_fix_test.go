package postgres

import (
	"crypto/tls"
	"encoding/pem"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"skep/host/internal/store/pgtest"
)

// refusingServer answers each connection with a refusal, over TLS if that is asked for, and returns its address.
func refusingServer(t *testing.T, pair tls.Certificate, refusal pgproto3.ErrorResponse) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			refuse(conn, pair, refusal)
		}
	}()
	return l.Addr().String()
}

func refuse(conn net.Conn, pair tls.Certificate, refusal pgproto3.ErrorResponse) {
	defer func() { _ = conn.Close() }()
	backend := pgproto3.NewBackend(conn, conn)
	first, err := backend.ReceiveStartupMessage()
	if _, ok := first.(*pgproto3.SSLRequest); ok && err == nil {
		if _, err = conn.Write([]byte("S")); err != nil {
			return
		}
		secure := tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{pair}})
		backend = pgproto3.NewBackend(secure, secure)
		_, err = backend.ReceiveStartupMessage()
	}
	if err == nil {
		backend.Send(&refusal)
		_ = backend.Flush()
	}
}

// TestConnectFix: what to do about a connection that cannot be made fits the reason.
func TestConnectFix(t *testing.T) {
	t.Parallel()
	https := httptest.NewTLSServer(nil)
	t.Cleanup(https.Close)
	other := filepath.Join(t.TempDir(), "other.pem")
	if err := os.WriteFile(other, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: https.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	entry := func(host, end string) pgproto3.ErrorResponse {
		return pgproto3.ErrorResponse{Severity: "FATAL", Code: "28000", Message: `no pg_hba.conf entry for host "` + host + `", user "u", database "d", ` + end}
	}
	plain := refusingServer(t, https.TLS.Certificates[0], entry("10.0.0.1", "no encryption"))
	secure := refusingServer(t, https.TLS.Certificates[0], entry("10.0.0.1", "SSL encryption"))
	socket := refusingServer(t, https.TLS.Certificates[0], entry("[local]", "no encryption"))
	s := pgtest.Start(t)
	s.Exec(t, "CREATE ROLE poor LOGIN CONNECTION LIMIT 0")
	for dsn, want := range map[string]string{
		"postgres://u@" + plain + "/d?sslmode=disable":                                                                         "add sslmode=verify-full",
		"postgres://u@" + secure + "/d?sslmode=require":                                                                        "make the role with CREATE ROLE",
		"postgres://u@" + socket + "/d?sslmode=disable":                                                                        "make the role with CREATE ROLE",
		"postgres://u@" + secure + "/d?sslmode=verify-ca":                                                                      "name the certificate of the server's authority",
		"postgres://u@" + strings.Replace(secure, "127.0.0.1", "localhost", 1) + "/d?sslmode=verify-full&sslrootcert=" + other: "name the certificate of the server's authority",
		s.DSN("user", "poor"): "raise max_connections of the server, or end other programs' connections; where the role",
	} {
		_, err := Inspect(t.Context(), connector(t, dsn))
		if all := FindUnfit(err); len(all) != 1 || !strings.HasPrefix(all[0].Fix, want) {
			t.Errorf("%s: %v, want %s", dsn, err, want)
			for _, one := range all {
				t.Error(one.Fix)
			}
		}
	}
}
