package main

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// query is the payload of a knowledge_query. What is empty selects everything.
type query struct {
	Domain string   `json:"knowledge_domain"`
	Scope  string   `json:"scope"`
	Tags   []string `json:"tags"` // all of them
	Kind   string   `json:"kind"`
	Text   string   `json:"text"` // in the value, in any case of letters
	// Minimum is the least confidence; what has none passes.
	Minimum    float64 `json:"min_confidence"`
	Deprecated bool    `json:"include_deprecated"`
	History    bool    `json:"history"`
	Limit      int     `json:"limit"`
	After      string  `json:"after"`
}

// found is a statement in an answer.
type found struct {
	ID     string `json:"id"`
	Kind   string `json:"kind"`
	Domain string `json:"knowledge_domain"`
	version
	History []version `json:"history,omitempty"` // the older ones, oldest first
}

// maxAnswer bounds the statements of one answer, in bytes.
const maxAnswer = 128 << 10

// query finds statements, in the order of domains and ids.
func (s *collection) query(raw json.RawMessage) (any, error) {
	q := query{Limit: 50}
	if err := decode(raw, &q); err != nil {
		return nil, err
	}
	if err := checkMembers(raw); err != nil {
		return nil, err
	}
	if err := q.check(); err != nil {
		return nil, err
	}
	keys, _, err := s.kv.List(prefix(q.Domain), q.After, 1000)
	if err != nil {
		return nil, err
	}
	list, bytes, last := []found{}, 0, ""
	for _, key := range keys {
		one, text, there, err := s.read(key)
		if err != nil {
			return nil, err
		}
		if !there || !q.selects(one) {
			continue
		}
		if bytes += len(text); len(list) == q.Limit || bytes > maxAnswer && len(list) > 0 {
			return map[string]any{"statements": list, "next": last}, nil
		}
		f := found{ID: one.ID, Kind: one.Kind, Domain: one.Domain, version: one.now()}
		if q.History {
			f.History = one.Versions[:len(one.Versions)-1]
		}
		list, last = append(list, f), key
	}
	return map[string]any{"statements": list}, nil
}

// Bounds of a query's texts, in bytes: it is held against each statement.
const (
	maxQueryText = 1 << 10
	maxAfter     = 512 // a name of a value
)

// checkMembers refuses a member that a query does not have: without it the query selects more.
func checkMembers(raw json.RawMessage) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&query{}); err != nil {
		return invalid("payload has an %s; a query has knowledge_domain, scope, tags, kind, text, min_confidence, include_deprecated, history, limit and after", strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

func (q query) check() error {
	switch {
	case q.Kind != "" && !slices.Contains([]string{"fact", "rule", "pattern", "context"}, q.Kind):
		return invalid("kind is %.60q; it is fact, rule, pattern or context", q.Kind)
	case q.Limit < 1 || q.Limit > 500:
		return invalid("limit must be 1 to 500")
	case len(q.Text) > maxQueryText:
		return invalid("text has %d bytes, at most %d", len(q.Text), maxQueryText)
	case len(q.After) > maxAfter:
		return invalid("after has %d bytes, at most %d: it is the next of an answer", len(q.After), maxAfter)
	}
	if q.Domain != "" {
		if err := checkName("knowledge_domain", q.Domain); err != nil {
			return err
		}
	}
	return checkLabels(q.Scope, q.Tags)
}

func (q query) selects(s statement) bool {
	v := s.now()
	switch {
	case v.State == deprecated && !q.Deprecated,
		q.Scope != "" && v.Scope != q.Scope,
		q.Kind != "" && s.Kind != q.Kind,
		v.Confidence != nil && *v.Confidence < q.Minimum,
		slices.ContainsFunc(q.Tags, func(tag string) bool { return !slices.Contains(v.Tags, tag) }):
		return false
	}
	if q.Text == "" {
		return true
	}
	raw, _ := json.Marshal(v.Value) // it came as JSON
	return strings.Contains(strings.ToLower(string(raw)), strings.ToLower(q.Text))
}
