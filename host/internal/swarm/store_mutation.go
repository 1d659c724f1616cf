package swarm

import (
	"encoding/json"
	"time"

	"skep/abi"
)

// Mutation is one atomic change of one task.
type Mutation struct {
	// Task replaces the task's record; Task.Key names the task.
	Task Task
	// Consume deletes rows by number.
	Consume []int64
	// Insert adds rows.
	Insert []Row
	// Stash flags, and Unstash unflags, every row of the task that the mutation
	// does not consume or insert. At most one of them is set.
	Stash, Unstash bool
	Events         []Event
	History        []AgentEntry
	States         []AgentState
	Answers        []SubmissionAnswer
	// Submissions are recorded by Accept with its own, or none of them is.
	Submissions []Submission
	// Outbox messages are added to the task's outbox, or replace messages with
	// their numbers. Delivered are the numbers of messages that leave it; they need
	// not exist.
	Outbox    []OutboxMessage
	Delivered []int64
	// Record is what is not journaled yet of the turn that makes this mutation.
	Record *Record
	KV     []KVWrite
	Blobs  []Blob
	// Admission bounds what the tenant has with it, nil for no bounds. Only Accept heeds it.
	Admission *Admission `json:"-"`
	// Usage is what the mutation adds to the usage of the task's tenant in the minute of
	// Task.Updated.
	Usage []UsageCount
	// Encoded, if set, is what MarkEncoded calls.
	Encoded func() `json:"-"`
}

// MarkEncoded is called by the store, on the caller's goroutine, when the mutation is encoded
// and only waits to be written, and before it waits for anything else. It may be called again.
func (m Mutation) MarkEncoded() {
	if m.Encoded != nil {
		m.Encoded()
	}
}

// AgentEntry is a history entry of one agent.
type AgentEntry struct {
	Agent string
	Entry abi.HistoryEntry
}

// AgentState is the state of one agent in one task; nil clears it.
type AgentState struct {
	Agent string
	State json.RawMessage
}

// SubmissionAnswer records the event that answers a submission. A held one then expires
// its Keep after the mutation.
type SubmissionAnswer struct {
	Door, Key string
	Cursor    int64
}

// Submission is one accepted post, findable by its key until it expires.
type Submission struct {
	Instance InstanceKey
	Door     string
	Key      string
	// Digest distinguishes a repeat from another body under the same key.
	Digest  []byte
	Task    string
	Row     int64
	Cursor  int64 // of the post's own new_message event
	Expires time.Time
	// Answer is the cursor of the event that answers it, 0 before.
	Answer int64

	// Keep is how long a held submission is kept after its answer. It is zero for one
	// that is not held: the report of a pause answers it, too.
	Keep time.Duration
	// Accepted is when a gateway's submission was accepted, zero for those of other
	// doors. Agent is the asked agent, Note what the gateway keeps with it.
	Accepted time.Time
	Agent    string
	Note     []byte
}

// RunningTask is a running task of an earlier host, and the number of rows in its
// queue that are not stashed.
type RunningTask struct {
	TaskKey
	Waiting int
}

// Snapshot is everything a host needs to run a task.
type Snapshot struct {
	Task Task
	Rows []Row
	// Posts are the submissions of the task that have no answer, oldest first. A
	// mutation adds the submission it is accepted with and removes the submissions it
	// answers. A later post that reuses an expired key removes the earlier one.
	Posts  []PendingPost
	States map[string]json.RawMessage
	// Outbox are the messages that are not dead, in the order of N.
	Outbox []OutboxMessage
}
