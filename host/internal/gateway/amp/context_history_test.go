package amp_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"skep/host/internal/gateway/amp/amptest"
)

// accessLists are the lists that histories choose from, with the agents of [shares] that each
// means for a context of acme and of another realm.
var accessLists = []struct {
	list        []string
	acme, rival string // agents of shares
}{
	{[]string{}, "", ""},
	{[]string{"agent-2"}, "1", ""},
	{[]string{"agent-1@acme"}, "0", "0"},
	{[]string{"agent-1"}, "0", "2"},
	{[]string{"*@acme"}, "01", "01"},
	{[]string{"agent-1@rival", "agent-9"}, "2", "2"},
	{[]string{"*"}, "012", "012"},
	{[]string{"agent-1@red", "*@red"}, "", ""},
}

// expectedContext is what a context must be after a history.
type expectedContext struct {
	id          string
	owner       int
	read, write string // agents of shares
	shared      map[string]int
	private     map[int]map[string]int
	version     any
	// source is the context that its maker has copied and could not write, nil for none.
	source *expectedContext
}

func (e *expectedContext) reads(agent int) bool {
	return (e.source == nil || e.source.reads(agent)) && (e.writes(agent) || strings.Contains(e.read, fmt.Sprint(agent)))
}

func (e *expectedContext) writes(agent int) bool {
	return agent == e.owner || strings.Contains(e.write, fmt.Sprint(agent))
}

// setAccess chooses who may read and write, and returns the lists.
func (e *expectedContext) setAccess(r *rand.Rand) amptest.Object {
	read, write := accessLists[r.IntN(len(accessLists))], accessLists[r.IntN(len(accessLists))]
	switch e.owner {
	case 0, 1:
		e.read, e.write = read.acme, write.acme
	case 2:
		e.read, e.write = read.rival, write.rival
	default: // the entries for agents of the own realm mean the owner, who may do all
		e.read, e.write = "", ""
	}
	return amptest.Object{"read": read.list, "write": write.list}
}

// history runs random operations of all agents of a site.
type history struct {
	s    *site
	r    *rand.Rand
	made []*expectedContext
}

func (h *history) create(t *testing.T) {
	t.Helper()
	e := &expectedContext{owner: h.r.IntN(len(shares)), shared: map[string]int{"n": h.r.IntN(10)}, private: map[int]map[string]int{}}
	got := contextIn(t, h.s.share(t, e.owner, "create", amptest.Object{"context": amptest.Object{"shared_memory": e.shared, "access_control": e.setAccess(h.r)}}))
	e.id, e.version = fmt.Sprint(got["id"]), got["version"]
	h.made = append(h.made, e)
	h.check(t, e, e.owner, got)
}

// check holds what an agent sees against what it must see.
func (h *history) check(t *testing.T, e *expectedContext, agent int, got amptest.Object) {
	t.Helper()
	shared, _ := json.Marshal(e.shared)
	wantMemory(t, "shared_memory", got["shared_memory"], string(shared))
	own := map[string]any{}
	if mine, has := e.private[agent]; has {
		own[shares[agent].agent] = mine
	}
	private, _ := json.Marshal(own)
	wantMemory(t, "agent_memory", got["agent_memory"], string(private))
	if got["version"] != e.version {
		t.Errorf("%s has version %v, want %v", e.id, got["version"], e.version)
	}
}

func (h *history) get(t *testing.T, e *expectedContext, agent int) {
	t.Helper()
	r := h.s.share(t, agent, "get", amptest.Object{"context_id": e.id})
	if !e.reads(agent) {
		wantNoContext(t, r)
		return
	}
	h.check(t, e, agent, contextIn(t, r))
}

// update changes a member, the own memory or the access lists, expecting the version, a wrong
// one, or none.
func (h *history) update(t *testing.T, e *expectedContext, agent int) {
	t.Helper()
	after := *e
	after.shared, after.private = maps.Clone(e.shared), maps.Clone(e.private)
	payload, values, may, shared := amptest.Object{"context_id": e.id}, amptest.Object{}, true, true
	switch h.r.IntN(4) {
	case 0:
		shared = false
		after.private[agent] = map[string]int{"mine": h.r.IntN(10)}
		payload["mode"] = "replace"
		values["agent_memory"] = amptest.Object{shares[agent].agent: after.private[agent]}
	case 1:
		values["access_control"], may = after.setAccess(h.r), agent == e.owner
	default:
		name, value := string(rune('a'+h.r.IntN(3))), h.r.IntN(4)
		after.shared[name] = value
		change := amptest.Object{name: value}
		if value == 0 {
			delete(after.shared, name)
			change[name] = nil
		}
		values["shared_memory"], may = change, e.writes(agent)
	}
	payload["context"] = values
	wrong, wide := false, false
	switch h.r.IntN(3) {
	case 0:
		payload["if_version"] = e.version
	case 1:
		payload["if_version"], wrong = 1_000_000_000, true
	}
	r := h.s.share(t, agent, "update", payload)
	if e.source != nil && values["access_control"] != nil { // its source may not have these readers
		wide = r.Status == http.StatusForbidden
	}
	switch {
	case !e.reads(agent):
		wantNoContext(t, r)
	case wrong:
		wantFault(t, r, http.StatusConflict, "INVALID_SCHEMA", "VERSION_CONFLICT")
	case !may || wide:
		wantFault(t, r, http.StatusForbidden, "AUTHENTICATION_FAILED", "FORBIDDEN")
	default:
		got := contextIn(t, r)
		if shared == (got["version"] == e.version) {
			t.Errorf("an update, of shared memory %v, makes version %v of %v", shared, got["version"], e.version)
		}
		*e = after
		e.version = got["version"]
		h.check(t, e, agent, got)
	}
}

// fork copies a context for its maker alone.
func (h *history) fork(t *testing.T, e *expectedContext, agent int) {
	t.Helper()
	r := h.s.share(t, agent, "fork", amptest.Object{"context_id": e.id})
	if !e.reads(agent) {
		wantNoContext(t, r)
		return
	}
	got := contextIn(t, r)
	copied := &expectedContext{id: fmt.Sprint(got["id"]), owner: agent, shared: maps.Clone(e.shared), private: map[int]map[string]int{}, version: got["version"]}
	if own, has := e.private[agent]; has {
		copied.private[agent] = own
	}
	copied.source = e.source
	if !e.writes(agent) {
		copied.source = e
	}
	h.made = append(h.made, copied)
	h.check(t, copied, agent, got)
}

// TestContextHistories (M-057, M-058, M-060, V-M27, V-M28, V-M31): over random histories of four
// agents, one of another realm and one of another tenant, each sees and changes what the access
// lists give it, no memory of another agent, and only the version that it expects.
func TestContextHistories(t *testing.T) {
	t.Parallel()
	const histories, steps = 25, 60
	for seed := range uint64(histories) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			h := &history{s: newShares(t), r: rand.New(rand.NewPCG(seed, 1))}
			h.create(t)
			for range steps {
				e, agent := h.made[h.r.IntN(len(h.made))], h.r.IntN(len(shares))
				switch h.r.IntN(8) {
				case 0:
					h.create(t)
				case 1:
					h.fork(t, e, agent)
				case 2, 3:
					h.get(t, e, agent)
				default:
					h.update(t, e, agent)
				}
			}
			for _, e := range h.made {
				for agent := range shares {
					h.get(t, e, agent)
				}
			}
		})
	}
}
