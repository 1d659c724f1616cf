package envelope

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"skep/host/internal/gateway/wire"
)

// Limits of the parts of an envelope.
const (
	maxAddress  = 512 // bytes of an id of an agent
	maxTo       = 256
	maxContext  = 64
	maxStream   = 256     // bytes
	maxToken    = 8 << 10 // bytes
	maxSig      = 4 << 10 // bytes
	maxNameType = 256     // bytes of a media type
)

// Reader reads messages.
type Reader struct {
	// Strict refuses what the document leaves open.
	Strict bool
	// MaxBytes bounds a message, MaxDepth the levels of its JSON.
	MaxBytes, MaxDepth int
}

// properties are the properties of an envelope, required those that it must have (U-001).
var (
	required   = []string{"id", "ts", "from", "to", "intent", "body", "sig"}
	properties = append(slices.Clone(required), "reply_to", "context", "stream_id", "delta_window", "cap_token", "ext")
)

// Read reads an envelope. Its errors are [Fault]s; what could be read of it comes with
// them.
func (r Reader) Read(text []byte) (Signed, error) {
	s := Signed{reader: r, text: text}
	if len(text) > r.MaxBytes {
		return s, Faultf(TooLarge, "the envelope has %d bytes, at most %d", len(text), r.MaxBytes)
	}
	var err error
	if s.canonical, err = wire.Canonical(text, wire.RFC8785, r.MaxDepth, sigName); err != nil {
		return s, r.faultOf(err)
	}
	wire.Yield(len(text))
	s.sum = sha256.Sum256(s.canonical)
	wire.Yield(len(text))
	m := readMembers(text, "")
	s.read(&m, r.Strict)
	m.require(required...)
	m.refuseOthers(properties...)
	if m.err != nil {
		return s, m.err
	}
	return s, s.Body.check()
}

func (r Reader) faultOf(err error) error {
	if errors.Is(err, wire.ErrDeep) {
		return malformed("the envelope is nested deeper than max_depth of [gateways.uamp]")
	}
	return malformed("the envelope %v", err)
}

// read reads the properties. The id comes first, so that a refusal can name it.
func (e *Envelope) read(m *members, strict bool) {
	e.ID = m.id("id", strict)
	e.From = m.address("from")
	e.Intent = Intent(m.text("intent", "", 16))
	if _, has := m.all["intent"]; has && !slices.Contains(Intents(), e.Intent) {
		m.fail("intent", "is none of the ten intents")
	}
	e.ReplyTo = m.id("reply_to", strict)
	e.Time = m.time("ts", strict)
	items := m.list("to", maxTo)
	if _, has := m.all["to"]; has && len(items) == 0 {
		m.fail("to", "is empty")
	}
	for _, raw := range items {
		one := members{of: "to", all: map[string]json.RawMessage{"": raw}, err: m.err}
		e.To = append(e.To, one.address(""))
		m.err = one.err
	}
	for _, raw := range m.list("context", maxContext) {
		e.Context = append(e.Context, m.reference(raw, strict))
	}
	e.Stream = m.text("stream_id", "", maxStream)
	if _, has := m.all["stream_id"]; has && !isPrintable(e.Stream) {
		m.fail("stream_id", "is empty or has control characters")
	}
	if e.Stream == "." || e.Stream == ".." {
		m.fail("stream_id", "is . or .., which a path does not have as a name")
	}
	e.Window = m.integer("delta_window", 1, DefaultWindow)
	if raw, has := m.all["body"]; has {
		e.Body = m.body(raw)
	}
	e.CapToken = m.text("cap_token", "", maxToken)
	e.Sig = m.text(sigName, "", maxSig)
	e.Ext = m.object("ext")
	if hops, has := e.Ext[hopsName]; has && !isHops(hops) {
		m.fail("ext."+hopsName, "is not the number of hops, an integer from 0 to 2147483647")
	}
}

// id reads the id of an envelope.
func (m *members) id(name string, strict bool) ID {
	text := m.text(name, "", len(idPrefix)+maxPlainID)
	if text == "" && m.err != nil {
		return ""
	}
	id, ok := parseID(text, strict)
	if _, has := m.all[name]; has && !ok {
		m.fail(name, "is not urn:uuid: and a UUID")
		return ""
	}
	return id
}

// address reads the id of an agent, a URI.
func (m *members) address(name string) string {
	text := m.text(name, "", maxAddress)
	if _, has := m.all[name]; has && !isURI(text) {
		m.fail(name, "is not a URI")
		return ""
	}
	return text
}

func isURI(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Scheme != "" && (u.Opaque != "" || u.Host != "") && !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}

// hopsName is the member of ext with the hosts on the way.
const hopsName = "x-hops"

// isHops reports whether a value is a number of hops, which may be written as a string.
func isHops(value []byte) bool {
	_, err := strconv.ParseUint(strings.Trim(string(value), `"`), 10, 31)
	return err == nil
}

// isPrintable reports whether a text has characters, none of them for control.
func isPrintable(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// timePattern refuses what package time takes besides: hours of one digit, a comma.
var timePattern = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$`)

// time reads a time of RFC 3339, whose T and Z may be small letters
// (https://www.rfc-editor.org/rfc/rfc3339#section-5.6); strict takes UTC alone, as the document
// prints it (U-003).
func (m *members) time(name string, strict bool) time.Time {
	text := m.text(name, "", 64)
	if _, has := m.all[name]; !has {
		return time.Time{}
	}
	if !strict {
		text = strings.ToUpper(text)
	}
	at, err := time.Parse(time.RFC3339, text)
	year := at.UTC().Year()
	if err != nil || !timePattern.MatchString(text) || year < 1 || year > 9999 || strict && !strings.HasSuffix(text, "Z") {
		m.fail(name, "is not a time in UTC as 2025-07-10T13:37:05Z")
	}
	return at
}

var hashPattern = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// reference reads an item of context (U-008).
func (m *members) reference(raw []byte, strict bool) Reference {
	one := readMembers(raw, "context")
	r := Reference{one.id("id", strict), one.text("hash", "", 80)}
	one.require("id", "hash")
	if !hashPattern.MatchString(r.Hash) {
		one.fail("hash", "is not sha256: and 64 hexadecimal digits")
	}
	if m.err == nil {
		m.err = one.err
	}
	return r
}

// body reads the body (U-011). Its length is bounded by the message's.
func (m *members) body(raw []byte) Body {
	one := readMembers(raw, "body")
	b := Body{
		Type: one.text("type", "", maxNameType), Content: one.text("content", "", maxInteger),
		Encoding: one.text("encoding", encodingUTF8, 32), Compression: one.text("compression", compressionNone, 32),
	}
	one.require("type", "content")
	if m.err == nil {
		m.err = one.err
	}
	return b
}
