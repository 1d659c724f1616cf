package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
)

// Turns that wait for a model at once.
const (
	blockedFew  = 200 // with -quick
	blockedWarm = 64
)

func (b *bench) blockedTurns() int {
	if b.quick {
		return blockedFew
	}
	return blockedMany
}

// blocked measures turns of as many tasks that all wait for their model at once: of
// an agent in the sandbox and as a process, of the bundled agent for models, and as
// goroutines of a bare program. All ask one provider, which holds its answers.
func blocked(b *bench) {
	server := must(startServer(b.ctx, nil, "provider"))
	defer server.stop()
	module, program := must2(sdkPrograms())
	trusted, remove := must2(trust(server))
	defer remove()
	ways := b.blockedWays(server, trusted, module, program)
	all := make([][]waitingCost, len(ways))
	for range b.rounds {
		for i, w := range ways {
			in(w.name, func() { all[i] = append(all[i], w.wait()) })
		}
	}
	for i, w := range ways {
		if w.peer != i {
			b.reportBlocked(fmt.Sprintf("%s, %d turns in llm.chat", w.name, w.turns), middle(all[i]), middle(all[w.peer]))
		}
	}
	b.defaultTurns(server, sourceOf("file", module))
}

// blockedWay is how so many come to wait. Its peer is a bare one, which is its own.
type blockedWay struct {
	name  string
	peer  int
	turns int
	wait  func() waitingCost
}

// blockedInProcess is below the calls that the host answers a process at once.
const blockedInProcess = 240

// blockedWays are all of them, each after its peer.
func (b *bench) blockedWays(server *child, trusted trusted, module, program string) []blockedWay {
	n := b.blockedTurns()
	// One user has a quarter of the turns at most, and another wants some too.
	turns := fmt.Sprintf("turns = %d", 4*n)
	few := min(n, blockedInProcess)
	host := func(n int, source, ask, other, at string, env ...string) func() waitingCost {
		return func() waitingCost {
			return b.hostBlocked(server, modelSwarm(source, "openai", at+"/v1", turns), postLoad{n, ask, other}, env...)
		}
	}
	bare := func(at string, env ...string) func() waitingCost {
		return func() waitingCost { return b.bareBlocked(server, n, at, env...) }
	}
	held := question{Tokens: 1, Hold: true}.text()
	ways := []blockedWay{
		{"goroutines", 0, n, bare(server.url)},
		{"module", 0, n, host(n, sourceOf("file", module), "stream "+held, "echo 0", server.url)},
		{"process", 0, few, host(few, sourceOf("exec", program), "stream "+held, "echo 0", server.url)},
		{"bundled:llm", 0, n, host(n, "bundled:llm", held, question{Tokens: 1}.text(), server.url)},
	}
	if !b.full {
		return ways
	}
	return append(ways, blockedWay{"goroutines, TLS", 4, n, bare(trusted.url, trusted.env)},
		blockedWay{"module, TLS", 4, n, host(n, sourceOf("file", module), "stream "+held, "echo 0", trusted.url, trusted.env)})
}

// trusted is a provider's address with TLS, and the environment that trusts it.
type trusted struct{ url, env string }

// trust asks a provider for both.
func trust(server *child) (t trusted, remove func(), err error) {
	get := func(path string) ([]byte, error) {
		return getFrom(server.url+path).send(context.Background(), http.DefaultClient)
	}
	at, err := get("/secure")
	if err != nil {
		return t, nil, err
	}
	pem, err := get("/trust")
	if err != nil {
		return t, nil, err
	}
	dir, remove, err := scratch()
	if err != nil {
		return t, nil, err
	}
	file := filepath.Join(dir, "trust.pem")
	if err := os.WriteFile(file, pem, 0o600); err != nil {
		remove()
		return t, nil, err
	}
	return trusted{string(at), "SSL_CERT_FILE=" + file}, remove, nil
}

func (b *bench) reportBlocked(name string, ours, bare waitingCost) {
	for _, row := range []struct {
		name    string
		figure  int
		unit    unit
		nothing bool // the peer has none
	}{
		{"memory of its own each", ownBytes, bytesOf, false},
		{"heap each", heapBytes, bytesOf, false},
		{"stacks each", stackBytes, bytesOf, false},
		{"outside Go's runtime each", besideBytes, bytesOf, true},
		{"resident pages that all share each", sharedBytes, bytesOf, true},
		{"memory of the agent's process each", descendantBytes, bytesOf, true},
		{"goroutines", routineCount, count, false},
		{"open files", fileCount, count, false},
		{"computing time a second", idleTime, seconds, true},
		{"until all wait", arriveTime, seconds, false},
		{"from the release to the end of all", drainTime, seconds, false},
	} {
		if row.nothing {
			b.report.fact(name+", "+row.name, ours[row.figure], row.unit)
			continue
		}
		target := none()
		if row.figure == ownBytes {
			target = belowBytes(150 << 10)
		}
		b.report.compare(name+", "+row.name, ours[row.figure], row.unit, "a goroutine in net/http", bare[row.figure], target)
	}
	b.report.compare(name+", another user's message beside them, p50", ours[beside50], seconds, "without them", ours[quiet50], none())
	b.report.compare(name+", another user's message beside them, p99", ours[beside99], seconds, "without them", ours[quiet99], none())
}

// postLoad is how many messages there are that ask for what is held back, what they say,
// and what another user says meanwhile.
type postLoad struct {
	n          int
	ask, other string
}

// hostBlocked has a host of a swarm wait.
func (b *bench) hostBlocked(server *child, swarm string, t postLoad, env ...string) (k waitingCost) {
	on := must(startHost(b.ctx, swarm, env...))
	defer on.stop()
	cl := clientOf(floodClients)
	defer cl.CloseIdleConnections()
	w := waiter{on: on, cl: cl, ask: func(n int) error { return postAll(cl, on.url, t.ask, n) }, left: func() (int, error) { return running(cl, on.url) }}
	check(w.holdAndRelease(server, blockedWarm, func() error { return nil }))
	quiet := must(others(cl, on.url, t.other, b.span))
	var beside []float64
	k = must(b.waitingCost(server, w, t.n, func() (err error) {
		beside, err = others(cl, on.url, t.other, b.span)
		return err
	}))
	k[quiet50], k[quiet99], k[beside50], k[beside99] = median(quiet), percentile(quiet, 99), median(beside), percentile(beside, 99)
	return k
}

// bareBlocked has goroutines wait for what is asked at an address.
func (b *bench) bareBlocked(server *child, n int, at string, env ...string) (k waitingCost) {
	on := must(startServer(b.ctx, env, "asker", at))
	defer on.stop()
	cl := clientOf(0)
	defer cl.CloseIdleConnections()
	w := waiter{on: on, cl: cl,
		ask:  func(n int) error { return postTo(fmt.Sprintf("%s/ask?n=%d", on.url, n), "").expect(cl, "") },
		left: func() (int, error) { return number(cl, on.url+"/left") },
	}
	check(w.holdAndRelease(server, blockedWarm, func() error { return nil }))
	return must(b.waitingCost(server, w, n, func() error { return nil }))
}

// defaultTurns counts how many turns of one user come to wait within the default
// limits, and whether another user still gets through.
func (b *bench) defaultTurns(server *child, source string) {
	on := must(startHost(b.ctx, modelSwarm(source, "openai", server.url+"/v1")))
	defer on.stop()
	cl := clientOf(floodClients)
	defer cl.CloseIdleConnections()
	quiet := must(others(cl, on.url, "echo 0", b.span))
	check(postAll(cl, on.url, "stream "+question{Tokens: 1, Hold: true}.text(), blockedFew))
	beside := must(others(cl, on.url, "echo 0", b.span))
	held := must(number(cl, server.url+"/held"))
	b.report.fact(fmt.Sprintf("of %d turns of one user that want a model, wait for it (turns = 64, the default)", blockedFew), float64(held), count)
	b.report.compare("another user's message beside these, p50", median(beside), seconds, "without them", median(quiet), none())
	check(until(0, func() (int, error) {
		if err := postTo(server.url+"/release", "").expect(cl, ""); err != nil {
			return 0, err
		}
		return running(cl, on.url)
	}))
}
