package swarm

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// ReadEvent reads an event as package json writes it. The event shares raw's memory.
func ReadEvent(raw []byte) (e Event, err error) {
	if e, ok := readPlainEvent(raw); ok {
		return e, nil
	}
	err = json.Unmarshal(raw, &e)
	return e, err
}

// readPlainEvent reads an event whose members stand in their order and whose texts have no
// escapes, as most have, in a fraction of the time that package json takes.
func readPlainEvent(raw []byte) (e Event, ok bool) {
	text, rest, ok := cutPlainText(raw, `{"event":"`)
	if !ok {
		return e, false
	}
	e.Name = string(text)
	if text, rest, ok = cutPlainText(rest, `,"timestamp":"`); !ok || e.Time.UnmarshalText(text) != nil {
		return e, false
	}
	if text, after, ok := cutPlainText(rest, `,"description":"`); ok {
		e.Description, rest = string(text), after
	}
	rest, closed := bytes.CutSuffix(rest, []byte{'}'})
	if len(rest) == 0 {
		return e, closed
	}
	rest, ok = bytes.CutPrefix(rest, []byte(`,"extra_data":{`))
	if !ok || !closed {
		return e, false
	}
	e.Extra = raw[len(raw)-len(rest)-2 : len(raw)-1 : len(raw)-1]
	return e, json.Valid(e.Extra)
}

// cutPlainText cuts what stands before a text, the text, which has no escapes, and its end.
func cutPlainText(raw []byte, before string) (text, rest []byte, ok bool) {
	rest, ok = bytes.CutPrefix(raw, []byte(before))
	if !ok {
		return nil, raw, false
	}
	end := bytes.IndexByte(rest, '"')
	if end < 0 {
		return nil, raw, false
	}
	for _, c := range rest[:end] {
		if c < ' ' || c == '\\' {
			return nil, raw, false
		}
	}
	return rest[:end], rest[end+1:], utf8.Valid(rest[:end])
}
