package mail

import "encoding/json"

// Interswarm is the wrapper in which a payload travels between swarms (R-032 to
// On the wire:
//
//	{"message_id":…,"source_swarm":…,"target_swarm":…,"timestamp":…,"msg_type":…,
//	 "task_owner":…,"task_contributors":[…],"payload":{…},"auth_token":…,"metadata":{…}}
//
// auth_token and metadata may be missing when read and are always written, since
// there are peers that insist on them.
type Interswarm struct {
	// MessageID is any non-empty string; by custom the UUID of the wrapped message.
	MessageID string
	// SourceSwarm and TargetSwarm are non-empty.
	SourceSwarm string
	TargetSwarm string
	// Timestamp is an RFC 3339 date-time; see [FormatTime].
	Timestamp string
	// Type is any but [BroadcastComplete].
	Type Type
	// Payload is the wrapped message's payload, without its envelope.
	Payload Payload
	// TaskOwner and TaskContributors are owner strings as their writer spelled
	// them; the wrapper's shape does not bind them to that form. See [ParseOwner].
	TaskOwner        string
	TaskContributors []string
	// AuthToken is optional.
	AuthToken string
	// Metadata is optional: one JSON object without insignificant whitespace. The
	// empty object reads as nil.
	Metadata json.RawMessage
}

// Indexes of a wrapper's fields in its shape.
const (
	wrapMessageID = iota
	wrapSource
	wrapTarget
	wrapTimestamp
	wrapType
	wrapOwner
	wrapContributors
	wrapPayload
	wrapAuthToken
	wrapMetadata
)

var interswarmShape = &shape{required: 8, keys: []string{
	"message_id", "source_swarm", "target_swarm", "timestamp", "msg_type",
	"task_owner", "task_contributors", "payload", "auth_token", "metadata",
}}
