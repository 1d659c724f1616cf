package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	skep "skep/sdk/go"
)

// Bounds of what is kept. A scope has 1,000 keys, and a query reads each statement.
const (
	maxStatements = 900
	maxStatement  = 60 << 10 // with its history, in bytes
	maxName       = 128      // of a domain, an id, a scope or a tag
	maxDepth      = 32       // levels of arrays and objects in a value
	attempts      = 5        // to change a statement that others change at once
)

// statement is one thing that is known, with all its versions, the newest last.
type statement struct {
	ID       string    `json:"id"`
	Kind     string    `json:"kind"` // fact, rule, pattern or context
	Domain   string    `json:"domain"`
	Versions []version `json:"versions"`
}

// version is what a statement said at a time, and who said so.
type version struct {
	Value      any      `json:"value,omitempty"`
	State      string   `json:"state"` // learned, corrected or deprecated
	Scope      string   `json:"scope,omitempty"`
	Tags       []string `json:"tags,omitempty"`
	Confidence *float64 `json:"confidence,omitempty"`
	Source     string   `json:"source,omitempty"`
	By         origin   `json:"by"`
}

// origin is where a version came from. The host vouches for agent, task and message.
type origin struct {
	Agent   string `json:"agent"`
	Type    string `json:"type"` // agent, user or admin
	Task    string `json:"task"`
	Message string `json:"message"`
	At      string `json:"at"`
}

func (s statement) now() version { return s.Versions[len(s.Versions)-1] }

// collection is where statements lie.
type collection struct {
	turn *skep.Turn
	kv   skep.KV
	by   origin
	// fresh are the statements that this turn has begun, by key.
	fresh map[string]string
}

func newCollection(t *skep.Turn) (*collection, error) {
	p := struct {
		Scope skep.Scope `json:"scope"`
	}{skep.ScopeAgent}
	if err := t.Params(&p); err != nil {
		return nil, err
	}
	m := &t.Message
	return &collection{t, t.KV(p.Scope), origin{
		Agent: m.Sender.Name, Type: string(m.Sender.Type), Task: m.Task, Message: m.ID, At: t.Now().UTC().Format("2006-01-02T15:04:05Z"),
	}, map[string]string{}}, nil
}

// prefix begins the keys of a domain's statements, or of all for "".
func prefix(domain string) string {
	if domain == "" {
		return "know/"
	}
	return "know/" + domain + "\n"
}

func checkName(member, name string) error {
	if name == "" || len(name) > maxName || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return invalid("%s must have 1 to %d bytes and no control characters", member, maxName)
	}
	return nil
}

// checkDepth refuses a value that nests deeper than those who query it may be able to read.
func checkDepth(member string, value any) error {
	if !fitsDepth(value, maxDepth) {
		return invalid("%s nests more than %d levels: send what is deeper as a text", member, maxDepth)
	}
	return nil
}

// fitsDepth reports whether a decoded JSON value has at most so many levels.
func fitsDepth(value any, levels int) bool {
	deeper := func(v any) bool { return !fitsDepth(v, levels-1) }
	switch v := value.(type) {
	case []any:
		return levels > 0 && !slices.ContainsFunc(v, deeper)
	case map[string]any:
		return levels > 0 && !slices.ContainsFunc(slices.Collect(maps.Values(v)), deeper)
	}
	return true
}

// idOf names a statement that has no id by its kind and value.
func idOf(kind string, value any) string {
	raw, _ := json.Marshal(value) // it came as JSON
	sum := sha256.Sum256(append([]byte(kind+"\n"), raw...))
	return hex.EncodeToString(sum[:8])
}

// read returns a statement and its text; found is false where there is none.
func (s *collection) read(key string) (one statement, text string, found bool, err error) {
	text, err = s.kv.Get(key)
	if errors.Is(err, skep.NotFound) {
		return one, "", false, nil
	}
	if err == nil {
		err = json.Unmarshal([]byte(text), &one)
	}
	return one, text, err == nil, err
}

// change adds a version to a statement. It compares what is there: two tasks may change
// one statement at once.
func (s *collection) change(domain, kind, id string, add func(old *statement) (version, error)) (statement, error) {
	key := prefix(domain) + id
	for range attempts {
		one, text, found, err := s.read(key)
		if err != nil {
			return one, err
		}
		var old *statement
		var expect *string
		if found {
			old, expect = &one, &text
		}
		next, err := add(old)
		if err != nil {
			return one, err
		}
		if !found {
			one = statement{ID: id, Kind: kind, Domain: domain}
		}
		one.Versions = append(one.Versions, next)
		raw, err := json.Marshal(one)
		if err != nil {
			return one, err
		}
		if len(raw) > maxStatement {
			return one, skep.Errorf(skep.Limit, "statement %q has %d bytes with its history, at most %d", id, len(raw), maxStatement)
		}
		changed := string(raw)
		ok, err := s.kv.Cas(key, expect, &changed)
		if ok && !found {
			s.fresh[key] = changed
		}
		if ok || err != nil {
			return one, err
		}
	}
	return statement{}, skep.Errorf(skep.Unavailable, "statement %q is changed by others just now", id)
}

// checkRoom refuses more statements than a query can read. fresh are those to come.
func (s *collection) checkRoom(fresh int) error {
	if fresh == 0 {
		return nil
	}
	keys, _, err := s.kv.List(prefix(""), "", maxStatements)
	if err == nil && len(keys)+fresh > maxStatements {
		err = skep.Errorf(skep.Limit, "there are %d statements, and of %d more not all are kept: at most %d are", len(keys), fresh, maxStatements)
	}
	return err
}

// removeExcess takes back the statements that this turn has begun where others began some at the
// same time, and there are too many now.
func (s *collection) removeExcess() error {
	if len(s.fresh) == 0 {
		return nil
	}
	keys, _, err := s.kv.List(prefix(""), "", maxStatements+1)
	if err != nil || len(keys) <= maxStatements {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(s.fresh)) {
		text := s.fresh[key]
		if _, err := s.kv.Cas(key, &text, nil); err != nil {
			return err
		}
	}
	return skep.Errorf(skep.Limit, "others have added statements at the same time, and of %d not all are kept: at most %d are", len(keys), maxStatements)
}
