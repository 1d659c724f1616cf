package envelope

import (
	"encoding/json"
	"slices"
	"time"
)

// MediaType is the media type of an envelope (U-015).
const MediaType = "application/uamp+json"

// Intent is what an envelope wants.
type Intent string

// The intents (U-006).
const (
	Ask       Intent = "ask"
	Inform    Intent = "inform"
	Propose   Intent = "propose"
	Confirm   Intent = "confirm"
	Deny      Intent = "deny"
	Progress  Intent = "progress"
	Cancel    Intent = "cancel"
	Subscribe Intent = "subscribe"
	Notify    Intent = "notify"
	Error     Intent = "error"
)

// Intents are all intents, in the order of the document.
func Intents() []Intent {
	return []Intent{Ask, Inform, Propose, Confirm, Deny, Progress, Cancel, Subscribe, Notify, Error}
}

// DefaultWindow is the delta_window of an envelope without one.
const DefaultWindow = 64

// Envelope is one message.
type Envelope struct {
	ID      ID
	Time    time.Time
	From    string
	To      []string
	Intent  Intent
	ReplyTo ID // empty for none
	Context []Reference
	// Stream is the stream_id, empty for none. Window is at least 1.
	Stream   string
	Window   int
	Body     Body
	CapToken string
	Sig      string
	Ext      map[string]json.RawMessage
}

// Reference cites an earlier envelope by the hash that its signature covers.
type Reference struct {
	ID   ID
	Hash string // "sha256:" and 64 digits
}

// Body is the content of an envelope.
type Body struct {
	Type, Content         string
	Encoding, Compression string
}

// wireTime is how times are written.
const wireTime = "2006-01-02T15:04:05.999Z"

// Recipients are the ids in to, each once.
func (e Envelope) Recipients() (list []string) {
	for _, id := range e.To {
		if !slices.Contains(list, id) {
			list = append(list, id)
		}
	}
	return list
}
