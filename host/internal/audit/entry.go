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
)

// Entry is one act as it is recorded. What is empty is left out.
type Entry struct {
	// Time is when it happened; zero means when it is recorded.
	Time time.Time
	// Act names what was done, as in "token.create".
	Act     string
	Outcome string
	// Tenant and Principal are who did it, as far as that is known.
	Tenant    string
	Principal string
	// Address is where the request came from.
	Address   string
	RequestID string
	// Target is what it was done to: a route, a token, an agent.
	Target string
	Reason string
	// Count is how many alike the entry stands for, if more than one.
	Count int64
}

// Outcomes of acts.
const (
	Done    = "done"
	Refused = "refused"
	Failed  = "failed"
)

// repair is the act of a log that did not end as it should.
const repair = "audit.repair"

// genesis is what stands for the hash of the line before the first.
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
	Prev      string `json:"prev"`
}

// maxField bounds each text of an entry, in bytes; maxLine what comes of it.
const (
	maxField = 512
	maxLine  = 64 << 10
)

// clip bounds a text. It cuts between characters and says that it did.
func clip(s string) string {
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

// form is how times are written.
const form = "2006-01-02T15:04:05.000000Z"

// chain is the end of a log: the number and the hash of its last line.
type chain struct {
	seq  int64
	head string
}

// next encodes an entry as the line that follows, with its newline, and moves
// the end behind it.
func (c *chain) next(e Entry) []byte {
	l := line{
		Seq: c.seq + 1, Time: e.Time.UTC().Format(form), Act: clip(e.Act), Outcome: clip(e.Outcome),
		Tenant: clip(e.Tenant), Principal: clip(e.Principal), Address: clip(e.Address),
		RequestID: clip(e.RequestID), Target: clip(e.Target), Reason: clip(e.Reason), Prev: c.head,
	}
	if e.Count > 1 {
		l.Count = e.Count
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	// A struct of strings and numbers always encodes.
	_ = enc.Encode(l)
	body := bytes.TrimSuffix(b.Bytes(), []byte{'\n'})
	hash := digest(c.head, body)
	c.seq, c.head = l.Seq, hash
	return append(append(body[:len(body)-1:len(body)-1], hashField+hash+`"}`...), '\n')
}

// hashField stands between a line's body and its hash.
const hashField = `,"hash":"`

func digest(prev string, body []byte) string {
	h := sha256.New()
	h.Write([]byte(prev))
	h.Write(body)
	return hex.EncodeToString(h.Sum(nil))
}

// parse reads one line without its newline. The hash is that of the line; it
// returns an error when the line is not as it was written.
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

// entry gives a line its public form.
func (l line) entry() Entry {
	at, _ := time.Parse(form, l.Time)
	return Entry{
		Time: at, Act: l.Act, Outcome: l.Outcome, Tenant: l.Tenant, Principal: l.Principal, Address: l.Address,
		RequestID: l.RequestID, Target: l.Target, Reason: l.Reason, Count: l.Count,
	}
}
