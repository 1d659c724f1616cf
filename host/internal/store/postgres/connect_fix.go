package postgres

import (
	"crypto/tls"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// connectFixes has what to do, by the SQLSTATE with which a server refuses a connection
// (https://www.postgresql.org/docs/15/errcodes-appendix.html).
var connectFixes = map[string]string{
	"28P01":            "correct the password in the DSN, in the file that PGPASSFILE names or in PGPASSWORD, or change the role's with ALTER ROLE",
	"28000":            "make the role with CREATE ROLE … LOGIN, or let the server's pg_hba.conf admit it from this machine",
	"3D000":            "make the database with CREATE DATABASE, or name another one in the DSN",
	"08P01":            "let [store] dsn name the server itself: a pooler before it refuses what the DSN sets",
	"57P03":            "wait until the server has started, and look at its log",
	tooManyConnections: "raise max_connections of the server, or end other programs' connections",
}

// connectFix returns what to do about a connection that cannot be made.
func connectFix(err *pgconn.ConnectError) string {
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok {
		if fix, ok := connectFixes[refused.Code]; ok {
			return fix
		}
		return "correct the DSN, or what the message names"
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "name the certificate of the server's authority with sslrootcert=FILE in the DSN, and the server by a name that its own certificate has"
	}
	if strings.Contains(err.Error(), "server refused TLS connection") { // pgconn has no type for it
		return "set ssl = on in the server's postgresql.conf, with its certificate, and restart it; on this machine sslmode=disable in the DSN will do"
	}
	return "start the server, or correct its address in the DSN"
}
