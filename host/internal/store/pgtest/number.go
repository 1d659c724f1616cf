package pgtest

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Number returns a function that asks the schema at a DSN for a number.
func Number(t testing.TB, dsn, query string) func() int64 {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return func() (n int64) {
		if err := conn.QueryRow(t.Context(), query).Scan(&n); err != nil {
			t.Error(err)
		}
		return n
	}
}
