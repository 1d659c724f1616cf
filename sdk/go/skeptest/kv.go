package skeptest

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	skep "skep/sdk/go"
	"skep/sdk/go/internal/abi"
)

// Bounds of values, as a host has them.
const (
	maxKey   = 512
	maxValue = 64 << 10
	maxKeys  = 1000
	maxBytes = 4 << 20
)

// space finds the values that a call means, and refuses what is not granted.
func (h *host) space(name string) (space, error) {
	scopes := []skep.Scope{skep.ScopeTask, skep.ScopeAgent, skep.ScopeInstance}
	scope := skep.Scope(cmp.Or(name, string(skep.ScopeAgent)))
	asked, granted := slices.Index(scopes, scope), slices.Index(scopes, h.world.KV)
	switch {
	case asked < 0:
		return space{}, because(skep.Invalid, "scope", "the scope must be task, agent or instance, not %.40q", name)
	case asked > granted:
		return space{}, because(skep.Denied, "grant", "the scope %s is not granted to agent %q; set World.KV", scope, h.in.Agent)
	}
	return spaceOf(scope, h.in.Agent, h.in.Message.Task), nil
}

// place is space for one key.
func (h *host) place(scope, key string) (space, error) {
	switch {
	case key == "":
		return space{}, because(skep.Invalid, "key", "the key must not be empty")
	case len(key) > maxKey:
		return space{}, because(skep.Limit, "key", "a key of %d bytes, at most %d", len(key), maxKey)
	}
	return h.space(scope)
}

// seen are the values of a space as the turn sees them.
func (h *host) seen(s space) map[string]string {
	all := maps.Clone(h.world.in(s))
	for key, value := range h.staged[s] {
		if value == nil {
			delete(all, key)
		} else {
			all[key] = *value
		}
	}
	return all
}

func (h *host) kvGet(req json.RawMessage) (any, error) {
	var ask abi.KVGetRequest
	if err := strict(req, &ask); err != nil {
		return nil, err
	}
	s, err := h.place(ask.Scope, ask.Key)
	if err != nil {
		return nil, err
	}
	value, ok := h.seen(s)[ask.Key]
	if !ok {
		return nil, because(skep.NotFound, "key", "there is no key %.64q in the scope %s", ask.Key, s.scope)
	}
	return abi.KVGetResponse{Value: value}, nil
}

func (h *host) kvPut(req json.RawMessage) (any, error) {
	var ask abi.KVPutRequest
	if err := strict(req, &ask); err != nil {
		return nil, err
	}
	if ask.Value == nil {
		return nil, because(skep.Invalid, "value", "value is missing; it must be a text")
	}
	s, err := h.place(ask.Scope, ask.Key)
	if err != nil {
		return nil, err
	}
	if err := fits(h.seen(s), h.world.in(s), ask.Key, *ask.Value); err != nil {
		return nil, err
	}
	h.stage(s, ask.Key, ask.Value)
	return struct{}{}, nil
}

func (h *host) kvDelete(req json.RawMessage) (any, error) {
	var ask abi.KVGetRequest
	if err := strict(req, &ask); err != nil {
		return nil, err
	}
	s, err := h.place(ask.Scope, ask.Key)
	if err != nil {
		return nil, err
	}
	h.stage(s, ask.Key, nil)
	return struct{}{}, nil
}

// stage sets a value for this turn; nil deletes.
func (h *host) stage(s space, key string, value *string) {
	if h.staged[s] == nil {
		h.staged[s] = map[string]*string{}
	}
	h.staged[s][key] = value
}

// fits refuses a value that would exceed a quota. A scope that is over it
// already may stay as it was.
func fits(seen, was map[string]string, key, value string) error {
	if len(value) > maxValue {
		return because(skep.Limit, "value", "a value of %d bytes, at most %d", len(value), maxValue)
	}
	is := maps.Clone(seen)
	is[key] = value
	switch {
	case len(is) > max(maxKeys, len(was)):
		return because(skep.Limit, "keys", "the scope would hold %d keys, at most %d", len(is), maxKeys)
	case size(is) > max(maxBytes, size(was)):
		return because(skep.Limit, "bytes", "the scope would hold %d bytes, at most %d", size(is), maxBytes)
	}
	return nil
}

func size(values map[string]string) (n int) {
	for key, value := range values {
		n += len(key) + len(value)
	}
	return n
}

func (h *host) kvList(req json.RawMessage) (any, error) {
	var ask abi.KVListRequest
	if err := strict(req, &ask); err != nil {
		return nil, err
	}
	if ask.Limit < 0 {
		return nil, because(skep.Invalid, "range", "limit must not be negative")
	}
	s, err := h.space(ask.Scope)
	if err != nil {
		return nil, err
	}
	page := abi.KVListResponse{Keys: []string{}}
	limit := min(cmp.Or(ask.Limit, 100), maxKeys)
	for _, key := range slices.Sorted(maps.Keys(h.seen(s))) {
		if !strings.HasPrefix(key, ask.Prefix) || key <= ask.After {
			continue
		}
		if len(page.Keys) == limit {
			page.Next = page.Keys[limit-1]
			break
		}
		page.Keys = append(page.Keys, key)
	}
	return page, nil
}

func (h *host) kvCas(req json.RawMessage) (any, error) {
	var ask abi.KVCasRequest
	if err := strict(req, &ask); err != nil {
		return nil, err
	}
	s, err := h.place(ask.Scope, ask.Key)
	if err != nil {
		return nil, err
	}
	if _, staged := h.staged[s][ask.Key]; staged {
		return nil, because(skep.Conflict, "staged", "the turn has already put or deleted the key %.64q", ask.Key)
	}
	values := h.world.in(s)
	if ask.Value != nil {
		if err := fits(values, values, ask.Key, *ask.Value); err != nil {
			return nil, err
		}
	}
	is, there := values[ask.Key]
	if there != (ask.Expect != nil) || there && is != *ask.Expect {
		return abi.KVCasResponse{}, nil
	}
	if ask.Value == nil {
		delete(values, ask.Key)
	} else {
		values[ask.Key] = *ask.Value
	}
	return abi.KVCasResponse{OK: true}, nil
}
