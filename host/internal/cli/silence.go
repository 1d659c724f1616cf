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

// How often a person sees that work goes on, and after how long without an event
// for the first time.
const (
	watchPause = 250 * time.Millisecond
	longQuiet  = time.Second
)

// silence knows who has mail and has not been heard of since. Its clock is that of
// the ticks: an event happens at the next one.
type silence struct {
	agents []silent         // in the order in which they got mail
	last   time.Time        // the host's time of the last event
	since  time.Time        // of the first tick after it; zero before
	turns  map[string]int64 // of each agent, the last that has ended
}

// silent is an agent that has mail.
type silent struct {
	name  string
	mail  int       // messages of which nothing has come yet
	since time.Time // zero until the next tick
}

// hear takes an event. A turn that says nothing at all leaves no event, so that its
// agent counts as silent until it is heard of again.
func (q *silence) hear(at time.Time, e client.Event) {
	q.last, q.since = at, time.Time{}
	if e.Ends() {
		*q = silence{last: at}
		return
	}
	if e.Name == "new_message" {
		q.mail(e)
	} else if i := q.index(e.Caller()); i >= 0 {
		q.agents[i].since = time.Time{}
		if q.ended(e) {
			q.agents[i].mail--
		}
	}
	q.agents = slices.DeleteFunc(q.agents, func(s silent) bool { return s.mail == 0 })
}

// mail notes who is to answer, and that one elsewhere has written: its turns have
// no events here.
func (q *silence) mail(e client.Event) {
	if m, ok := e.Message(); ok && strings.Contains(m.Payload.Sender.Name, "@") {
		if i := q.index(m.Payload.Sender.Name); i >= 0 {
			q.agents[i].mail--
		}
	}
	to := e.Recipient()
	if to == "" {
		return
	}
	i := q.index(to)
	if i < 0 {
		i = len(q.agents)
		q.agents = append(q.agents, silent{name: to})
	}
	q.agents[i].mail++
}

func (q *silence) index(agent string) int {
	return slices.IndexFunc(q.agents, func(s silent) bool { return s.name == agent })
}

// ended reports whether an event is the first to tell that a turn has ended.
func (q *silence) ended(e client.Event) bool {
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

// at is a tick. It returns how long there was no event.
func (q *silence) at(now time.Time) time.Duration {
	q.since = cmp.Or(q.since, now)
	for i := range q.agents {
		q.agents[i].since = cmp.Or(q.agents[i].since, now)
	}
	return now.Sub(q.since)
}

// words names the agent that was silent longest, and the others.
func (q *silence) words(now time.Time) (agent, text string) {
	if len(q.agents) == 0 {
		return "host", "no mail for " + seconds(now.Sub(q.since))
	}
	oldest := slices.MinFunc(q.agents, func(a, b silent) int { return a.since.Compare(b.since) })
	var others []string
	for _, s := range q.agents {
		if s.name != oldest.name {
			others = append(others, inLine(s.name))
		}
	}
	text = "no word for " + seconds(now.Sub(oldest.since))
	if len(others) > 0 {
		text += " · also " + strings.Join(others, ", ")
	}
	return oldest.name, text
}

// seconds gives a time that is still growing.
func seconds(d time.Duration) string { return d.Truncate(time.Second).String() }

// tick shows, on the line that changes, who has said nothing for long.
func (v *mailview) tick(now time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.start.IsZero() {
		return
	}
	quiet := v.quiet.at(now)
	if quiet < longQuiet {
		return
	}
	agent, text := v.quiet.words(now)
	for _, p := range v.turns {
		if p.agent == agent {
			text = p.words(lastLine(p.text)) + " · " + text
		}
	}
	v.show(v.quiet.last.Add(quiet), agent, text)
}

// watching lets a view tick while there is a person at a line that can change.
// Nothing is left on that line once still has returned.
func (a *app) watching(v *mailview) (still func()) {
	if !v.live || a.json() || a.env.Every == nil {
		return v.wipe
	}
	ticks, stop := a.env.Every(watchPause)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case now := <-ticks:
				v.tick(now)
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
