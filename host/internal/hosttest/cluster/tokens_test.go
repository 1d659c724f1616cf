package cluster_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"skep/host/client"
	"skep/host/internal/hosttest"
	"skep/host/internal/store/pgtest"
)

// TestTokens: a token that one host has issued is good at the others at once, and one that another
// has revoked is refused everywhere, also when the sessions that hosts learn it by are cut.
func TestTokens(t *testing.T) {
	t.Parallel()
	hosttest.SkipOnServer(t, "its hosts share a server of their own")
	dsn := pgtest.Start(t).DSN()
	hosts := hostsAt(t, 3, dsn)
	var admins []*client.Client
	for _, p := range hosts {
		admins = append(admins, p.ClientAs(adminKey))
	}
	for round := range hosts {
		token, err := admins[round].CreateToken(t.Context(), client.TokenWish{Role: "user", ID: "bob"})
		if err != nil {
			t.Fatal(err)
		}
		var users []*client.Client
		for _, p := range hosts {
			user := p.ClientAs(token.Text)
			users = append(users, user)
			if who, err := user.WhoAmI(t.Context()); err != nil {
				t.Errorf("round %d: a new token: %+v, %v", round, who, err)
			}
		}
		if round == 1 {
			cutSessions(t, dsn)
		}
		revoke(t, admins[(round+1)%len(admins)], token.ID)
		for _, user := range users {
			wantRefused(t, user)
		}
	}
}

// patience is how often something is tried that the next beat of a host makes true.
const patience = 600

// cutSessions ends the sessions by which hosts learn what others have changed.
func cutSessions(t *testing.T, dsn string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	const cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'skep cluster'"
	_, err = conn.Exec(t.Context(), cut)
	if err := errors.Join(err, conn.Close(context.WithoutCancel(t.Context()))); err != nil {
		t.Fatal(err)
	}
}

// revoke revokes a token at a host that may not have read it yet.
func revoke(t *testing.T, admin *client.Client, id string) {
	t.Helper()
	var err error
	for range patience {
		var refusal *client.Error
		if _, err = admin.RevokeToken(t.Context(), id); !errors.As(err, &refusal) || refusal.Status != http.StatusNotFound {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// wantRefused wants a host to refuse a revoked token.
func wantRefused(t *testing.T, user *client.Client) {
	t.Helper()
	var err error
	for range patience {
		var refusal *client.Error
		if _, err = user.WhoAmI(t.Context()); errors.As(err, &refusal) && refusal.Status == http.StatusUnauthorized {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("a revoked token: %v", err)
}
