package cluster_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"skep/host/client"
	"skep/host/internal/hosttest"
	"skep/host/internal/store/pgtest"
)

// writtenGroups returns how many groups a server has of each host that is not dead.
func writtenGroups(t *testing.T, s *pgtest.Server) map[int64]int64 {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.DSN())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	rows, err := conn.Query(t.Context(), "SELECT hid, seq FROM hosts WHERE NOT dead")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	found := map[int64]int64{}
	for rows.Next() {
		var hid, seq int64
		if err := rows.Scan(&hid, &seq); err != nil {
			t.Fatal(err)
		}
		found[hid] = seq
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return found
}

// lossesOf are what hosts say of the groups that a server has lost which was replaced by another one.
func lossesOf(acknowledged, has map[int64]int64) (list []string) {
	for hid, n := range acknowledged {
		list = append(list, fmt.Sprintf("it knows %d groups of this host and has acknowledged %d, so %d are gone", has[hid], n, n-has[hid]))
	}
	return list
}

// TestLaggingStandby: hosts whose server was replaced by a standby that had not got all end, each of
// them, and say how many of their groups are gone.
func TestLaggingStandby(t *testing.T) {
	t.Parallel()
	hosttest.SkipOnServer(t, "its hosts share a server of their own")
	pair := pgtest.StartPair(t, false)
	var hosts []*hosttest.Process
	for range 3 {
		p := hosttest.NewProcess(t, "127.0.0.1")
		writeStoreKey(t, p)
		p.Launch(strings.Replace(sharedFile(pair.DSN(), p.Addr, hosttest.ScriptSwarm), "[store]\n", "[store]\ndurability = \"local\"\n", 1))
		hosts = append(hosts, p)
	}
	clients := clientsOf(hosts)
	for i, p := range hosts {
		waitReady(t, p)
		if i == len(hosts)-1 {
			pair.Standby.Kill(t)
		}
	}
	// A post without a task's name is of the host that it reaches.
	for _, c := range clients {
		if _, err := c.PostMessage(t.Context(), client.Post{Body: "[]"}); err != nil {
			t.Fatal(err)
		}
	}
	lost := pair.Primary
	lost.Kill(t)
	pair.Standby.Start(t)
	pair.Promote(t)
	has := writtenGroups(t, pair.Primary) // once promoted: it has replayed all that it got
	// A host that writes nothing does not look. These posts get no answer.
	ctx, cancel := context.WithCancel(t.Context())
	var last sync.WaitGroup
	for _, c := range clients {
		last.Go(func() { _, _ = c.PostMessage(ctx, client.Post{Body: "[]"}) })
	}
	var said []string
	for _, p := range hosts {
		code, log := p.End()
		if code <= 0 {
			t.Errorf("the host at %s ended with %d", p.Addr, code)
		}
		said = append(said, log)
	}
	cancel()
	last.Wait()
	lost.Start(t)
	all := strings.Join(said, "")
	for _, want := range lossesOf(writtenGroups(t, lost), has) {
		if strings.Contains(want, "so 0 are gone") || !strings.Contains(all, want) {
			t.Errorf("no host says: %s", want)
		}
	}
}
