package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"skep/host/client"
	"skep/host/internal/swarm"
)

const (
	// clusterHosts is how many hosts share a server, clusterTurns how many turns of each are under way
	// for one user, who has a quarter of [limits] turns at most.
	clusterHosts = 3
	clusterTurns = 64
	// clusterAdmin is the key of an admin of theirs.
	clusterAdmin = "a-key-for-the-admin"
)

// sharing are hosts that share a schema.
type sharing struct {
	engine *engine
	dsn    string
	hosts  []*child
}

// add starts one more host, and waits until each has its share.
func (s *sharing) add(ctx context.Context) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		return err
	}
	text := benchSwarm + fmt.Sprintf("turns = %d\n[[auth.keys]]\nid = \"ada\"\nrole = \"admin\"\nkey = %q\n[cluster]\nadvertise = \"http://%s\"\n", 4*clusterTurns, clusterAdmin, address)
	c, err := startHostAt(ctx, text+s.engine.store(s.dsn), address)
	if err != nil {
		return err
	}
	s.hosts = append(s.hosts, c)
	return until(len(s.hosts), func() (int, error) {
		owners, err := s.owners(ctx)
		shares := map[string]int{}
		for _, url := range owners {
			shares[url]++
		}
		even := 0
		for _, n := range shares {
			if n <= len(owners)/len(s.hosts)+len(s.hosts) {
				even++
			}
		}
		return even, err
	})
}

// owners are the addresses of the hosts of all slots.
func (s *sharing) owners(ctx context.Context) (map[int64]string, error) {
	conn, err := pgx.Connect(ctx, s.dsn)
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, "SELECT slot, address FROM slots JOIN beats USING (hid)")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	found := map[int64]string{}
	for rows.Next() {
		var slot int64
		var url string
		if err := rows.Scan(&slot, &url); err != nil {
			return nil, err
		}
		found[slot] = url
	}
	return found, rows.Err()
}

func (s *sharing) stop() {
	for _, c := range s.hosts {
		c.stop()
	}
}

// clusters measures hosts that share a server: turns that wait, what it costs to reach a task through
// another host, and how soon a revoked token is refused.
func clusters(b *bench) {
	e, err := openEngine()
	if errors.Is(err, errNoProgram) {
		b.report.print("  %v\n", err)
		return
	}
	check(err)
	defer e.stop()
	s := &sharing{engine: e, dsn: must(e.MakeSchema(b.ctx))}
	defer s.stop()
	var rates []float64
	for range clusterHosts {
		check(s.add(b.ctx))
		rates = append(rates, must(b.waitingRate(s)))
	}
	b.report.fact(fmt.Sprintf("tasks that wait 2 s, 1 host with %d turns", clusterTurns), rates[0], rate)
	for i, least := range []float64{1.9, 2.8} {
		b.report.compare(fmt.Sprintf("the same, %d hosts", i+2), rates[i+1], rate, "1 host", rates[0], atLeast(least))
	}
	b.forwarded(s)
	b.revoked(s)
}

// waitingRate is how many tasks that wait end in a second, with half as many callers more than turns.
func (b *bench) waitingRate(s *sharing) (float64, error) {
	const waits = `{"body":"[[\"sleep\",{\"ms\":2000}]]","subject":"q"}`
	n := clusterTurns * len(s.hosts) * 3 / 2
	cl := clientOf(n)
	defer cl.CloseIdleConnections()
	ops, took, err := parallel(n, max(b.span, 10*time.Second), func(worker int) error {
		return message(s.hosts[worker%len(s.hosts)].url, waits).expect(cl, "")
	})
	return float64(ops) / took.Seconds(), err
}

// forwardedPosts is how many posts of each kind are measured in a round.
const forwardedPosts = 200

// forwarded compares a post at a host that does not own its task with one at the host that does.
func (b *bench) forwarded(s *sharing) {
	owners := must(s.owners(b.ctx))
	at, cl := s.hosts[0].url, clientOf(1)
	var direct, through []float64
	for len(direct) < forwardedPosts*b.rounds || len(through) < forwardedPosts*b.rounds {
		id := fmt.Sprintf("t%x", rand.Uint64())
		key := swarm.TaskKey{InstanceKey: swarm.InstanceKey{Tenant: swarm.DefaultTenant, Swarm: "hive", Instance: "user:bench"}, Task: id}
		began := time.Now()
		check(message(at, fmt.Sprintf(`{"body":"hello","subject":"q","task_id":%q}`, id)).expect(cl, trivialAnswer))
		took := time.Since(began).Seconds()
		if owners[int64(swarm.SlotOf(key))] == at {
			direct = append(direct, took)
		} else {
			through = append(through, took)
		}
	}
	b.report.compare("a post sent on to the task's host, p50", median(through), seconds, "at that host itself", median(direct), atMost(1.5))
	b.report.compare("the same, p99", percentile(through, 99), seconds, "at that host itself", percentile(direct, 99), none())
}

// revocations is how many tokens are revoked in a round.
const revocations = 20

// revoked measures how long a token is good at other hosts once one has revoked it.
func (b *bench) revoked(s *sharing) {
	admin := must(client.New(client.Options{URL: s.hosts[0].url, Token: clusterAdmin}))
	defer admin.Close()
	var took []float64
	for range revocations * b.rounds {
		token := must(admin.CreateToken(b.ctx, client.TokenWish{Role: "user", ID: "bob"}))
		for _, h := range s.hosts {
			must(b.isRefused(h, token.Text)) // it learns the token
		}
		must(admin.RevokeToken(b.ctx, token.ID))
		began := time.Now()
		for _, h := range s.hosts {
			for !must(b.isRefused(h, token.Text)) {
				time.Sleep(time.Millisecond)
			}
		}
		took = append(took, time.Since(began).Seconds())
	}
	b.report.fact("a revoked token is refused by all hosts after, p50", median(took), seconds)
	b.report.compare("the same, p99", percentile(took, 99), seconds, "", 0, below(50*time.Millisecond))
	b.report.compare("the same, the longest", percentile(took, 100), seconds, "", 0, below(time.Second))
}

// isRefused reports whether a host refuses a token.
func (b *bench) isRefused(h *child, token string) (bool, error) {
	req, err := getFrom(h.url + "/whoami").as(token).build(b.ctx)
	if err != nil {
		return false, err
	}
	rsp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false, err
	}
	defer rsp.Body.Close()
	switch rsp.StatusCode {
	case http.StatusOK, http.StatusUnauthorized:
		return rsp.StatusCode == http.StatusUnauthorized, nil
	}
	return false, fmt.Errorf("GET /whoami: %s", rsp.Status)
}
