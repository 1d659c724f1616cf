package cli

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"skep/host/client"
)

// maxTopRecent is how many events a page of top shows.
const maxTopRecent = 8

// topPage is what top has counted of a feed since a time.
type topPage struct {
	// Host is empty where there are several.
	Host string `json:"host"`
	// Hosts are those whose events are counted, Silent the others that share the store.
	Hosts  []string    `json:"hosts"`
	Silent []topSilent `json:"silent"`
	// Since is the first event that was counted, Until the last.
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
	// Missed are events that were not counted.
	Missed  uint64      `json:"missed"`
	Tenants []topTenant `json:"tenants"`
	Agents  []topAgent  `json:"agents"`
	Tasks   topTasks    `json:"tasks"`
	// Questions are the calls that wait for people, on the first page of them; MoreQuestions: there are others.
	Questions     int                 `json:"questions"`
	MoreQuestions bool                `json:"more_questions"`
	Dearest       []topTask           `json:"dearest"`
	Recent        []client.PulseEvent `json:"-"`
}

// topTasks are the tasks that have not ended. More is set where there are more than were counted.
type topTasks struct {
	Running int  `json:"running"`
	Paused  int  `json:"paused"`
	More    bool `json:"more"`
}

// topTask is a task that has not ended.
type topTask struct {
	Tenant   string `json:"tenant,omitempty"`
	Instance string `json:"instance"`
	Task     string `json:"task_id"`
	State    string `json:"state"`
	Started  string `json:"start_time"`
	Turns    int64  `json:"turns"`
	MicroUSD int64  `json:"micro_usd"`
}

// topTenant is a row of a tenant; the tenant without a name is the host.
type topTenant struct {
	Tenant  string `json:"tenant"`
	Running int    `json:"running"`
	Paused  int    `json:"paused"`
	// Ended are tasks that have ended, Failed those of them that did not complete.
	Ended   int64 `json:"ended"`
	Failed  int64 `json:"failed"`
	Refused int64 `json:"refused"`
	topCount
}

// topAgent is a row of an agent.
type topAgent struct {
	Tenant string `json:"tenant"`
	Agent  string `json:"agent"`
	// Mail counts messages that were queued for the agent.
	Mail int64 `json:"mail"`
	topCount
}

// topCount is what turns have used.
type topCount struct {
	Turns       int64   `json:"turns"`
	TurnsFailed int64   `json:"turns_failed"`
	QueuedMS    float64 `json:"queued_ms"`
	CPUms       float64 `json:"cpu_ms"`
	Tokens      int64   `json:"tokens"`
	MicroUSD    int64   `json:"micro_usd"`
}

// wait is the mean time that turns have waited for their slot.
func (n *topCount) wait() time.Duration {
	return milliseconds(n.QueuedMS / float64(max(1, n.Turns)))
}

func (n *topCount) addTurn(e client.PulseEvent) {
	n.Turns++
	if e.State != "ok" {
		n.TurnsFailed++
	}
	if u := e.Usage; u != nil {
		n.QueuedMS += u.QueuedMS
		n.CPUms += float64(u.CPU) / float64(time.Millisecond)
		n.Tokens += u.Tokens
		n.MicroUSD += u.MicroUSD
	}
}

// topCounter counts the events of a feed.
type topCounter struct {
	since   time.Time
	until   time.Time
	missed  uint64
	tenants map[string]*topTenant
	agents  map[[2]string]*topAgent
	recent  []client.PulseEvent
	// byCost puts the dearest tenants and agents first.
	byCost bool
}

func newTopCounter() *topCounter {
	return &topCounter{tenants: map[string]*topTenant{}, agents: map[[2]string]*topAgent{}}
}

func (n *topCounter) tenant(name string) *topTenant {
	t := n.tenants[name]
	if t == nil {
		t = &topTenant{Tenant: name}
		n.tenants[name] = t
	}
	return t
}

func (n *topCounter) agent(tenant, name string) *topAgent {
	key := [2]string{tenant, name}
	a := n.agents[key]
	if a == nil {
		a = &topAgent{Tenant: tenant, Agent: name}
		n.agents[key] = a
	}
	return a
}

// add counts an event. Events of one host come in their order.
func (n *topCounter) add(e client.PulseEvent) {
	switch e.Kind {
	case client.PulseReset:
		n.missed += e.Missed
		return
	case client.PulsePing:
		return
	case "turn":
		if e.State != "waits" {
			n.tenant(e.Tenant).addTurn(e)
			n.agent(e.Tenant, e.Agent).addTurn(e)
		}
	case "mail":
		n.agent(e.Tenant, e.To).Mail++
	case "task":
		n.addTask(e)
	case "refusal":
		n.tenant(e.Tenant).Refused += max(1, e.Count)
	}
	if n.since.IsZero() || e.Time.Before(n.since) {
		n.since = e.Time
	}
	if e.Time.After(n.until) {
		n.until = e.Time
	}
	if isNotable(e) {
		n.recent = append(n.recent, e)
		slices.SortStableFunc(n.recent, func(a, b client.PulseEvent) int { return a.Time.Compare(b.Time) })
		n.recent = n.recent[max(0, len(n.recent)-maxTopRecent):]
	}
}

func (n *topCounter) addTask(e client.PulseEvent) {
	code, over := taskEnds[e.State]
	if !over {
		return
	}
	t := n.tenant(e.Tenant)
	t.Ended++
	if code != exitOK {
		t.Failed++
	}
}

// isNotable selects what an operator may want to look at.
func isNotable(e client.PulseEvent) bool {
	switch e.Kind {
	case "turn":
		return e.State != "ok"
	case "task":
		return e.State != "running" && e.State != "completed"
	case "outbox":
		return e.State == "dead"
	case "mail":
		return false
	}
	return true
}

// page returns what was counted, the busiest agents first, or the dearest.
func (n *topCounter) page() topPage {
	p := topPage{Since: n.since, Until: n.until, Missed: n.missed, Tenants: []topTenant{}, Agents: []topAgent{}, Dearest: []topTask{}, Recent: slices.Clone(n.recent)}
	for _, name := range slices.Sorted(maps.Keys(n.tenants)) {
		p.Tenants = append(p.Tenants, *n.tenants[name])
	}
	for _, a := range n.agents {
		p.Agents = append(p.Agents, *a)
	}
	slices.SortStableFunc(p.Tenants, func(a, b topTenant) int { return n.compareCost(a.topCount, b.topCount) })
	slices.SortFunc(p.Agents, func(a, b topAgent) int {
		return cmp.Or(n.compareCost(a.topCount, b.topCount), cmp.Compare(b.CPUms, a.CPUms), cmp.Compare(b.Mail, a.Mail), cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Agent, b.Agent))
	})
	return p
}

// compareCost orders the dearest first, where cost is the order.
func (n *topCounter) compareCost(a, b topCount) int {
	if !n.byCost {
		return 0
	}
	return cmp.Compare(b.MicroUSD, a.MicroUSD)
}
