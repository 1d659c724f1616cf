package cluster

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// TestSilentServer: a statement ends when a server that keeps its connections open answers nothing, as
// one that has lost its power.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s := session{dsn: "postgres://skep@" + l.Addr().String() + "/skep?sslmode=disable", patience: 50 * time.Millisecond}
	defer s.close()
	for name, statement := range map[string]func() error{
		"a change": func() error { return s.exec(t.Context(), "SELECT 1") },
		"a query": func() error {
			return s.query(t.Context(), "SELECT 1", nil, func(pgx.Rows) error { return nil })
		},
	} {
		if err := statement(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
