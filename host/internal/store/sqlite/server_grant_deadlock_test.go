package sqlite

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"skep/host/internal/store/pgtest"
	"skep/host/internal/swarm"
)

// pausedGrant is a group that is granted part of one tenant's budget, waits, and then writes to
// another tenant's row.
type pausedGrant struct {
	spendGrant
	then    func(context.Context, *tables) error
	reached chan struct{}
	goOn    chan struct{}
	applied int
}

func (g *pausedGrant) apply(ctx context.Context, t *tables) (steps int, err error) {
	if _, err := g.spendGrant.apply(ctx, t); err != nil {
		return 0, err
	}
	if g.applied++; g.applied == 1 {
		close(g.reached)
		<-g.goOn
	}
	return 0, g.then(ctx, t)
}

// TestSharedBudgetDeadlock: a grant locks its tenant's row in the middle of a group, and another
// host counts for tenants in their order: each may wait for the other. The server undoes the group,
// and it is written again, with one grant.
func TestSharedBudgetDeadlock(t *testing.T) {
	t.Parallel()
	bound := swarm.Spend{Tokens: 100}
	for name, then := range map[string]func(context.Context, *tables) error{
		"in a grant": func(ctx context.Context, t *tables) error {
			_, err := (&spendGrant{tenant: "acme", day: grantDay, least: swarm.Spend{Tokens: 1}, bound: bound}).apply(ctx, t)
			return err
		},
		"in the sums": func(_ context.Context, t *tables) error {
			t.delta.add("acme", 1, 0)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := pgtest.Schema(t)
			s := openShared(t, dsn)
			for _, tenant := range []string{"acme", "bees"} {
				if _, _, err := s.GrantSpend(t.Context(), tenant, grantDay, swarm.Spend{Tokens: 1}, bound); err != nil {
					t.Fatal(err)
				}
			}
			other := waitingHost(t, dsn)
			lock := func(tenant string) error {
				_, err := other.Exec(t.Context(), "UPDATE tenants SET bytes = bytes + 1 WHERE tenant = $1", []byte(tenant))
				return err
			}
			if err := lock("acme"); err != nil {
				t.Fatal(err)
			}
			g := &pausedGrant{
				spendGrant: spendGrant{tenant: "bees", day: grantDay, least: swarm.Spend{Tokens: 10}, bound: bound},
				then:       then, reached: make(chan struct{}), goOn: make(chan struct{}),
			}
			written, counted := make(chan error, 1), make(chan error, 1)
			go func() { written <- s.writer.submit(t.Context(), g) }()
			<-g.reached
			go func() {
				err := lock("bees")
				if err == nil {
					_, err = other.Exec(t.Context(), "COMMIT")
				}
				counted <- err
			}()
			awaitLock(t, s, other.PgConn().PID())
			close(g.goOn)
			if err := <-counted; err != nil {
				t.Errorf("the other host: %v", err)
			}
			if err := <-written; err != nil || g.applied < 2 {
				t.Errorf("the group is applied %d times: %v", g.applied, err)
			}
			var held int64
			const text = "SELECT tokens FROM day_grants WHERE tenant = ?"
			if err := s.keyring.db.QueryRowContext(t.Context(), text, []byte("bees")).Scan(&held); err != nil || held != 12 {
				t.Errorf("%d are granted, %v; want 12", held, err)
			}
		})
	}
}

// waitingHost opens a transaction of another host, which waits longer than the server's patience
// with circles: the store's group is undone.
func waitingHost(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	for _, text := range []string{"SET deadlock_timeout = '5min'", "BEGIN"} {
		if _, err := c.Exec(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// awaitLock returns when a connection waits for a lock.
func awaitLock(t *testing.T, s *Store, pid uint32) {
	t.Helper()
	for waits := false; !waits; {
		const text = "SELECT coalesce(wait_event_type, '') = 'Lock' FROM pg_stat_activity WHERE pid = ?"
		if err := s.keyring.db.QueryRowContext(t.Context(), text, int64(pid)).Scan(&waits); err != nil {
			t.Fatal(err)
		}
	}
}
