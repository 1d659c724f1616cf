package swarm

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"skep/spec/mail"
)

// causeResting is the cause of the [Failure] of a turn whose agent rests.
const causeResting = "resting"

// exhaustedCauses are the causes of failures that cost a whole limit of computing.
func exhaustedCauses() []string { return []string{"cpu", "fuel"} }

// agentKey names an agent of one tenant.
type agentKey struct {
	swarmKey
	agent string
}

// turnBreakers let agents rest whose turns use up their computing limits one after the
// other: each such turn costs the whole limit and has no result. They are kept in
// memory only.
type turnBreakers struct {
	mu sync.Mutex
	by map[agentKey]*turnBreaker
}

// turnBreaker is the breaker of one agent.
type turnBreaker struct {
	failures int
	// until is when the agent may try again, zero before it rests.
	until time.Time
	why   string
}

// admit returns until when an agent rests, and why; ok is true if a turn may run. After
// the rest one turn may try each rest, until a turn ends well.
func (b *turnBreakers) admit(key agentKey, limits Limits, now time.Time) (until time.Time, why string, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	one := b.by[key]
	if one == nil || limits.AgentRestAfter == 0 || one.failures < limits.AgentRestAfter {
		return time.Time{}, "", true
	}
	if now.Before(one.until) {
		return one.until, one.why, false
	}
	one.until = now.Add(limits.AgentRest)
	return time.Time{}, "", true
}

// record notes how a turn has ended. rests is set if the agent begins to rest, recovered
// if it had rested and its turn has ended otherwise.
func (b *turnBreakers) record(key agentKey, f *Failure, limits Limits, now time.Time) (rests, recovered bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	one := b.by[key]
	if f == nil || !slices.Contains(exhaustedCauses(), f.Cause) {
		delete(b.by, key)
		return false, one != nil && !one.until.IsZero()
	}
	if one == nil {
		b.forgetOld(now)
		one = &turnBreaker{}
		b.by[key] = one
	}
	one.failures, one.why = one.failures+1, f.Message
	if limits.AgentRestAfter == 0 || one.failures < limits.AgentRestAfter {
		return false, false
	}
	rests = one.until.IsZero()
	one.until = now.Add(limits.AgentRest)
	return rests, false
}

// keepBreaker is how long a breaker is kept after its agent may try again.
const keepBreaker = 24 * time.Hour

// forgetOld drops the breakers of agents that run no more.
func (b *turnBreakers) forgetOld(now time.Time) {
	for key, one := range b.by {
		if !one.until.IsZero() && now.After(one.until.Add(keepBreaker)) {
			delete(b.by, key)
		}
	}
}

// forgetTenant drops the breakers of an erased tenant.
func (b *turnBreakers) forgetTenant(tenant string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.by, func(key agentKey, _ *turnBreaker) bool { return key.tenant == tenant })
}

// resting counts the agents that rest.
func (b *turnBreakers) resting(now time.Time) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, one := range b.by {
		if now.Before(one.until) {
			n++
		}
	}
	return n
}

// CountResting returns the number of agents whose turns are not run for a while, because
// turn after turn used up its computing limits.
func (r *Runtime) CountResting() int { return r.breakers.resting(r.now()) }

// checkResting returns why a turn of a resting agent is not run, nil for one that is.
func (r *Runtime) checkResting(t *activeTask, setup *turnSetup) *Failure {
	limits := setup.run.def.Limits
	until, why, ok := r.breakers.admit(agentKey{swarmKey{t.key.Tenant, t.key.Swarm}, setup.agent.Name}, limits, r.now())
	if ok {
		return nil
	}
	return &Failure{Cause: causeResting, Message: fmt.Sprintf(
		"%d turns in a row used up their computing limits, so it rests until %s, and then one turn tries it (%s); the keys are [limits] agent_rest_after and agent_rest",
		limits.AgentRestAfter, mail.FormatTime(until), why)}
}

// recordRest counts how a turn has ended, and logs the begin and the end of a rest.
func (r *Runtime) recordRest(t *activeTask, setup *turnSetup, f *Failure) {
	limits := setup.run.def.Limits
	key := agentKey{swarmKey{t.key.Tenant, t.key.Swarm}, setup.agent.Name}
	switch rests, recovered := r.breakers.record(key, f, limits, r.now()); {
	case rests:
		r.log.Warn("an agent rests: turn after turn used up its computing limits", "tenant", key.tenant, "swarm", key.name, "agent", key.agent, "for", limits.AgentRest, "why", f.Message)
	case recovered:
		r.log.Info("an agent rests no more", "tenant", key.tenant, "swarm", key.name, "agent", key.agent)
	}
}
