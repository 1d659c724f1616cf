package postgres

import (
	"crypto/tls"
	"crypto/x509"
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
	tooManyConnections: "raise max_connections of the server, or end other programs' connections; where the role or the database has too many, ALTER ROLE … or ALTER DATABASE … CONNECTION LIMIT",
}

// connectFix returns what to do about a connection that cannot be made.
func connectFix(err *pgconn.ConnectError) string {
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok {
		if refused.Code == "28000" && strings.HasSuffix(refused.Message, ", no encryption") && !strings.Contains(refused.Message, `"[local]"`) { // a socket has none
			return "add sslmode=verify-full to the DSN, if the server's pg_hba.conf has hostssl alone, or let it admit the role from this machine"
		}
		if fix, ok := connectFixes[refused.Code]; ok {
			return fix
		}
		return "correct the DSN, or what the message names"
	}
	if isCertificateFault(err) {
		return "name the certificate of the server's authority with sslrootcert=FILE in the DSN, and the server by a name that its own certificate has"
	}
	if errors.Is(err, pgconn.ErrReadOnlyConnection) || errors.Is(err, pgconn.ErrStandbyConnection) {
		return "name the primary in the DSN as well, or promote a standby; a primary too only reads for a role whose default_transaction_read_only is on"
	}
	if strings.Contains(err.Error(), "server refused TLS connection") { // pgconn has no type for it
		return "set ssl = on in the server's postgresql.conf, with its certificate, and restart it; on this machine sslmode=disable in the DSN will do"
	}
	return "start the server, or correct its address in the DSN"
}

// isCertificateFault reports whether the server's certificate does not hold. With sslmode=verify-ca
// pgconn verifies it itself, and crypto/tls wraps no error.
func isCertificateFault(err error) bool {
	_, verification := errors.AsType[*tls.CertificateVerificationError](err)
	_, authority := errors.AsType[x509.UnknownAuthorityError](err)
	_, invalid := errors.AsType[x509.CertificateInvalidError](err)
	_, name := errors.AsType[x509.HostnameError](err)
	return verification || authority || invalid || name
}
