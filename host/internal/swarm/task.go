package swarm

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"skep/spec/mail"
)

// State is where a task stands.
type State string

// The states of a task. All but StateRunning are reopened by a new post.
const (
	StateRunning   State = "running"
	StatePaused    State = "paused"
	StateCompleted State = "completed"
	StateFailed    State = "failed"
	StateTimedOut  State = "timed_out"
	StateCancelled State = "cancelled"
)

// Ended reports whether no turn runs any more until somebody posts again.
func (s State) Ended() bool { return s != StateRunning && s != StatePaused }

// Task is the record of a task as the store keeps it: everything that is not
// a list that grows without bound.
type Task struct {
	Key          TaskKey  `json:"key"`
	Owner        string   `json:"owner"`
	Contributors []string `json:"contributors"`
	// Hearsay are the Contributors that only another contributor has named.
	Hearsay []string `json:"hearsay,omitempty"`
	// Caller is the swarm that has handed the task in, and Hops the number of
	// swarms between this one and its owner's; empty for a task of one's own.
	Caller string `json:"caller,omitempty"`
	Hops   int    `json:"hops,omitempty"`
	// Peers are the other swarms that have to do with the task.
	Peers      []TaskPeer `json:"peers,omitempty"`
	Entrypoint string     `json:"entrypoint"`
	// Definition is the digest of the definition that the task goes by until it
	// ends; empty for one that has none.
	Definition string    `json:"definition,omitempty"`
	State      State     `json:"state"`
	Created    time.Time `json:"created"`
	Updated    time.Time `json:"updated"`
	// Deadline ends a running task; zero means none.
	Deadline time.Time `json:"deadline,omitzero"`
	// Timeout is what a reopening post sets Deadline from.
	Timeout time.Duration `json:"timeout,omitempty"`
	// MaxSteps is the message limit of this run of the task, 0 for none.
	MaxSteps int `json:"max_steps,omitempty"`
	// Steps counts turns since the task was created or reopened.
	Steps int `json:"steps"`
	// Grace is set while the entrypoint has its one turn after the limit.
	Grace bool `json:"grace,omitempty"`
	// Rows is the highest row number given, Cursor the highest event, Letters the
	// highest number of a letter.
	Rows    int64 `json:"rows"`
	Cursor  int64 `json:"cursor"`
	Letters int64 `json:"letters,omitempty"`
	// Nonce makes turn ids unguessable and the same on every attempt.
	Nonce []byte `json:"nonce"`
	// History counts the entries of each agent's history.
	History map[string]int64 `json:"history,omitempty"`
	// Requests are agents' requests that have no response yet.
	Requests []OpenRequest `json:"requests,omitempty"`
	Usage    Usage         `json:"usage"`
	// Spent is what Usage has of each agent's calls of models.
	Spent map[string]Spend `json:"spent,omitempty"`
	// Metered is what Usage has of turns that are not over, by their rows.
	Metered map[int64]Usage `json:"metered,omitempty"`
	// Breakpoints are the suspended turns.
	Breakpoints []Breakpoint `json:"breakpoints,omitempty"`
	// PeerAsks are the calls at other swarms that wait for people.
	PeerAsks []PeerAsk `json:"peer_asks,omitempty"`
	// TurnedAway counts what the log has of refused wrappers.
	TurnedAway int `json:"turned_away,omitempty"`
	// Gathered are the answers to posts that still wait for others.
	Gathered []Gathered `json:"gathered,omitempty"`
	// Finish is the event that last ended or paused the task.
	Finish Finish `json:"finish,omitzero"`
}

// OpenRequest is a request that one agent made of another. One of them may be
// another swarm's, and has its swarm's name.
type OpenRequest struct {
	ID   string `json:"id"`
	From string `json:"from"`
	To   string `json:"to"`
	// Post is the number of the post that asked, in the agent's name; 0 for a
	// request of the agent's own.
	Post int64 `json:"post,omitempty"`
}

// Finish points at the event that ended or paused a task.
type Finish struct {
	Cursor  int64  `json:"cursor"`
	Subject string `json:"subject"`
}

// clone returns a copy that shares nothing a step may change.
func (t Task) clone() Task {
	t.Contributors = slices.Clone(t.Contributors)
	t.Hearsay = slices.Clone(t.Hearsay)
	t.History = maps.Clone(t.History)
	t.Requests = slices.Clone(t.Requests)
	t.Peers = slices.Clone(t.Peers)
	t.Breakpoints = slices.Clone(t.Breakpoints)
	t.PeerAsks = slices.Clone(t.PeerAsks)
	t.Gathered = slices.Clone(t.Gathered)
	t.Metered = maps.Clone(t.Metered)
	t.Spent = maps.Clone(t.Spent)
	return t
}

// Origin is where a message came from.
type Origin struct {
	// Door is "rest", "agent", "system" or "peer".
	Door string `json:"door"`
	// Realm and Principal name who handed it in, empty for agents.
	Realm     string `json:"realm,omitempty"`
	Principal string `json:"principal,omitempty"`
}

// Row is one message for one recipient, waiting in the queue of a task.
type Row struct {
	// N numbers the rows of a task from 1; it is also the turn's number.
	N       int64        `json:"n"`
	Agent   string       `json:"agent"`
	Tier    int          `json:"tier"`
	Message mail.Message `json:"message"`
	Origin  Origin       `json:"origin"`
	// Beside says that its post has a number of its own, because it has several
	// recipients.
	Beside bool `json:"beside,omitempty"`
	// Stash keeps a row of an ended or paused task out of the queue.
	Stash bool `json:"-"`
	// Late says that another swarm sent it when the task had ended: its turn does
	// not count towards the message limit.
	Late bool `json:"late,omitempty"`
	// Recorded says that there may be a record of an earlier attempt, and
	// Suspended that its turn waits for people, or did.
	Recorded  bool `json:"-"`
	Suspended bool `json:"-"`
	// Hops counts swarms passed; Trace is a W3C traceparent.
	Hops  int    `json:"hops,omitempty"`
	Trace string `json:"trace,omitempty"`
	// NotBefore and Expires bound when the row may be delivered.
	NotBefore time.Time `json:"not_before,omitzero"`
	Expires   time.Time `json:"expires,omitzero"`
	// Cause is the message or turn that made this row, empty for a system
	// message that no turn caused.
	Cause string `json:"cause,omitempty"`
}

// Event is one entry of a task's log. Seq is the cursor that readers resume
// from.
type Event struct {
	Seq         int64           `json:"-"`
	Name        string          `json:"event"`
	Time        time.Time       `json:"timestamp"`
	Description string          `json:"description,omitempty"`
	Extra       json.RawMessage `json:"extra_data,omitempty"`
}
