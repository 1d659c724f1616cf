package plan

import (
	"maps"
	"reflect"
	"slices"

	"skep/host/internal/definition/config"
)

// What can become of an item.
const (
	Added   = "added"
	Changed = "changed"
	Removed = "removed"
)

// Change is one difference.
type Change struct {
	// Kind is swarm, agent, action, grant, limit, model, secret, mcp, peer, tenant,
	// gateway, partner or server.
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	Change string `json:"change"`
	// Widened is set where something is allowed that was not before.
	Widened bool `json:"widened"`
	// Restart is set where a running host cannot take it over.
	Restart bool `json:"restart"`
	// Before and After are null for what is not there.
	Before any `json:"before"`
	After  any `json:"after"`
}

// Reaches reports whether some grants of HTTP cover another one.
type Reaches func(grants []string, asked string) bool

// item is a thing that two configurations can differ in.
type item struct {
	kind, name string
	// shown is for people, exact for comparison: it has secrets.
	shown, exact any
	// setting is what the item is a value of, or rules are the settings of a table.
	setting *config.Setting
	rules   []config.Setting
	// grants is set where a new one allows something.
	grants  bool
	restart bool
	// always is set where the item is there whenever its agent is: it is no change
	// that it comes and goes.
	always bool
}

// Compare lists what differs, in the order of the newer configuration and then
// of the older one. Modules are compared by the agents' SHA256.
func Compare(before, after *config.Config, reaches Reaches) []Change {
	old, fresh := items(before), items(after)
	changes := []Change{}
	for _, it := range fresh {
		was, there := find(old, it)
		switch {
		case !there && it.always:
		case !there:
			changes = append(changes, it.change(Added, nil, it.shown, it.grants || it.wider(item{}, reaches)))
		case !reflect.DeepEqual(was.exact, it.exact):
			b, a := differing(was, it)
			changes = append(changes, it.change(Changed, b, a, it.wider(was, reaches)))
		}
	}
	for _, it := range old {
		if _, there := find(fresh, it); !there && !it.always {
			changes = append(changes, it.change(Removed, it.shown, nil, false))
		}
	}
	return changes
}

func (it item) change(what string, before, after any, widened bool) Change {
	return Change{Kind: it.kind, Name: it.name, Change: what, Widened: widened, Restart: it.restart, Before: before, After: after}
}

func find(list []item, like item) (item, bool) {
	i := slices.IndexFunc(list, func(it item) bool { return it.kind == like.kind && it.name == like.name })
	if i < 0 {
		return item{}, false
	}
	return list[i], true
}

// differing leaves of two tables what differs.
func differing(was, is item) (before, after any) {
	b, isTable := was.shown.(map[string]any)
	a, both := is.shown.(map[string]any)
	if !isTable || !both {
		return was.shown, is.shown
	}
	exactB, exactA := was.exact.(map[string]any), is.exact.(map[string]any)
	left, right := map[string]any{}, map[string]any{}
	keys := maps.Clone(exactA)
	maps.Copy(keys, exactB)
	for key := range keys {
		if !reflect.DeepEqual(exactB[key], exactA[key]) {
			left[key], right[key] = b[key], a[key]
		}
	}
	return left, right
}
