package mail

import "unicode/utf8"

// Limits bound what a parser takes. A zero field means its default.
type Limits struct {
	// Bytes bounds the length of the input; default [DefaultBytes].
	Bytes int
	// Depth bounds the nesting of objects and arrays, the outermost being 1;
	// default [DefaultDepth]. A routing_info may use two levels less.
	Depth int
	// Recipients bounds the entries of each list: recipients, recipient_swarms and
	// task_contributors; default [DefaultRecipients].
	Recipients int
}

// Defaults of [Limits].
const (
	DefaultBytes      = 4 << 20
	DefaultDepth      = 64
	DefaultRecipients = 1024
)

// deepest is where any depth limit ends, since nesting costs stack.
const deepest = 10_000

func (l Limits) withDefaults() Limits {
	if l.Bytes == 0 {
		l.Bytes = DefaultBytes
	}
	if l.Depth == 0 {
		l.Depth = DefaultDepth
	}
	if l.Recipients == 0 {
		l.Recipients = DefaultRecipients
	}
	l.Depth = min(l.Depth, deepest)
	return l
}

// ParseOptions say where a parser may be lenient. The zero value is strict and
// has the default limits.
type ParseOptions struct {
	// Limits bound the input.
	Limits Limits
	// NullsAbsent reads an optional field whose value is null as absent. Peers send
	// such nulls; required fields must still have a value.
	NullsAbsent bool
	// UnknownKeys ignores keys that MAIL does not have, which the newer versions of
	// a peer may send. A key that differs from a known one in letter case only, or
	// that occurs twice, is still refused.
	UnknownKeys bool
	// LooseTimes takes a timestamp with a space between date and time, and one
	// without a zone, which is in UTC, as the reference does. What is read has the
	// 'T' and the zone that all readers take.
	LooseTimes bool
}

// ParseMessage reads one message strictly: one JSON value that the message schema
// takes, in valid UTF-8, without duplicate keys, within the default limits (R-002,
// The error is a *[FieldError]. The result shares no memory with
// raw.
func ParseMessage(raw []byte) (Message, error) { return ParseOptions{}.Message(raw) }

// ParseInterswarm reads one wrapper strictly; see [ParseMessage].
func ParseInterswarm(raw []byte) (Interswarm, error) { return ParseOptions{}.Interswarm(raw) }

// Message is [ParseMessage] with options.
func (o ParseOptions) Message(raw []byte) (Message, error) {
	m, s, err := o.leadingMessage(raw)
	if err == nil {
		err = s.end()
	}
	if err != nil {
		return Message{}, err
	}
	return m, nil
}

// LeadingMessage reads the message with which raw begins, and does not look at what follows.
func (o ParseOptions) LeadingMessage(raw []byte) (Message, error) {
	m, _, err := o.leadingMessage(raw)
	if err != nil {
		return Message{}, err
	}
	return m, nil
}

func (o ParseOptions) leadingMessage(raw []byte) (m Message, s *scanner, err error) {
	if s, err = o.scanner(raw); err == nil {
		err = s.message(&m)
	}
	if err == nil {
		err = m.check()
	}
	return m, s, err
}

// Interswarm is [ParseInterswarm] with options.
func (o ParseOptions) Interswarm(raw []byte) (Interswarm, error) {
	var w Interswarm
	s, err := o.scanner(raw)
	if err == nil {
		err = s.interswarm(&w)
	}
	if err == nil {
		err = s.end()
	}
	if err == nil {
		err = w.check()
	}
	if err != nil {
		return Interswarm{}, err
	}
	return w, nil
}

func (o ParseOptions) scanner(raw []byte) (*scanner, error) {
	o.Limits = o.Limits.withDefaults()
	if len(raw) > o.Limits.Bytes {
		return nil, limitf("", "has %d bytes, at most %d are taken", len(raw), o.Limits.Bytes)
	}
	if !utf8.Valid(raw) {
		return nil, faultf("", "is not valid UTF-8")
	}
	// One copy for all strings: the fields of the result are parts of it.
	return &scanner{src: string(raw), opts: o}, nil
}
