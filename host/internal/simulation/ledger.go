package simulation

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"skep/host/internal/swarm"
)

// ledger is what callers have: what they were promised, and what they got.
type ledger struct {
	mu    sync.Mutex
	posts []*post
	// exchanges are those of the realm.
	exchanges []*exchange
	// kept are words in what hosts have accepted for a tenant and keep; erased are words
	// that must be gone.
	kept   map[string][]string
	erased []string
	// removals counts the beginnings and ends of erasures, and the prunings. erasedTenants
	// are the tenants that were erased: their counters are not certain.
	removals      int
	pruned        bool
	erasedTenants map[string]bool
	// renewed are the marks of plans that were accepted anew after a removal.
	renewed map[string]bool
	// refused are the marks of steps that were refused for a quota.
	refused map[string]bool
	// cas are the increments that agents have seen succeed, by counter; casTries counts
	// the attempts.
	cas      map[string]map[string]bool
	casTries int

	over     context.Context
	overWith context.CancelFunc
}

// post is a post of a client.
type post struct {
	swarm.Post
	plan    *plan
	receipt *swarm.Receipt
	// gone is set when an erasure or a pruning may have taken it.
	gone bool
	// waits is set while the client waits for the answer.
	waits bool
}

func newLedger() *ledger {
	l := &ledger{kept: map[string][]string{}, cas: map[string]map[string]bool{}, erasedTenants: map[string]bool{}, renewed: map[string]bool{}, refused: map[string]bool{}}
	l.over, l.overWith = context.WithCancel(context.Background())
	return l
}

// close ends all waiting.
func (l *ledger) close() { l.overWith() }

// keep notes a word in what a host has accepted.
func (l *ledger) keep(tenant, word string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept[tenant] = append(l.kept[tenant], word)
}

// tryCount notes that an agent tries to increment a counter.
func (l *ledger) tryCount() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.casTries++
}

// counted notes an increment of a counter.
func (l *ledger) counted(counter, mark string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cas[counter] == nil {
		l.cas[counter] = map[string]bool{}
	}
	l.cas[counter][mark] = true
}

// beginErase returns the words that an erasure must remove.
func (l *ledger) beginErase(tenant string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.removals++
	l.erasedTenants[tenant] = true
	words := l.kept[tenant]
	delete(l.kept, tenant)
	l.markGone(tenant)
	return words
}

// endErase notes that what was accepted during an erasure may be erased with the rest.
// The words must be gone from now on.
func (l *ledger) endErase(tenant string, words []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.removals++
	l.markGone(tenant)
	l.erased = append(l.erased, words...)
}

// beginPrune notes that tasks that have ended may be gone from now on.
func (l *ledger) beginPrune() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.removals++
	l.pruned = true
}

// countRemovals counts the beginnings and ends of removals so far.
func (l *ledger) countRemovals() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.removals
}

// accept notes that a host has accepted a post, which was first sent after so many
// removals.
func (l *ledger) accept(p *post, r *swarm.Receipt, removals int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p.receipt, p.gone = r, removals != l.removals
	if p.gone {
		l.renew(p.plan)
	}
	l.posts = append(l.posts, p)
	tenant := p.Principal.Tenant
	l.kept[tenant] = append(l.kept[tenant], p.plan.Gen)
}

// acceptAgain notes that a host has accepted a post again, and reports whether it may do
// so as if it were new.
func (l *ledger) acceptAgain(p *post, r *swarm.Receipt) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	p.receipt = r
	if r.Duplicate {
		return true
	}
	l.renew(p.plan)
	return p.gone || l.pruned
}

// isGone reports whether an erasure or a pruning may have taken a post.
func (l *ledger) isGone(p *post) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return p.gone
}

// receiptOf is the last receipt of a post.
func (l *ledger) receiptOf(p *post) *swarm.Receipt {
	l.mu.Lock()
	defer l.mu.Unlock()
	return p.receipt
}

// setWaits notes whether a client waits for the answer to a post.
func (l *ledger) setWaits(p *post, waits bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p.waits = waits
}

// chooseTask returns a task of an accepted post; choose picks one of n. ok is false if
// there is none.
func (l *ledger) chooseTask(choose func(n int) int) (key swarm.TaskKey, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.posts) == 0 {
		return swarm.TaskKey{}, false
	}
	return l.posts[choose(len(l.posts))].receipt.Task, true
}

func (l *ledger) markGone(tenant string) {
	for _, p := range l.posts {
		p.gone = p.gone || p.Principal.Tenant == tenant
	}
	for _, x := range l.exchanges {
		x.gone = x.gone || x.in.Principal.Tenant == tenant
	}
}

// renew notes that a plan was accepted anew after its data was removed: all of it may
// happen again, and it may be found. The caller holds the lock.
func (l *ledger) renew(p *plan) {
	l.erased = slices.DeleteFunc(l.erased, func(word string) bool { return word == p.Gen })
	p.visit(func(mark string) { l.renewed[mark] = true })
}

// acceptFromPeer notes that a host has accepted as new what the peer sent, for the first
// time after so many removals. What was removed since then may come again from outside,
// also when the erasure was cut short and a later host has finished it.
func (l *ledger) acceptFromPeer(body string, removals int) {
	var p plan
	if json.Unmarshal([]byte(strings.TrimPrefix(body, farPrefix)), &p) != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if removals != l.removals || l.pruned || slices.Contains(l.erased, p.Gen) {
		l.renew(&p)
	}
}

// visit visits the marks of a plan.
func (p *plan) visit(see func(mark string)) {
	see(p.Mark)
	for _, s := range p.Steps {
		see(s.Mark)
		if s.Plan != nil {
			s.Plan.visit(see)
		}
	}
}

func (l *ledger) isRenewed(mark string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.renewed[mark]
}

// wasRefused notes that a step was refused, and reports whether it was before.
func (l *ledger) wasRefused(mark string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	was := l.refused[mark]
	l.refused[mark] = true
	return was
}
