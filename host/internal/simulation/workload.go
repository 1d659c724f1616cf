package simulation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"skep/host/internal/store/sqlite"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// client is a caller, or an operator, that does some actions one after the other.
type client struct {
	world *world
	name  string
	rng   *rand.Rand
	// n counts actions, marks the marks of its plans.
	n, marks int
}

// mark is a new unique word.
func (c *client) mark() string {
	c.marks++
	return fmt.Sprintf("mark-%s.%d-", c.name, c.marks)
}

func (c *client) work() {
	defer func() { c.world.busy.Add(-1) }()
	for range 3 + c.rng.IntN(5) {
		c.n++
		c.act()
	}
}

// park parks before an action, and returns the host of that moment; nil for none.
func (c *client) park(what string) *host {
	c.world.sched.park(fmt.Sprintf("%s.%d %s", c.name, c.n, what), stepGate, nil)
	return c.world.living()
}

// actions are what clients do, and steps what agents do, with how often.
var (
	actions = mix{{"post", 50}, {"answer", 8}, {"cancel", 8}, {"erase", 6}, {"prune", 5}, {"reload", 7}, {"load", 5}, {"rotate", 3}, {"foreign", 5}, {"rest", 3}, {"hold", 8}}
	steps   = mix{{"ask", 30}, {"timer", 15}, {"cas", 12}, {"put", 5}, {"fetch", 13}, {"chat", 10}, {"human", 5}, {"sleep", 6}, {"fail", 4}}
)

// mix are words with weights.
type mix []struct {
	word   string
	weight int
}

// vary makes some words of a mix frequent, and leaves some out: runs that differ find more.
func (m mix) vary(rng *rand.Rand) mix {
	m = slices.Clone(m)
	for i := range m[1:] {
		m[i+1].weight *= []int{0, 1, 1, 4}[rng.IntN(4)]
	}
	return m
}

func (m mix) choose(rng *rand.Rand) string {
	sum := 0
	for _, one := range m {
		sum += one.weight
	}
	n := rng.IntN(sum)
	for _, one := range m {
		if n -= one.weight; n < 0 {
			return one.word
		}
	}
	return ""
}

func (c *client) act() {
	tenant := tenants[c.rng.IntN(len(tenants))]
	switch c.world.actions.choose(c.rng) {
	case "post":
		c.post(tenant)
	case "answer":
		c.answer()
	case "cancel":
		c.cancel()
	case "erase":
		c.erase(tenant)
	case "prune":
		c.prune()
	case "reload":
		c.reload()
	case "load":
		c.load(tenant)
	case "rotate":
		c.rotate(tenant)
	case "foreign":
		c.foreign(tenant)
	case "hold":
		c.hold(tenant)
	case "rest":
		time.Sleep(time.Duration(c.rng.IntN(90)) * time.Second)
	}
}

// post submits a post until it is accepted or refused, and then waits for its answer
// beside the next action.
func (c *client) post(tenant string) {
	p := c.newPost(tenant)
	l := c.world.ledger
	removals := l.countRemovals()
	for range 30 {
		h := c.park("post " + tenant + "/" + p.Task + " " + p.plan.Mark)
		if h == nil {
			return
		}
		c.world.count("post")
		ctx, cancel := context.WithCancel(context.Background())
		if c.rng.IntN(12) == 0 {
			time.AfterFunc(time.Duration(c.rng.IntN(3000))*time.Millisecond, cancel)
		}
		r, err := h.submit(ctx, p.Post)
		cancel()
		c.world.sched.trace.note("%s: post %s: %v", c.name, p.plan.Mark, err)
		if err == nil {
			l.accept(p, r, removals)
			c.wait(h, p)
			return
		}
		if isRefusal(err) || p.Key == "" {
			return
		}
		time.Sleep(time.Duration(200+c.rng.IntN(5000)) * time.Millisecond)
	}
}

func (c *client) newPost(tenant string) *post {
	p := &post{plan: &plan{Mark: c.mark()}}
	p.plan.Steps = c.steps(2)
	p.plan.setGen("gen-" + p.plan.Mark)
	p.Post = swarm.Post{
		Principal: principal(tenant, []string{"ann", "bob"}[c.rng.IntN(2)]), Swarm: swarmName, Door: "sim", Type: mail.Request, Subject: "go",
		Body: p.plan.text(), Digest: []byte(p.plan.Mark),
	}
	if c.rng.IntN(4) > 0 {
		p.Key = "key-" + p.plan.Mark
	}
	if c.rng.IntN(5) > 0 {
		p.Task = fmt.Sprintf("t%d", c.rng.IntN(6))
	}
	if c.rng.IntN(6) == 0 {
		p.Timeout = time.Duration(10+c.rng.IntN(80)) * time.Second
	}
	if c.rng.IntN(12) == 0 {
		p.Type = mail.Interrupt
	}
	return p
}

// steps makes what an agent does.
func (c *client) steps(depth int) (list []step) {
	for range 1 + c.rng.IntN(3) {
		s := step{Mark: c.mark(), Do: c.world.steps.choose(c.rng)}
		if depth == 0 && (s.Do == "ask" || s.Do == "timer") {
			s.Do = "cas"
		}
		switch s.Do {
		case "ask":
			s.To = []string{"math", "text", "math", "calc@" + peerName}[c.rng.IntN(4)]
			s.Plan = &plan{Mark: s.Mark, Steps: c.steps(depth - 1)}
		case "timer":
			s.MS = int64(1 + c.rng.IntN([]int{20000, 20000, 20000, 120000}[c.rng.IntN(4)]))
			s.Plan = &plan{Mark: s.Mark, Steps: c.steps(depth - 1)}
		case "sleep":
			s.MS = int64(1 + c.rng.IntN(5000))
		}
		list = append(list, s)
	}
	return list
}

func (p *plan) setGen(gen string) {
	p.Gen = gen
	for _, s := range p.Steps {
		if s.Plan != nil {
			s.Plan.setGen(gen)
		}
	}
}

// wait waits for the answer to a post, on later hosts too.
func (c *client) wait(h *host, p *post) {
	l := c.world.ledger
	l.setWaits(p, true)
	c.world.clients.Go(func() {
		defer l.setWaits(p, false)
		for {
			a, err := h.rt.Wait(l.over, l.receiptOf(p))
			c.world.sched.trace.note("%s: answer to %s: %s %v", c.name, p.plan.Mark, a.State, err)
			if err == nil {
				c.world.count("answer " + string(a.State))
			}
			if err == nil || isRefusal(err) || p.Key == "" {
				return
			}
			if h = c.postAgain(p); h == nil {
				return
			}
		}
	})
}

// postAgain submits an accepted post again, and returns the host that has taken it, or
// nil when no answer is due any more.
func (c *client) postAgain(p *post) *host {
	l := c.world.ledger
	for {
		time.Sleep(time.Second)
		c.world.sched.park("again "+p.plan.Mark, stepGate, nil)
		h := c.world.living()
		if h == nil || l.isGone(p) || l.over.Err() != nil {
			return nil
		}
		r, err := h.submit(context.Background(), p.Post)
		switch {
		case isRefusal(err):
			return nil
		case err != nil:
			continue
		}
		if !l.acceptAgain(p, r) {
			c.world.violate("post %s was accepted, and is accepted as new under the same key", p.plan.Mark)
		}
		return h
	}
}

// known returns a task of a post that a host has accepted.
func (c *client) known() (swarm.TaskKey, bool) {
	return c.world.ledger.chooseTask(c.rng.IntN)
}

// answer answers the calls that a task waits for.
func (c *client) answer() {
	h := c.park("answer")
	key, ok := c.known()
	if h == nil || !ok {
		return
	}
	snap, err := h.rt.Task(context.Background(), key)
	if err != nil || snap.Task.State != swarm.StatePaused {
		return
	}
	results := &swarm.Results{}
	for _, b := range snap.Task.Breakpoints {
		for _, a := range b.Calls {
			results.Each = append(results.Each, swarm.CallResult{Call: a.ID, Content: "yes"})
		}
	}
	c.world.count("answer")
	_, err = h.submit(context.Background(), swarm.Post{
		Principal: principal(key.Tenant, key.Instance[len("user:"):]), Swarm: swarmName, Door: "sim", Task: key.Task, MustExist: true, Results: results,
		Type: mail.Response, Subject: "results",
	})
	c.world.sched.trace.note("%s: answer %s: %v", c.name, short(key), err)
}

func (c *client) cancel() {
	h := c.park("cancel")
	key, ok := c.known()
	if h == nil || !ok {
		return
	}
	c.world.count("cancel")
	err := h.rt.CancelTask(context.Background(), key, "ann")
	c.world.sched.trace.note("%s: cancel %s: %v", c.name, short(key), err)
}

// erase erases a tenant. What was accepted before must not be found afterwards.
func (c *client) erase(tenant string) {
	h := c.park("erase " + tenant)
	if h == nil {
		return
	}
	c.world.count("erase")
	words := c.world.ledger.beginErase(tenant)
	err := h.rt.EraseTenant(context.Background(), tenant, nil)
	c.world.web.forget(tenant)
	if err != nil {
		words = nil
	}
	c.world.ledger.endErase(tenant, words)
	c.world.sched.trace.note("%s: erase %s: %v", c.name, tenant, err)
}

func (c *client) prune() {
	h := c.park("prune")
	if h == nil {
		return
	}
	c.world.count("prune")
	c.world.ledger.beginPrune()
	now := time.Now()
	_, err := h.rt.Prune(context.Background(), now.Add(-time.Second), now.Add(-time.Duration(c.rng.IntN(30))*time.Second))
	c.world.sched.trace.note("%s: prune: %v", c.name, err)
}

func (c *client) reload() {
	extra := c.rng.IntN(2) == 0
	h := c.park(fmt.Sprintf("reload, extra %v", extra))
	if h == nil {
		return
	}
	c.world.count("reload")
	if err := c.world.grants.reload(h, extra); err != nil {
		c.world.violate("a reload fails: %v", err)
	}
}

// load stores a definition that came over the network for a tenant.
func (c *client) load(tenant string) {
	h := c.park("load " + tenant)
	if h == nil {
		return
	}
	c.world.count("load")
	gen := "gen-" + c.mark()
	text := []byte(`{"gen":"` + gen + `"}`)
	err := h.store.LoadDefinition(context.Background(), sqlite.Loaded{Tenant: tenant, Swarm: swarmName, At: time.Now(), By: "ann", Text: text},
		sqlite.Definition{Tenant: tenant, Swarm: swarmName, Digest: "loaded-" + gen, Created: time.Now(), Body: text})
	c.world.sched.trace.note("%s: load %s: %v", c.name, tenant, err)
	if err == nil {
		c.world.ledger.keep(tenant, gen)
	}
	// A reload reads all that is loaded.
	if _, err := h.store.Loaded(context.Background()); err != nil && !errors.Is(err, errInjected) && !errors.Is(err, swarm.ErrFenced) {
		c.world.violate("what tenants have loaded cannot be read: %v", err)
	}
}

func (c *client) rotate(tenant string) {
	h := c.park("rotate " + tenant)
	if h == nil || !c.world.sealed {
		return
	}
	c.world.count("rotate")
	err := h.store.Rotate(context.Background(), tenant)
	c.world.sched.trace.note("%s: rotate %s: %v", c.name, tenant, err)
}

// foreign hands in a task of the peer, once or twice.
func (c *client) foreign(tenant string) {
	l := c.world.ledger
	p := &plan{Mark: c.mark(), Steps: slices.DeleteFunc(c.steps(1), func(s step) bool { return s.Do == "human" })}
	id := fmt.Sprintf("1c9d0000-0000-4000-8000-%012d", c.rng.IntN(1e9))
	p.setGen("gen-" + p.Mark)
	w := mail.Interswarm{
		MessageID: id, SourceSwarm: peerName, TargetSwarm: swarmName, Timestamp: mail.FormatTime(time.Now()),
		Type: mail.Request, TaskOwner: "user:u@" + peerName, TaskContributors: []string{"user:u@" + peerName},
		Payload: mail.Payload{
			TaskID: "f" + id[24:], ID: id, Sender: mail.Address{Type: mail.Agent, Name: "chief@" + peerName},
			Recipients: []mail.Address{{Type: mail.Agent, Name: "boss@" + swarmName}}, Subject: "do", Body: p.text(), RecipientSwarms: []string{swarmName},
		},
	}
	c.world.count("foreign")
	removals := l.countRemovals()
	for range 1 + c.rng.IntN(2) {
		if c.world.peer.send(swarm.Incoming{Peer: peerName, Swarm: swarmName, Wrapper: w, Hops: 1, Principal: peerPrincipal(tenant)}, removals) {
			l.keep(tenant, p.Gen)
		}
	}
}
