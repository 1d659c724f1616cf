package refpeer

import (
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"skep/host/mailtest/refclient"
)

// Options of [New].
type Options struct {
	// Name is the swarm's; Entrypoint is the agent that users write to.
	Name, Entrypoint string
	// Agents are all of the swarm, the entrypoint too.
	Agents []string
	// Keys are who may call, as ids of role agent, by key.
	Keys map[string]string
	// AdminKey is the key of an admin, who may register swarms; empty for none.
	AdminKey string
	// Alter, if set, changes what is sent: other versions leave members out or add
	// some.
	Alter func(wrapper refclient.Object) refclient.Object
	// Act is what an agent does with a message. Each is handled in a goroutine of
	// its own, as the reference sends in detached jobs.
	Act func(p *Peer, m Mail)
}

// Exchange is one call between swarms.
type Exchange struct {
	// Out: the peer has made the call, else it was called.
	Out    bool
	Path   string
	Header http.Header
	Body   []byte
	// Status is what was answered, 0 for nothing yet, -1 where that failed.
	Status int
	Answer []byte
}

// remote is a swarm that the peer has registered.
type remote struct{ base, token string }

// Peer is a running fake. It is safe for concurrent use.
type Peer struct {
	opt    Options
	l      net.Listener
	server *http.Server
	jobs   sync.WaitGroup

	mu      sync.Mutex
	remotes map[string]remote
	tasks   map[Task]*record
	// bound are the tasks that the server has seen since its start, instances those
	// that it has made.
	bound, instances map[string]bool
	// uptime is what GET / answers, in seconds. It stands still, so that no test depends
	// on a clock.
	uptime float64
	log    []Exchange
}

// New starts a peer on a loopback address.
func New(opt Options) (*Peer, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Peer{opt: opt, l: l, remotes: map[string]remote{}}
	p.Restart()
	p.uptime = 3600
	p.server = &http.Server{Handler: p.routes(), ReadHeaderTimeout: time.Minute}
	p.jobs.Go(func() { _ = p.server.Serve(l) })
	return p, nil
}

// Close ends the server and waits for what is under way.
func (p *Peer) Close() {
	_ = p.server.Close()
	p.jobs.Wait()
}

// URL is the peer's base URL.
func (p *Peer) URL() string { return "http://" + p.l.Addr().String() }

// Restart loses what the reference keeps in memory: its tasks, its instances, which
// tasks were bound, and since when it runs.
func (p *Peer) Restart() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tasks, p.bound, p.instances, p.uptime = map[Task]*record{}, map[string]bool{}, map[string]bool{}, 1e-6
}

// Log returns the calls so far: those that were made in the order in which they
// began, those that came in the order in which they were answered, before anything
// that an agent does about them.
func (p *Peer) Log() []Exchange {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.log)
}

// note returns where in the log an exchange stands.
func (p *Peer) note(e Exchange) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.log = append(p.log, e)
	return len(p.log) - 1
}

// answered adds to the log what a call has come to.
func (p *Peer) answered(at, status int, answer []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.log[at].Status, p.log[at].Answer = status, answer
}

// now is a timestamp as the reference writes it.
func now() string { return time.Now().UTC().Format("2006-01-02T15:04:05.000000+00:00") }
