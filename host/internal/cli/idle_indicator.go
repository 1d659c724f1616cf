package cli

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"skep/host/client"
)

// The live line is updated every idleTick, first after idleAfter without an event.
const (
	idleTick  = 250 * time.Millisecond
	idleAfter = time.Second
)

// idleIndicator tracks the agents that have mail and no event since. Its clock is
// the ticks: an event counts from the next tick.
type idleIndicator struct {
	agents []idleAgent      // in the order in which they got mail
	last   time.Time        // the host's time of the last event
	since  time.Time        // of the first tick after it; zero before
	turns  map[string]int64 // of each agent, the last that has ended
}

// idleAgent is an agent with mail.
type idleAgent struct {
	name  string
	mail  int       // messages of which nothing has come yet
	since time.Time // zero until the next tick
}

// recordEvent notes an event. A turn without any call leaves no event, so its agent
// counts as idle until its next event.
func (q *idleIndicator) recordEvent(at time.Time, e client.Event) {
	q.last, q.since = at, time.Time{}
	if e.Ends() {
		*q = idleIndicator{last: at}
		return
	}
	if e.Name == "new_message" {
		q.recordMessage(e)
	} else if i := q.indexAgent(e.Caller()); i >= 0 {
		q.agents[i].since = time.Time{}
		if q.endsTurn(e) {
			q.agents[i].mail--
		}
	}
	q.agents = slices.DeleteFunc(q.agents, func(s idleAgent) bool { return s.mail == 0 })
}

// recordMessage notes the recipient, who is to answer, and a remote sender, whose turns
// have no events here.
func (q *idleIndicator) recordMessage(e client.Event) {
	if m, ok := e.Message(); ok && strings.Contains(m.Payload.Sender.Name, "@") {
		if i := q.indexAgent(m.Payload.Sender.Name); i >= 0 {
			q.agents[i].mail--
		}
	}
	to := e.Recipient()
	if to == "" {
		return
	}
	i := q.indexAgent(to)
	if i < 0 {
		i = len(q.agents)
		q.agents = append(q.agents, idleAgent{name: to})
	}
	q.agents[i].mail++
}

func (q *idleIndicator) indexAgent(agent string) int {
	return slices.IndexFunc(q.agents, func(s idleAgent) bool { return s.name == agent })
}

// endsTurn reports whether an event is the first of the end of a turn.
func (q *idleIndicator) endsTurn(e client.Event) bool {
	if e.Volatile() {
		return false
	}
	if e.Name == "agent_error" {
		return true
	}
	var extra struct {
		Call string `json:"tool_call_id"`
		Turn int64  `json:"turn"`
	}
	if json.Unmarshal(e.Extra, &extra) != nil {
		return false
	}
	if number, ok := strings.CutPrefix(extra.Call, "t"); ok { // t7.2 is the second call of turn 7
		number, _, _ = strings.Cut(number, ".")
		extra.Turn, _ = strconv.ParseInt(number, 10, 64)
	}
	if extra.Turn == 0 || extra.Turn == q.turns[e.Caller()] {
		return false
	}
	if q.turns == nil {
		q.turns = map[string]int64{}
	}
	q.turns[e.Caller()] = extra.Turn
	return true
}

// advance handles a tick. It returns how long there was no event.
func (q *idleIndicator) advance(now time.Time) time.Duration {
	q.since = cmp.Or(q.since, now)
	for i := range q.agents {
		q.agents[i].since = cmp.Or(q.agents[i].since, now)
	}
	return now.Sub(q.since)
}

// describe names the agent that is idle longest, and the others.
func (q *idleIndicator) describe(now time.Time) (agent, text string) {
	if len(q.agents) == 0 {
		return "host", "no mail for " + wholeSeconds(now.Sub(q.since))
	}
	oldest := slices.MinFunc(q.agents, func(a, b idleAgent) int { return a.since.Compare(b.since) })
	var others []string
	for _, s := range q.agents {
		if s.name != oldest.name {
			others = append(others, inLine(s.name))
		}
	}
	text = "no word for " + wholeSeconds(now.Sub(oldest.since))
	if len(others) > 0 {
		text += " · also " + strings.Join(others, ", ")
	}
	return oldest.name, text
}

// wholeSeconds renders a time that is still growing.
func wholeSeconds(d time.Duration) string { return d.Truncate(time.Second).String() }

// showIdle shows the idle agents on the live line.
func (v *mailview) showIdle(now time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.start.IsZero() {
		return
	}
	quiet := v.idle.advance(now)
	if quiet < idleAfter {
		return
	}
	agent, text := v.idle.describe(now)
	for _, p := range v.emissions {
		if p.agent == agent {
			text = p.describe(lastLine(p.text)) + " · " + text
		}
	}
	v.show(v.idle.last.Add(quiet), agent, text)
}

// startIdleTicks updates the live line of a terminal. The line is empty once still has
// returned.
func (a *app) startIdleTicks(v *mailview) (still func()) {
	if !v.live || a.json() || a.env.Every == nil {
		return v.wipe
	}
	ticks, stop := a.env.Every(idleTick)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case now := <-ticks:
				v.showIdle(now)
			case <-done:
				return
			}
		}
	}()
	return sync.OnceFunc(func() {
		stop()
		close(done)
		<-ended
		v.wipe()
	})
}
