package postgres

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// Unfit is why a server is not fit for the store.
type Unfit struct {
	// Setting is the one of the store that chooses the server, or what it must do: "dsn" or
	// "durability".
	Setting string
	// Err is why, and Fix is what to change.
	Err error
	Fix string
}

// Error returns why, and what to change.
func (u *Unfit) Error() string { return u.Err.Error() + ": " + u.Fix }

// Unwrap returns why.
func (u *Unfit) Unwrap() error { return u.Err }

func unfit(setting, fix, format string, args ...any) error {
	return &Unfit{setting, fmt.Errorf(format, args...), fix}
}

// FindUnfit returns all that an error says of a server that is not fit.
func FindUnfit(err error) (all []*Unfit) {
	switch e := err.(type) { //nolint:errorlint // it walks the tree itself
	case nil:
	case *Unfit:
		return []*Unfit{e}
	case *pgconn.ConnectError:
		return []*Unfit{{"dsn", e, connectFix(e)}}
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			all = append(all, FindUnfit(one)...)
		}
	case interface{ Unwrap() error }:
		return FindUnfit(e.Unwrap())
	}
	return all
}

// IsOwnFault reports whether an error is the fault of the statement that met it: of its
// arguments, a constraint or a limit (https://www.postgresql.org/docs/15/errcodes-appendix.html).
func IsOwnFault(err error) bool {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || pgErr.Code == divisionByZero {
		return false
	}
	switch pgErr.Code[:min(2, len(pgErr.Code))] {
	case "22", "23", "54":
		return true
	}
	return false
}

// IsAway reports whether an error says nothing of a statement, because the server or the
// connection to it was gone or going
// (https://www.postgresql.org/docs/15/errcodes-appendix.html).
func IsAway(err error) bool {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return errors.Is(err, driver.ErrBadConn) || pgconn.Timeout(err) || isNetwork(err)
	}
	return strings.HasPrefix(pgErr.Code, "57P") || strings.HasPrefix(pgErr.Code, "08") || pgErr.Code == tooManyConnections
}

// SQLSTATEs of a server that may do later or elsewhere what it refuses now.
const (
	tooManyConnections  = "53300"
	readOnlyTransaction = "25006"
)

// IsReadOnly reports whether a server that was written to has become one that is only read, as
// one that is replaced.
func IsReadOnly(err error) bool {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pgErr.Code == readOnlyTransaction
}

// isNetwork reports whether a connection could not be made, broke, or was closed before a statement
// was sent.
func isNetwork(err error) bool {
	_, connect := errors.AsType[*pgconn.ConnectError](err)
	_, network := errors.AsType[net.Error](err)
	return pgconn.SafeToRetry(err) || errors.Is(err, pgconn.ErrConnClosed) || connect || network || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

func show(ctx context.Context, pg *pgconn.PgConn, text string, args ...string) (string, error) {
	var values [][]byte
	for _, arg := range args {
		values = append(values, []byte(arg))
	}
	r := pg.ExecParams(ctx, text, values, nil, nil, nil).Read()
	if r.Err != nil {
		return "", r.Err
	}
	return string(r.Rows[0][0]), nil
}
