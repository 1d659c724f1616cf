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

// wireEnvelope is an envelope as it is written.
type wireEnvelope struct {
	ID       string                     `json:"id"`
	Time     string                     `json:"ts"`
	From     string                     `json:"from"`
	To       []string                   `json:"to"`
	Intent   Intent                     `json:"intent"`
	ReplyTo  string                     `json:"reply_to,omitempty"`
	Context  []wireReference            `json:"context,omitempty"`
	Stream   string                     `json:"stream_id,omitempty"`
	Window   int                        `json:"delta_window,omitempty"`
	Body     wireBody                   `json:"body"`
	CapToken string                     `json:"cap_token,omitempty"`
	Sig      string                     `json:"sig,omitempty"`
	Ext      map[string]json.RawMessage `json:"ext,omitempty"`
}

type wireReference struct {
	ID   string `json:"id"`
	Hash string `json:"hash"`
}

type wireBody struct {
	Type        string `json:"type"`
	Content     string `json:"content"`
	Encoding    string `json:"encoding,omitempty"`
	Compression string `json:"compression,omitempty"`
}

// MarshalJSON writes an envelope so that both canonical forms of it are the same: ids as
// URNs (D-U1), times in UTC, defaults left out.
func (e Envelope) MarshalJSON() ([]byte, error) {
	w := wireEnvelope{
		ID: e.ID.urn(), Time: e.Time.UTC().Format(wireTime), From: e.From, To: e.To, Intent: e.Intent, ReplyTo: e.ReplyTo.urn(),
		Stream: e.Stream, CapToken: e.CapToken, Sig: e.Sig, Ext: e.Ext, Body: wireBody{e.Body.Type, e.Body.Content, e.Body.Encoding, e.Body.Compression},
	}
	if e.Window != DefaultWindow {
		w.Window = e.Window
	}
	if w.Body.Encoding == encodingUTF8 {
		w.Body.Encoding = ""
	}
	if w.Body.Compression == compressionNone {
		w.Body.Compression = ""
	}
	for _, r := range e.Context {
		w.Context = append(w.Context, wireReference{r.ID.urn(), r.Hash})
	}
	return json.Marshal(w)
}

// Recipients are the ids in to, each once.
func (e Envelope) Recipients() (list []string) {
	for _, id := range e.To {
		if !slices.Contains(list, id) {
			list = append(list, id)
		}
	}
	return list
}
