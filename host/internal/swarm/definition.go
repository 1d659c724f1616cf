package swarm

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"skep/abi"
)

// Definition is one swarm as its operator composed it. It does not change after it is
// handed to [New] or [Runtime.ReplaceDefinitions].
type Definition struct {
	Tenant string
	Name   string
	// Digest distinguishes definitions of one swarm. Tasks are recorded with it; empty
	// means that the swarm has only one definition.
	Digest      string
	Version     string
	Description string
	Keywords    []string
	Public      bool
	Entrypoint  string
	// Interswarm lets the swarm receive mail from other swarms.
	Interswarm bool
	// Discovery lets supervisors discover other swarms in every task
	// (allow_agent_discovery), not only in tasks of admins.
	Discovery bool
	// Preempt makes an interrupt cancel the recipient's running turn; else the
	// interrupt only precedes other mail.
	Preempt bool
	// BreakpointTools names MAIL tools and actions whose calls a person answers.
	BreakpointTools []string
	// Human are the actions without code: a person answers every call. Coded are the
	// others.
	Human  []abi.Tool
	Coded  []abi.Tool
	Agents []Agent
	Limits Limits

	// toolsets are those of a definition that is or was in force, else nil.
	toolsets *toolsets
}

// Agent is one agent of a swarm.
type Agent struct {
	Name string
	// Targets are the addresses it may write to (comm_targets).
	Targets     []string
	Entrypoint  bool // enable_entrypoint
	CanComplete bool // can_complete_tasks
	Interswarm  bool // enable_interswarm
	// Expose names the gateways through which callers reach it (expose).
	Expose  []string
	Trusted bool // runs outside the sandbox
	// Actions names the actions it may call.
	Actions []string
	// Exclude names MAIL tools that the agent does not get.
	Exclude []string
	Params  json.RawMessage
	Limits  TurnLimits
}

// TurnLimits are the limits of one turn that the runtime enforces or shows to the
// agent; zero means the host's default. The executor has further limits.
type TurnLimits struct {
	Wall      time.Duration
	Fuel      uint64
	Output    int64
	HostCalls int64
	// Spend bounds what the agent's calls of models may cost in one task.
	Spend Spend
}

// Limits bound a swarm. Zero means no limit.
type Limits struct {
	// TaskMessages is the default message limit of a task.
	TaskMessages int
	TaskTimeout  time.Duration
	// Queue bounds the messages that wait in one instance.
	Queue int
	// PeerTasks bounds the running tasks of one other swarm's key.
	PeerTasks int
	// Instances bounds the number of instances.
	Instances int
	// Spend bounds what calls of models may cost in one task.
	Spend Spend
	// An agent rests for AgentRest after AgentRestAfter turns in a row that used up their
	// computing limits.
	AgentRestAfter int
	AgentRest      time.Duration
}

// Bounds of one turn's staged calls: their number, and their bytes of mail.
const (
	maxStaged      = 64
	maxStagedBytes = 4 << 20
	// maxExcess bounds the refused calls beyond these bounds that are kept, and
	// maxToolName the names of their tools, in bytes.
	maxExcess   = 16
	maxToolName = 64
	// MaxBody is the largest body of one message, in bytes.
	MaxBody = 256 << 10
	// MaxSubject is the longest subject, in bytes.
	MaxSubject = 4 << 10
	// defaultTurn is the wall time of a turn whose agent has no limit.
	defaultTurn = 10 * time.Minute
)

// agent returns the agent of that name.
func (d *Definition) agent(name string) (*Agent, bool) {
	i := slices.IndexFunc(d.Agents, func(a Agent) bool { return a.Name == name })
	if i < 0 {
		return nil, false
	}
	return &d.Agents[i], true
}

// otherAgents returns the names of all agents but one, in file order.
func (d *Definition) otherAgents(than string) []string {
	var names []string
	for _, a := range d.Agents {
		if a.Name != than {
			names = append(names, a.Name)
		}
	}
	return names
}

func (d *Definition) validate() error {
	entry, ok := d.agent(d.Entrypoint)
	if !ok {
		return fmt.Errorf("swarm %q: entrypoint %q is not one of its agents", d.Name, d.Entrypoint)
	}
	if !entry.Entrypoint {
		return fmt.Errorf("swarm %q: entrypoint %q lacks enable_entrypoint", d.Name, d.Entrypoint)
	}
	if !slices.ContainsFunc(d.Agents, func(a Agent) bool { return a.CanComplete }) {
		return fmt.Errorf("swarm %q: no agent can complete tasks", d.Name)
	}
	return nil
}
