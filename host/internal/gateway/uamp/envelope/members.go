package envelope

import (
	"bytes"
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strings"

	"skep/host/internal/gateway/wire"
)

// members reads the members of an object by their exact names and types. The first fault
// stays in err.
type members struct {
	of  string // begin of the names in faults
	all map[string]json.RawMessage
	err error
}

// readMembers reads an object of a text that has a canonical form.
func readMembers(text []byte, of string) (m members) {
	m.of = of
	var ok bool
	if m.all, ok = wire.Members(text); !ok {
		m.fail("", "is not an object")
	}
	return m
}

func isObject(text []byte) bool { return bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("{")) }

// fail notes what is wrong with a member.
func (m *members) fail(name, what string) {
	if m.err == nil {
		m.err = malformed("%s %s", cmp.Or(clip(strings.Trim(m.of+"."+name, ".")), "the message"), what)
	}
}

// maxShownName bounds the name of a member in a fault, in bytes: the name may be the
// caller's.
const maxShownName = 80

func clip(name string) string {
	if len(name) <= maxShownName {
		return name
	}
	return strings.ToValidUTF8(name[:maxShownName], "") + "…"
}

// require faults members that are missing.
func (m *members) require(names ...string) {
	for _, name := range names {
		if _, has := m.all[name]; !has {
			m.fail(name, "is missing")
		}
	}
}

// refuseOthers faults members with other names.
func (m *members) refuseOthers(names ...string) {
	for name := range m.all {
		if !slices.Contains(names, name) {
			m.fail(name, "is no property of the protocol")
		}
	}
}

// text reads a string of at most so many bytes, and fallback if there is none.
func (m *members) text(name, fallback string, most int) string {
	raw, has := m.all[name]
	if !has {
		return fallback
	}
	text, ok := wire.Text(raw)
	switch {
	case !ok:
		m.fail(name, "is not a string")
	case len(text) > most:
		m.fail(name, "is too long")
	}
	return text
}

// integer reads an integer from least to maxInteger, and fallback if there is none.
func (m *members) integer(name string, least, fallback int) int {
	raw, has := m.all[name]
	if !has {
		return fallback
	}
	var f float64
	if b := raw[0]; b == '"' || b == 'n' || json.Unmarshal(raw, &f) != nil || f != math.Trunc(f) || f < float64(least) || f > maxInteger {
		m.fail(name, "is not an integer in its range")
		return fallback
	}
	return int(f)
}

// maxInteger bounds a delta_window and a delta_seq.
const maxInteger = 1 << 31

// list reads an array of at most so many items.
func (m *members) list(name string, most int) (items []json.RawMessage) {
	raw, has := m.all[name]
	if !has {
		return nil
	}
	items, ok := wire.Items(raw)
	switch {
	case !ok:
		m.fail(name, "is not an array")
	case len(items) > most:
		m.fail(name, "has too many items")
	}
	return items
}

// object reads an object as its members.
func (m *members) object(name string) (all map[string]json.RawMessage) {
	raw, has := m.all[name]
	if !has {
		return nil
	}
	all, ok := wire.Members(raw)
	if !ok {
		m.fail(name, "is not an object")
	}
	return all
}
