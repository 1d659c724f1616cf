package config

import (
	"encoding/json"
	"fmt"
	"time"

	"skep/spec/mail"
)

// Action is one [actions.NAME] table.
type Action struct {
	Name        string
	Source      Source
	SHA256      string
	Description string
	Parameters  json.RawMessage // JSON Schema, for a human action
	Params      json.RawMessage
	Timeout     time.Duration
	Trusted     bool     // may run outside the sandbox
	Readable    []string // what a subprocess may read, as paths on disk
	Actions     []string // that its code may call
	Allow       Allow
	Limits      AgentLimits // of one call; Timeout is its Turn, and it has no budget
	Files       Files
	Pos         Pos
}

func (d *decoder) actions(t *table, k known) (out []Action, names []string) {
	names, subs := t.named("actions")
	k.actions = names
	for i, sub := range subs {
		out = append(out, d.action(names[i], sub, k))
	}
	return out, names
}

func (d *decoder) action(name string, t *table, k known) Action {
	switch {
	case mail.ReservedTool(name):
		d.atKey(t.spot, fmt.Sprintf("an action must not be called %q, which is a MAIL tool", name))
	case !actionName.MatchString(name):
		d.atKey(t.spot, fmt.Sprintf("the name of an action must be 1 to 64 of a-z, 0-9 and \"_\", beginning with a letter, not %q", name))
	}
	a := Action{
		Name:        name,
		SHA256:      t.digest("sha256"),
		Description: t.text("description", ""),
		Parameters:  t.params("parameters"),
		Params:      t.params("params"),
		Timeout:     t.duration("timeout", 2*time.Minute, within(time.Millisecond, 24*time.Hour)),
		Trusted:     t.boolean("trusted", false),
		Actions:     t.among("actions", "action", k.actions),
		Allow:       d.allow(t.table("allow"), k),
		Limits:      d.actionLimits(t.table("limits")),
		Pos:         d.pos(t.spot),
	}
	d.notRemote(t, "trusted")
	a.Limits.Turn = a.Timeout
	if d.human(t) {
		a.Source, a.Limits = Source{Kind: SourceHuman}, AgentLimits{}
		for _, key := range []string{"actions", "limits"} {
			if t.has(key) {
				d.atKey(t.child(key), fmt.Sprintf("%s.%s is for actions with code", t.path, key))
			}
		}
		for _, key := range []string{"allow", "params"} {
			if t.has(key) {
				d.warn(t.child(key), fmt.Sprintf("%s.%s has no effect: a person answers this action", t.path, key))
			}
		}
		for _, key := range []string{"description", "parameters"} {
			if !t.has(key) && (d.remote == nil || !d.remote.literal) {
				t.missing(key, "; a human action has no code that could give it")
			}
		}
	} else if d.builtin(t) {
		d.builtinAction(&a, t)
	} else if d.tool(t) {
		d.toolAction(&a, t, k.mcp)
	} else {
		a.Source = d.source(t, a.SHA256, a.Trusted)
	}
	a.Readable = d.readable(t, a.Source)
	d.checkProcess(t, a.Source)
	d.checkParams(t, a.Source)
	d.untrusted(t, a.Trusted, a.Source)
	t.done()
	return a
}

// actionLimits reads the limits of one call of an action. Its wall time is timeout,
// and what it spends counts to the agent whose turn it is.
func (d *decoder) actionLimits(t *table) AgentLimits {
	for _, key := range []string{"turn", "tokens", "usd"} {
		if t.has(key) {
			d.atKey(t.child(key), fmt.Sprintf("%s.%s is for agents; the time of an action is bounded by timeout, and what it spends is its caller's", t.path, key))
		}
	}
	return d.agentLimits(t)
}

// human reports whether a person answers an action, or is meant to.
func (d *decoder) human(t *table) bool {
	raw, sp, _ := t.take("source")
	text, _ := raw.(string)
	if text == string(SourceHuman) {
		return true
	}
	near := nearest(text, []string{string(SourceHuman)})
	if near != "" {
		d.atValue(sp, fmt.Sprintf("%s must be \"human\", or begin with %s", sp.path, d.schemes("builtin:, mcp:, "))).suggest(near)
	}
	return near != ""
}
