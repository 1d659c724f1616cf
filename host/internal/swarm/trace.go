package swarm

import (
	"regexp"
	"strings"
)

// Limits of a trace's state: the specification has the number of members, and leaves it
// to whoever carries them to keep no more bytes than this.
const (
	maxStateMembers = 32
	maxStateBytes   = 512
	maxStateMember  = 128
)

// Trace is a caller's trace context (https://www.w3.org/TR/trace-context/). It goes with
// all that follows from the caller's message. The zero value is none.
type Trace struct{ parent, state string }

// ParseTrace reads a traceparent and its tracestate. A malformed state is left out; with
// a malformed traceparent there is no trace.
func ParseTrace(parent, state string) Trace {
	if parent = parseTraceparent(parent); parent == "" {
		return Trace{}
	}
	return Trace{parent, parseTracestate(state)}
}

// HeaderTrace reads the trace of an HTTP request. Two traceparents are none, and several
// headers with a state are one list.
func HeaderTrace(header map[string][]string) Trace {
	return ParseTrace(strings.Join(header["Traceparent"], ","), strings.Join(header["Tracestate"], ","))
}

// Parent is the traceparent, of version 00.
func (t Trace) Parent() string { return t.parent }

// Fields calls set for each header that carries the trace.
func (t Trace) Fields(set func(name, value string)) {
	if t.parent != "" {
		set("traceparent", t.parent)
	}
	if t.state != "" {
		set("tracestate", t.state)
	}
}

// MarshalText writes the trace as one text, which without a state is the traceparent.
func (t Trace) MarshalText() ([]byte, error) {
	return []byte(strings.TrimSuffix(t.parent+" "+t.state, " ")), nil
}

// UnmarshalText reads what MarshalText writes.
func (t *Trace) UnmarshalText(text []byte) error {
	parent, state, _ := strings.Cut(string(text), " ")
	*t = ParseTrace(parent, state)
	return nil
}

// traceparentPattern matches the fields that every version begins with
// (https://www.w3.org/TR/trace-context/#traceparent-header).
var traceparentPattern = regexp.MustCompile(`^([0-9a-f]{2})-([0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2})(-.*)?$`)

// parseTraceparent returns a traceparent as one of version 00, or nothing for version
// ff, an id of zeros and what is malformed.
func parseTraceparent(text string) string {
	m := traceparentPattern.FindStringSubmatch(text)
	switch {
	case m == nil, m[1] == "ff", m[1] == "00" && m[3] != "":
		return ""
	case strings.HasPrefix(m[2], strings.Repeat("0", 32)), strings.Contains(m[2], "-"+strings.Repeat("0", 16)+"-"):
		return ""
	case m[1] == "00":
		return text
	}
	// Of later versions only the flag that version 00 has is known.
	if m[2][len(m[2])-1]&1 == 1 {
		return "00-" + m[2][:len(m[2])-2] + "01"
	}
	return "00-" + m[2][:len(m[2])-2] + "00"
}

// statePattern matches one member of a tracestate
// (https://www.w3.org/TR/trace-context/#tracestate-header-field-values).
var statePattern = regexp.MustCompile(`^([a-z][a-z0-9_*/-]{0,255}|[a-z0-9][a-z0-9_*/-]{0,240}@[a-z][a-z0-9_*/-]{0,13})=[ -+--<>-~]{0,255}[!-+--<>-~]$`)

// parseTracestate returns the members of a tracestate, or nothing if one of them is
// malformed.
func parseTracestate(text string) string {
	var members []string
	seen := map[string]bool{}
	for member := range strings.SplitSeq(text, ",") {
		if member = strings.Trim(member, " \t"); member == "" {
			continue
		}
		m := statePattern.FindStringSubmatch(member)
		if m == nil || seen[m[1]] || len(members) == maxStateMembers {
			return ""
		}
		seen[m[1]] = true
		members = append(members, member)
	}
	return shortenState(members)
}

// shortenState leaves out long members first and then the last ones, as the
// specification has it (https://www.w3.org/TR/trace-context/#tracestate-limits).
func shortenState(members []string) string {
	state := strings.Join(members, ",")
	for i := len(members) - 1; i >= 0 && len(state) > maxStateBytes; i-- {
		if len(members[i]) > maxStateMember {
			members = append(members[:i:i], members[i+1:]...)
			state = strings.Join(members, ",")
		}
	}
	for len(state) > maxStateBytes {
		members = members[:len(members)-1]
		state = strings.Join(members, ",")
	}
	return state
}
