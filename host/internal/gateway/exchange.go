package gateway

import (
	"encoding/json"
	"strings"
	"time"

	"skep/host/internal/swarm"
)

// Exchange is an accepted message and where its answer will be.
type Exchange struct {
	// Caller is who has it.
	Caller Caller
	// ID is the foreign message id, or an [OtherID]; Agent is the local agent that was asked.
	ID    string
	Agent string
	// Task is the local task, Conversation the id under which the realm continues it.
	Task         swarm.TaskKey
	Conversation string
	// Accepted is when the message was accepted, Cursor the task's event from which its
	// stream begins.
	Accepted time.Time
	Cursor   int64
	// Answered is the cursor of the answer, 0 while there is none.
	Answered int64
	// Duplicate is set when an earlier message under this ID made the exchange.
	Duplicate bool
	Note      []byte
	// Receipt is the runtime's; gateways hand it back as it is.
	Receipt *swarm.Receipt
}

// agentSeparator stands before the agent in an [OtherID], as in the key of its submission.
const agentSeparator = "\x1f"

// OtherID is the ID of the exchange of one of several agents that a message has reached. The
// first agent's, by name, has the id of the message.
func OtherID(message, agent string) string { return message + agentSeparator + agent }

// Message returns the id of the exchange's message.
func (x Exchange) Message() string {
	id, _, _ := strings.Cut(x.ID, agentSeparator)
	return id
}

// Outcome of an exchange.
type Outcome string

// The outcomes of an exchange.
const (
	// Done means that the agent answered or the task was completed.
	Done Outcome = "done"
	// NeedsInput means that the agent asks the caller, or a call waits for a person. The
	// exchange stays open.
	NeedsInput Outcome = "needs_input"
	// Failed means that the agent or the task failed.
	Failed Outcome = "failed"
	// TimedOut means that the task's time was over.
	TimedOut Outcome = "timed_out"
	// Cancelled means that the caller or an operator cancelled.
	Cancelled Outcome = "cancelled"
)

// Answer is the answer of an exchange. A failure's text has nothing internal.
type Answer struct {
	Outcome Outcome
	Subject string
	Body    string
	// From is the answering agent, empty for the system.
	From string
	At   time.Time
	// Cursor is the event that carries it.
	Cursor int64
	// Questions are what needs input.
	Questions []Question
	Parts     []PartRef
	// Tokens and Models are what the turns of the task have used of models since the exchange
	// was accepted. Streams have not got them.
	Tokens int64
	Models []string
}

// Question is what an agent asks its caller, or a call that waits for a person.
type Question struct {
	// ID is the call's, or the id of the message that asks.
	ID   string
	From string
	Text string
	// Call is set for a call that waits for a person: the result goes in with Resumes,
	// and Schema describes it, if the action has one. Without Call the reply goes in with
	// Answers.
	Call   string
	Schema json.RawMessage
}

// PartRef names a blob of the answer. Its Size is 0 before the blob was read.
type PartRef struct {
	Name string
	Type string
	Size int64
	Blob swarm.BlobID
}

// PieceKind is the kind of a piece of a stream.
type PieceKind string

// The kinds of pieces.
const (
	// Chunk is text that the asked agent emitted. Only chunks are numbered, from 0, and
	// chunk n carries the same bytes on every read.
	Chunk PieceKind = "chunk"
	// Progress is shown once, to those who read at that time, and in a stream of FollowWhole on
	// every read.
	Progress PieceKind = "progress"
	// Asked means that the exchange needs input; see Answer.Questions.
	Asked PieceKind = "asked"
	// End is the answer, and always the last.
	End PieceKind = "end"
)

// Piece is one piece of an exchange's stream.
type Piece struct {
	Kind PieceKind
	// Agent is the agent that made the piece, in a stream of several agents.
	Agent string
	// N is the number of a chunk; of other pieces, how many chunks were before it.
	N    int64
	Text string
	// Fraction is how much is done, for Progress: 0 to 1, nil if unknown.
	Fraction *float64
	// Answer is set for Asked and End.
	Answer *Answer
}
