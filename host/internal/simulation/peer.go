package simulation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"skep/host/internal/peer/router"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// peerName is the other swarm.
const peerName = "depot"

// peerList has the one peer.
type peerList struct{}

func (peerList) Peer(name string) (router.Peer, error) {
	if name != peerName {
		return router.Peer{}, errors.New("unknown swarm endpoint")
	}
	return router.Peer{BaseURL: "http://127.0.0.1:9", Token: "t", GiveUp: 30 * time.Second, AllowPrivate: true}, nil
}

// peer is a simulated swarm at another host: it takes, loses and refuses messages, and
// answers late or twice.
type peer struct {
	world  *world
	server http.Server
	conns  chan net.Conn
	closed chan struct{}
	work   sync.WaitGroup

	mu   sync.Mutex
	seen map[string]bool
}

func newPeer(w *world) *peer {
	p := &peer{world: w, conns: make(chan net.Conn), closed: make(chan struct{}), seen: map[string]bool{}}
	p.server.Handler = p
	p.work.Go(func() { _ = p.server.Serve(p) }) // it ends with close
	return p
}

// dial connects a host to the peer.
func (p *peer) dial(ctx context.Context, _ netip.AddrPort) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Accept, Close and Addr make the peer a listener.
func (p *peer) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *peer) Close() error   { return nil }
func (p *peer) Addr() net.Addr { return &net.TCPAddr{} }

func (p *peer) close() {
	close(p.closed)
	_ = p.server.Close() // there is nothing to lose
	p.work.Wait()
}

// ServeHTTP takes a message.
func (p *peer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct{ Message mail.Interswarm }
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		p.world.violate("the peer gets what is no wrapper: %v", err)
		return
	}
	in := body.Message
	roll := p.world.sched.park(fmt.Sprintf("peer takes %s %s", in.Type, in.Payload.Subject), stepGate, nil).roll
	switch n := roll % 100; {
	case n < 10:
		http.Error(w, `{"detail":"busy"}`, http.StatusServiceUnavailable)
		return
	case n < 15:
		time.Sleep(40 * time.Second) // longer than any request
	case n < 20:
		http.Error(w, `{"detail":"no"}`, http.StatusBadRequest)
		return
	}
	p.take(in, roll)
	if roll%100 < 30 {
		panic(http.ErrAbortHandler) // taken, and the answer is lost
	}
	_ = json.NewEncoder(w).Encode(map[string]string{
		"status": "success", "task_id": in.Payload.TaskID, "local_runner": "swarm:" + swarmName + "@" + peerName,
	})
}

// take counts a message, and answers a request some time later.
func (p *peer) take(in mail.Interswarm, roll uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen[in.MessageID] {
		return
	}
	p.seen[in.MessageID] = true
	if in.Type != mail.Request || mail.Reserved(in.Payload.Subject) || roll>>8%10 == 0 {
		return
	}
	p.work.Go(func() { p.answer(in, roll) })
}

// farPrefix begins the peer's answers; the plan that it was asked for follows.
const farPrefix = "far "

// answer answers a request of the host, once or twice, and sometimes too late.
func (p *peer) answer(in mail.Interswarm, roll uint64) {
	p.sleep(time.Duration(roll >> 16 % uint64(20*time.Second)))
	out := mail.Interswarm{
		MessageID: "a" + in.MessageID[1:], SourceSwarm: peerName, TargetSwarm: swarmName, Timestamp: mail.FormatTime(time.Now()),
		Type: mail.Response, TaskOwner: in.TaskOwner, TaskContributors: in.TaskContributors,
		Payload: mail.Payload{
			TaskID: in.Payload.TaskID, ID: in.Payload.ID, Sender: mail.Address{Type: mail.Agent, Name: in.Payload.Recipient().Name},
			Recipients: []mail.Address{{Type: mail.Agent, Name: in.Payload.Sender.Name}}, Subject: "re", Body: farPrefix + in.Payload.Body,
			SenderSwarm: peerName, RecipientSwarms: []string{swarmName},
		},
	}
	tenant, ok := ownerTenant(in)
	if !ok {
		p.world.violate("a message of task %s has no contributor of its sender: %q", in.Payload.TaskID, in.TaskContributors)
		return
	}
	if roll>>40%10 == 0 {
		p.intrude(out, tenant)
	}
	removals := p.world.ledger.countRemovals()
	for range 1 + roll>>32%2 {
		p.send(swarm.Incoming{Peer: peerName, Swarm: swarmName, Back: true, Wrapper: out, Principal: peerPrincipal(tenant)}, removals)
	}
}

// intrude answers a task of one tenant as a principal of another.
func (p *peer) intrude(out mail.Interswarm, tenant string) {
	other := tenants[0]
	if other == tenant {
		other = tenants[1]
	}
	out.MessageID = "b" + out.MessageID[1:]
	out.Payload.Body = "intruded"
	if _, err := p.receive(swarm.Incoming{Peer: peerName, Swarm: swarmName, Back: true, Wrapper: out, Principal: peerPrincipal(other)}); err == nil {
		p.world.violate("a principal of tenant %q answers a task of tenant %q", other, tenant)
	}
}

// send hands a message in until the host has taken or refused it. It was first sent after
// so many removals.
func (p *peer) send(in swarm.Incoming, removals int) (taken bool) {
	for range 20 {
		got, err := p.receive(in)
		if err == nil && !got.Duplicate {
			p.world.ledger.acceptFromPeer(in.Wrapper.Payload.Body, removals)
		}
		if err == nil || isRefusal(err) {
			return err == nil
		}
		p.sleep(2 * time.Second)
	}
	return false
}

func (p *peer) receive(in swarm.Incoming) (swarm.IncomingReceipt, error) {
	p.world.sched.park(fmt.Sprintf("peer sends %s", in.Wrapper.Payload.Body), stepGate, nil)
	h := p.world.living()
	if h == nil {
		return swarm.IncomingReceipt{}, swarm.ErrDraining
	}
	got, err := h.receive(context.Background(), in)
	p.world.sched.trace.note("peer: %s %v", in.Wrapper.MessageID, err)
	return got, err
}

func (p *peer) sleep(d time.Duration) {
	select {
	case <-time.After(d):
	case <-p.closed:
	}
}

func peerPrincipal(tenant string) swarm.Principal {
	return swarm.Principal{Tenant: tenant, Role: mail.RoleSwarm, ID: peerName}
}

// ownerTenant is the tenant of the instance at the host that has sent a message.
func ownerTenant(in mail.Interswarm) (tenant string, ok bool) {
	for _, c := range in.TaskContributors {
		owner, err := mail.ParseOwner(c)
		if err == nil && owner.Swarm == swarmName {
			tenant, _, err = mail.SplitPrincipal(owner.ID)
			return tenant, err == nil
		}
	}
	return "", false
}
