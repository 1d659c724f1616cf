package postgres

import (
	"crypto/tls"
	"errors"
	"net/netip"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// Reach is the way to a server, as a DSN and the environment of the process describe it
// (https://www.postgresql.org/docs/15/libpq-envars.html).
type Reach struct {
	// Local: the server is on this machine, each of them if there are several.
	Local bool
	// Verified: nothing is sent but over TLS to a server whose certificate has its name.
	Verified bool
	// HasPassword: the DSN itself has a password.
	HasPassword bool
}

// ErrDSN is returned for a text that is no DSN. What is wrong with it is not repeated: parts
// of a password that is not escaped can lie anywhere in it.
var ErrDSN = errors.New(`it is no DSN of PostgreSQL; write postgres://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=verify-full, and escape special characters of the password as in %2F for /`)

// ReachOf reads a DSN.
func ReachOf(dsn string) (Reach, error) {
	config, err := pgconn.ParseConfig(dsn)
	if err != nil || strings.TrimSpace(dsn) == "" {
		return Reach{}, ErrDSN
	}
	r := Reach{Local: true, Verified: true, HasPassword: strings.Contains(dsn, "password=")}
	if u, err := url.Parse(dsn); err == nil && u.User != nil {
		_, has := u.User.Password()
		r.HasPassword = r.HasPassword || has
	}
	ways := append([]*pgconn.FallbackConfig{{Host: config.Host, TLSConfig: config.TLSConfig}}, config.Fallbacks...)
	for _, way := range ways {
		r.Local = r.Local && isLocal(way.Host)
		r.Verified = r.Verified && isVerified(way.TLSConfig)
	}
	return r, nil
}

func isLocal(host string) bool {
	if strings.HasPrefix(host, "/") || strings.HasPrefix(host, "@") || host == "localhost" { // a socket of the file system or an abstract one
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

func isVerified(c *tls.Config) bool { return c != nil && !c.InsecureSkipVerify && c.ServerName != "" }
