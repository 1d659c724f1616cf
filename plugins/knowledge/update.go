package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"

	skep "skep/sdk/go"
)

// What becomes of a statement.
const (
	learned    = "learned"
	corrected  = "corrected"
	deprecated = "deprecated"
)

// update is the payload of a knowledge_update; scope and tags are ours.
type update struct {
	Type    string `json:"update_type"`
	Domain  string `json:"knowledge_domain"`
	Content struct {
		Facts    []json.RawMessage `json:"facts"`
		Rules    []json.RawMessage `json:"rules"`
		Patterns []json.RawMessage `json:"patterns"`
	} `json:"content"`
	Confidence *float64 `json:"confidence"`
	Source     string   `json:"source"`
	Scope      string   `json:"scope"`
	Tags       []string `json:"tags"`
}

// item is a statement in an update: any JSON value, or an object with an id, or with
// what it replaces: the id or the text of an earlier statement.
type item struct {
	ID       string `json:"id"`
	Replaces any    `json:"replaces"`
	value    any
	kind     string
}

// changed says what has become of one statement.
type changed struct {
	ID      string `json:"id"`
	Kind    string `json:"kind"`
	State   string `json:"state"`
	Version int    `json:"version"`
}

// update keeps what was learned, corrected or deprecated. All its items are checked
// before the first is kept. If the store refuses one then, the result has those before it.
func (s *collection) update(raw json.RawMessage) (any, error) {
	var u update
	if err := decode(raw, &u); err != nil {
		return nil, err
	}
	if err := u.check(); err != nil {
		return nil, err
	}
	items, err := u.items()
	if err != nil {
		return nil, err
	}
	if err := s.checkItems(u, items); err != nil {
		return nil, err
	}
	v := version{State: u.Type, Scope: u.Scope, Tags: u.Tags, Confidence: u.Confidence, Source: u.Source, By: s.by}
	var list []changed
	for _, it := range items {
		c, err := s.apply(u, it, v)
		switch {
		case err != nil && len(list) == 0:
			return nil, err
		case err != nil:
			return map[string]any{"changed": list}, err
		}
		list = append(list, c)
	}
	if err := s.removeExcess(); err != nil {
		list = slices.DeleteFunc(list, func(c changed) bool { return s.fresh[prefix(u.Domain)+c.ID] != "" })
		return map[string]any{"changed": list}, err
	}
	return map[string]any{"changed": list}, nil
}

// checkItems refuses items that contradict what is known or each other, and more than there is
// place for.
func (s *collection) checkItems(u update, items []item) error {
	ids, fresh := map[string]bool{}, 0
	for _, it := range items {
		if ids[it.ID] {
			return invalid("content has %s %q twice", it.kind, it.ID)
		}
		ids[it.ID] = true
		old, _, found, err := s.read(prefix(u.Domain) + it.ID)
		if err != nil {
			return err
		}
		if !found {
			fresh++
		}
		if err := u.fits(it, old, found); err != nil {
			return err
		}
	}
	return s.checkRoom(fresh)
}

// fits refuses an item that does not go with the statement of its id.
func (u update) fits(it item, old statement, found bool) error {
	switch {
	case !found && u.Type != learned:
		return skep.Errorf(skep.NotFound, "domain %q has no %s %q that could be %s", u.Domain, it.kind, it.ID, u.Type)
	case !found:
		return nil
	case old.Kind != it.kind:
		return skep.Errorf(skep.Conflict, "%q is a %s, not a %s", it.ID, old.Kind, it.kind)
	case u.Type == learned && old.now().State != deprecated && !equal(old.now().Value, it.value):
		return skep.Errorf(skep.Conflict, "%s %q says something else already; send it as corrected", it.kind, it.ID)
	case u.Type == corrected && old.now().State == deprecated:
		return skep.Errorf(skep.Conflict, "%s %q is deprecated; send it as learned to take it up again", it.kind, it.ID)
	}
	return nil
}

// apply adds a version. What is learned or deprecated twice stays as it is, unless it is learned
// with another confidence, source, scope or other tags.
func (s *collection) apply(u update, it item, v version) (changed, error) {
	one, err := s.change(u.Domain, it.kind, it.ID, func(old *statement) (version, error) {
		v.Value = it.value
		if old == nil {
			return v, u.fits(it, statement{}, false)
		}
		now := old.now()
		switch err := u.fits(it, *old, true); {
		case err != nil:
			return v, err
		case u.Type == learned && now.State != deprecated:
			return v.repeat(now)
		case u.Type == deprecated && now.State == deprecated:
			return v, errSame
		case u.Type == deprecated:
			v.Value, v.Scope, v.Tags = now.Value, now.Scope, now.Tags
		case u.Type == corrected:
			v.inherit(now)
		}
		return v, nil
	})
	if errors.Is(err, errSame) {
		err = nil
	}
	return changed{it.ID, it.kind, one.state(), len(one.Versions)}, err
}

// errSame ends a change that changes nothing.
var errSame = errors.New("nothing has changed")

func (s statement) state() string {
	if len(s.Versions) == 0 {
		return ""
	}
	return s.now().State
}

// inherit takes over what a correction leaves out.
func (v *version) inherit(old version) {
	if v.Scope == "" {
		v.Scope = old.Scope
	}
	if v.Tags == nil {
		v.Tags = old.Tags
	}
}

// repeat takes over what a repeated statement leaves out. One that adds nothing is errSame.
func (v version) repeat(old version) (version, error) {
	v.inherit(old)
	v.State, v.Source = old.State, cmp.Or(v.Source, old.Source)
	if v.Confidence == nil {
		v.Confidence = old.Confidence
	}
	if v.Scope == old.Scope && v.Source == old.Source && equal(v.Confidence, old.Confidence) && slices.Equal(v.Tags, old.Tags) {
		return v, errSame
	}
	return v, nil
}

func equal(a, b any) bool {
	x, _ := json.Marshal(a) // values that came as JSON
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

func (u update) check() error {
	if u.Type != learned && u.Type != corrected && u.Type != deprecated {
		return invalid("update_type is %.40q; it is learned, corrected or deprecated", u.Type)
	}
	if u.Confidence != nil && (*u.Confidence < 0 || *u.Confidence > 1) {
		return invalid("confidence must be from 0 to 1")
	}
	if u.Source != "" && !slices.Contains([]string{"user", "inference", "external"}, u.Source) {
		return invalid("source is %.40q; it is user, inference or external", u.Source)
	}
	if err := checkName("knowledge_domain", u.Domain); err != nil {
		return err
	}
	return checkLabels(u.Scope, u.Tags)
}

func checkLabels(scope string, tags []string) error {
	if scope != "" {
		if err := checkName("scope", scope); err != nil {
			return err
		}
	}
	if len(tags) > 32 {
		return invalid("tags has %d texts, at most 32", len(tags))
	}
	for _, tag := range tags {
		if err := checkName("tags", tag); err != nil {
			return err
		}
	}
	return nil
}

// items reads the content.
func (u update) items() (list []item, err error) {
	for _, group := range []struct {
		kind string
		raw  []json.RawMessage
	}{{"fact", u.Content.Facts}, {"rule", u.Content.Rules}, {"pattern", u.Content.Patterns}} {
		for _, raw := range group.raw {
			it := item{kind: group.kind}
			if err := json.Unmarshal(raw, &it.value); err != nil {
				return nil, invalid("content: %v", err)
			}
			if err := checkDepth("a statement of content."+group.kind+"s", it.value); err != nil {
				return nil, err
			}
			if _, isObject := it.value.(map[string]any); isObject {
				if err := json.Unmarshal(raw, &it); err != nil {
					return nil, invalid("content.%ss: id must be a text", group.kind)
				}
			}
			if err := it.name(u.Type); err != nil {
				return nil, err
			}
			list = append(list, it)
		}
	}
	if len(list) == 0 || len(list) > 200 {
		return nil, invalid("content has %d facts, rules and patterns; 1 to 200 are possible", len(list))
	}
	return list, nil
}

// name finds the id of an item. A correction must say what it corrects.
func (it *item) name(updateType string) error {
	if object, ok := it.value.(map[string]any); ok {
		if delete(object, "replaces"); object["statement"] != nil {
			it.value = object["statement"]
		}
	}
	switch replaces, isText := it.Replaces.(string); {
	case it.ID != "":
	case isText && isStatementID(replaces):
		it.ID = replaces
	case it.Replaces != nil:
		it.ID = idOf(it.kind, it.Replaces)
	case updateType == corrected:
		return invalid(`a corrected %s needs "id", or "replaces" with the earlier statement or its id`, it.kind)
	default:
		it.ID = idOf(it.kind, it.value)
	}
	return checkName("id", it.ID)
}

// isStatementID reports whether a text has the form that idOf gives.
func isStatementID(s string) bool {
	if len(s) != 16 {
		return false
	}
	for _, c := range s {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// share keeps a context_share: data of a kind, which replaces what was there under its id.
func (s *collection) share(raw json.RawMessage) (any, error) {
	var p struct {
		ID        string   `json:"id"`
		Type      string   `json:"context_type"`
		Scope     string   `json:"scope"`
		Data      any      `json:"data"`
		Relevance *float64 `json:"relevance_score"`
		Tags      []string `json:"tags"`
	}
	if err := decode(raw, &p); err != nil {
		return nil, err
	}
	if p.Data == nil {
		return nil, invalid("data is missing")
	}
	if err := checkDepth("data", p.Data); err != nil {
		return nil, err
	}
	if err := checkName("context_type", p.Type); err != nil {
		return nil, err
	}
	if err := checkLabels(p.Scope, p.Tags); err != nil {
		return nil, err
	}
	id := p.ID
	if id == "" {
		id = idOf("context", p.Data)
	}
	if err := checkName("id", id); err != nil {
		return nil, err
	}
	v := version{Value: p.Data, State: learned, Scope: p.Scope, Tags: p.Tags, Confidence: p.Relevance, By: s.by}
	one, err := s.change(p.Type, "context", id, func(old *statement) (version, error) {
		if old == nil {
			return v, s.checkRoom(1)
		}
		now := old.now()
		if old.Kind != "context" {
			return v, skep.Errorf(skep.Conflict, "%q is a %s, not a context", id, old.Kind)
		}
		if now.State != deprecated && equal(now.Value, v.Value) {
			return v.repeat(now)
		}
		v.State = corrected
		return v, nil
	})
	if err == nil {
		err = s.removeExcess()
	}
	if err != nil && !errors.Is(err, errSame) {
		return nil, err
	}
	return map[string]any{"changed": []changed{{id, "context", one.state(), len(one.Versions)}}}, nil
}
