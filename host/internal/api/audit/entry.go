package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"skep/host/internal/logline"
)

// Entry is one recorded act. Empty fields are left out.
type Entry struct {
	// Time is when it happened; zero means the time of recording.
	Time time.Time
	// Act names the act, such as "token.create".
	Act     string
	Outcome string
	// Tenant and Principal are the caller, as far as it is known.
	Tenant    string
	Principal string
	// Address is the client's address.
	Address   string
	RequestID string
	// Target is the object of the act: a route, a token, an agent.
	Target string
	Reason string
	// Cause is a word for why something was refused, and Key the key of swarm.toml that holds the
	// limit. They are for [Options.OnEntry] only: the log has the reason.
	Cause, Key string
	// Count is the number of equal acts that the entry stands for, if more than
	// one.
	Count int64
	// Message is the message that the entry is about; nil for none.
	Message *Message
	// Heads are the last entries of other hosts' logs.
	Heads []Head
}

// Message describes a message of another protocol. Its text is not in the log.
type Message struct {
	Gateway string `json:"gateway"`
	// Realm is the partner, empty for a user.
	Realm string `json:"realm,omitempty"`
	// Direction is [In] or [Out].
	Direction string `json:"direction"`
	// ID and Type are those of its protocol.
	ID   string `json:"id,omitempty"`
	Type string `json:"type,omitempty"`
	// Size is in bytes, SHA256 the hash of these bytes in hexadecimal digits.
	Size   int    `json:"size"`
	SHA256 string `json:"sha256,omitempty"`
	// Task is the local task.
	Task string `json:"task,omitempty"`
}

// Directions of a [Message].
const (
	In  = "in"
	Out = "out"
)

// truncate bounds the texts of a message.
func (m *Message) truncate() *Message {
	if m == nil {
		return nil
	}
	return &Message{
		Gateway: truncate(m.Gateway), Realm: truncate(m.Realm), Direction: m.Direction, ID: truncate(m.ID), Type: truncate(m.Type),
		Size: m.Size, SHA256: m.SHA256, Task: truncate(m.Task),
	}
}

// Outcomes of acts.
const (
	Done    = "done"
	Refused = "refused"
	Failed  = "failed"
)

// actRepair is the act of an entry about a damaged end of the log.
const actRepair = "audit.repair"

// genesis stands for the previous hash in the first line.
var genesis = strings.Repeat("0", 2*sha256.Size)

// line is an entry in the file, without its hash.
type line struct {
	Seq       int64  `json:"seq"`
	Time      string `json:"time"`
	Act       string `json:"act"`
	Outcome   string `json:"outcome"`
	Tenant    string `json:"tenant,omitempty"`
	Principal string `json:"principal,omitempty"`
	Address   string `json:"address,omitempty"`
	RequestID string `json:"request_id,omitempty"`
	Target    string `json:"target,omitempty"`
	Reason    string `json:"reason,omitempty"`
	Count     int64  `json:"count,omitempty"`

	Message *Message `json:"message,omitempty"`
	Heads   []Head   `json:"heads,omitempty"`
	Prev    string   `json:"prev"`
}

// maxField bounds each text of an entry, maxLine a line, in bytes.
const (
	maxField = 512
	maxLine  = 64 << 10
)

// truncate bounds a text. It cuts between characters and appends an ellipsis.
func truncate(s string) string {
	if len(s) <= maxField {
		return s
	}
	s = s[:maxField]
	for i := 0; i < utf8.UTFMax && len(s) > 0; i++ {
		if r, _ := utf8.DecodeLastRuneInString(s); r != utf8.RuneError {
			break
		}
		s = s[:len(s)-1]
	}
	return s + "…"
}

// timeFormat is the format of times.
const timeFormat = "2006-01-02T15:04:05.000000Z"

// chainEnd is the number and the hash of a log's last line.
type chainEnd struct {
	seq  int64
	head string
}

// truncate bounds the texts of an entry.
func (e Entry) truncate() Entry {
	for _, text := range []*string{&e.Act, &e.Outcome, &e.Tenant, &e.Principal, &e.Address, &e.RequestID, &e.Target, &e.Reason} {
		*text = truncate(*text)
	}
	e.Message, e.Heads = e.Message.truncate(), validHeads(e.Heads)
	return e
}

// next encodes an entry as the following line, with its newline, and advances the
// end.
func (c *chainEnd) next(e Entry) []byte {
	e = e.truncate()
	l := line{
		Seq: c.seq + 1, Time: e.Time.UTC().Format(timeFormat), Act: e.Act, Outcome: e.Outcome,
		Tenant: e.Tenant, Principal: e.Principal, Address: e.Address,
		RequestID: e.RequestID, Target: e.Target, Reason: e.Reason, Message: e.Message, Heads: e.Heads, Prev: c.head,
	}
	if e.Count > 1 {
		l.Count = e.Count
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	// A struct of strings, numbers and valid times always encodes.
	_ = enc.Encode(l)
	body := logline.Escape(bytes.TrimSuffix(b.Bytes(), []byte{'\n'}))
	hash := digest(c.head, body)
	c.seq, c.head = l.Seq, hash
	return append(append(body[:len(body)-1:len(body)-1], hashField+hash+`"}`...), '\n')
}

// hashField separates a line's body from its hash.
const hashField = `,"hash":"`

func digest(prev string, body []byte) string {
	h := sha256.New()
	h.Write([]byte(prev))
	h.Write(body)
	return hex.EncodeToString(h.Sum(nil))
}

// parse reads one line without its newline and verifies its hash.
func parse(text []byte) (l line, hash string, err error) {
	tail := len(hashField) + 2*sha256.Size + len(`"}`)
	if len(text) < tail {
		return l, "", errors.New("it is no line of an audit log")
	}
	cut := len(text) - tail
	end := string(text[cut:])
	hash = strings.TrimSuffix(strings.TrimPrefix(end, hashField), `"}`)
	if end != hashField+hash+`"}` || len(hash) != 2*sha256.Size {
		return l, "", errors.New("it does not end with its hash")
	}
	body := append(bytes.Clone(text[:cut]), '}')
	if err := json.Unmarshal(body, &l); err != nil {
		return l, "", fmt.Errorf("it is not JSON: %w", err)
	}
	if digest(l.Prev, body) != hash {
		return l, "", errors.New("it is not as it was written: its hash is another")
	}
	return l, hash, nil
}

// entry converts a line to an [Entry].
func (l line) entry() Entry {
	at, _ := time.Parse(timeFormat, l.Time)
	return Entry{
		Time: at, Act: l.Act, Outcome: l.Outcome, Tenant: l.Tenant, Principal: l.Principal, Address: l.Address,
		RequestID: l.RequestID, Target: l.Target, Reason: l.Reason, Count: l.Count, Message: l.Message, Heads: l.Heads,
	}
}
