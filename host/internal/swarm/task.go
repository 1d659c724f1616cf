package swarm

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"skep/spec/mail"
)

// State is the state of a task.
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

// Ended reports whether no turn runs any more until the next post.
func (s State) Ended() bool { return s != StateRunning && s != StatePaused }

// Task is the record of a task in the store: everything except the lists that grow
// without bound. Where the name of a member in JSON is not the name of its field, the
// name in JSON is older and stays: stored tasks have it.
type Task struct {
	Key          TaskKey  `json:"key"`
	Owner        string   `json:"owner"`
	Contributors []string `json:"contributors"`
	// Unconfirmed are the Contributors that only another contributor has named.
	Unconfirmed []string `json:"hearsay,omitempty"`
	// Caller is the swarm that handed the task in, and Hops the number of swarms
	// between this one and the owner's; empty for a task of this swarm.
	Caller string `json:"caller,omitempty"`
	Hops   int    `json:"hops,omitempty"`
	// Door is the gateway's through which the task, or a user's post for it, came; empty
	// for other doors.
	Door string `json:"door,omitempty"`
	// Brief is set for a task that ends when it has nothing to do and owes no answer.
	Brief bool `json:"brief,omitempty"`
	// Peers are the other swarms that take part in the task.
	Peers      []TaskPeer `json:"peers,omitempty"`
	Entrypoint string     `json:"entrypoint"`
	// Definition is the digest of the task's definition until it ends; empty for none.
	Definition string    `json:"definition,omitempty"`
	State      State     `json:"state"`
	Created    time.Time `json:"created"`
	Updated    time.Time `json:"updated"`
	// Deadline ends a running task; zero means none.
	Deadline time.Time `json:"deadline,omitzero"`
	// Timeout is the time from the last post to the Deadline.
	Timeout time.Duration `json:"timeout,omitempty"`
	// MaxSteps is the message limit since the last post, 0 for none.
	MaxSteps int `json:"max_steps,omitempty"`
	// Steps counts turns since the task was created or reopened.
	Steps int `json:"steps"`
	// Grace is set while the entrypoint has its one turn after the limit.
	Grace bool `json:"grace,omitempty"`
	// Rows is the highest row number, Cursor the highest event, OutboxMessages the
	// highest number of an outbox message.
	Rows           int64 `json:"rows"`
	Cursor         int64 `json:"cursor"`
	OutboxMessages int64 `json:"letters,omitempty"`
	// Mutations counts the mutations of the task. A mutation whose outcome the store did
	// not report is in the store if the count has reached it.
	Mutations int64 `json:"mutations,omitempty"`
	// Nonce makes turn ids unguessable and the same on every attempt.
	Nonce []byte `json:"nonce"`
	// History counts the entries of each agent's history.
	History map[string]int64 `json:"history,omitempty"`
	// Requests are agents' requests that have no response yet.
	Requests []OpenRequest `json:"requests,omitempty"`
	Usage    Usage         `json:"usage"`
	// Spent is the part of Usage that each agent's model calls cost.
	Spent map[string]Spend `json:"spent,omitempty"`
	// Metered is the part of Usage of turns that are not over, by their rows.
	Metered map[int64]MeteredTurn `json:"metered,omitempty"`
	// Breakpoints are the suspended turns.
	Breakpoints []Breakpoint `json:"breakpoints,omitempty"`
	// PeerCalls are the calls at other swarms that wait for people.
	PeerCalls []PeerCall `json:"peer_asks,omitempty"`
	// RefusedWrappers counts the refused wrappers in the log.
	RefusedWrappers int `json:"turned_away,omitempty"`
	// RemoteAnswers are answers to posts that still wait for others.
	RemoteAnswers []RemoteAnswer `json:"gathered,omitempty"`
	// Trace is nil for a task of a host without traces.
	Trace *TaskTrace `json:"trace,omitempty"`
	// Finish is the event that last ended or paused the task.
	Finish Finish `json:"finish,omitzero"`
}

// OpenRequest is an unanswered request of one agent to another. One of them may be
// another swarm's; its address then includes the swarm.
type OpenRequest struct {
	ID   string `json:"id"`
	From string `json:"from"`
	To   string `json:"to"`
	// Post is the number of the post that made the request in the agent's name, 0 for a
	// request of the agent's own.
	Post int64 `json:"post,omitempty"`
	// Taken is when another swarm took it; zero before, and for one of a local agent's.
	Taken time.Time `json:"taken,omitzero"`
	// Exchange is set for a request that came through a gateway.
	Exchange *Exchange `json:"exchange,omitempty"`
	// Answers is the key of the exchange in which a local agent asks its caller back, and
	// Cursor the event with the question; empty for other requests.
	Answers string `json:"answers,omitempty"`
	Cursor  int64  `json:"cursor,omitempty"`
}

// Finish points at the event that ended or paused a task.
type Finish struct {
	Cursor  int64  `json:"cursor"`
	Subject string `json:"subject"`
}

// clone returns a copy that shares nothing a mutation may change.
func (t Task) clone() Task {
	t.Contributors = slices.Clone(t.Contributors)
	t.Unconfirmed = slices.Clone(t.Unconfirmed)
	t.History = maps.Clone(t.History)
	t.Requests = slices.Clone(t.Requests)
	t.Peers = slices.Clone(t.Peers)
	t.Breakpoints = slices.Clone(t.Breakpoints)
	t.PeerCalls = slices.Clone(t.PeerCalls)
	t.RemoteAnswers = slices.Clone(t.RemoteAnswers)
	t.Metered = maps.Clone(t.Metered)
	t.Spent = maps.Clone(t.Spent)
	return t
}

// Origin is where a message came from.
type Origin struct {
	// Door is "rest", "agent", "system", "peer", or a gateway's.
	Door string `json:"door"`
	// Realm and Principal name the caller of the door, empty for agents.
	Realm     string `json:"realm,omitempty"`
	Principal string `json:"principal,omitempty"`
}

// Row is one message for one recipient, waiting in the queue of a task. Its names in
// JSON stay, like those in [Task].
type Row struct {
	// N numbers the rows of a task from 1; it is also the turn's number.
	N       int64        `json:"n"`
	Agent   string       `json:"agent"`
	Tier    int          `json:"tier"`
	Message mail.Message `json:"message"`
	Origin  Origin       `json:"origin"`
	// SharedPost marks a row of a post with several recipients, which has a number of
	// its own.
	SharedPost bool `json:"beside,omitempty"`
	// Stash keeps a row of an ended or paused task out of the queue.
	Stash bool `json:"-"`
	// Late marks a row that another swarm sent after the task had ended: its turn does
	// not count towards the message limit.
	Late bool `json:"late,omitempty"`
	// MayHaveRecord means that the store must be asked for the record of an earlier
	// attempt: it is set for every loaded row. Suspended means that the turn waits or
	// waited for people.
	MayHaveRecord bool `json:"-"`
	Suspended     bool `json:"-"`
	// QueuedAt is when the row came to stand in the queue of this process, zero for one
	// that was read from the store.
	QueuedAt time.Time `json:"-"`
	// Hops counts swarms passed.
	Hops  int   `json:"hops,omitempty"`
	Trace Trace `json:"trace,omitzero"`
	// NotBefore and Expires bound when the row may be delivered.
	NotBefore time.Time `json:"not_before,omitzero"`
	Expires   time.Time `json:"expires,omitzero"`
	// Cause is the message or turn that made this row, empty for a system message
	// without a causing turn.
	Cause string `json:"cause,omitempty"`
}

// Event is one entry of a task's log. Seq is the cursor from which readers resume.
type Event struct {
	Seq         int64           `json:"-"`
	Name        string          `json:"event"`
	Time        time.Time       `json:"timestamp"`
	Description string          `json:"description,omitempty"`
	Extra       json.RawMessage `json:"extra_data,omitempty"`
}
