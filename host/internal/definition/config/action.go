package config

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"skep/host/internal/spelling"
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
	Effect      string // EffectRead or EffectWrite; empty leaves it to the code
	Timeout     time.Duration
	Trusted     bool     // may run outside the sandbox
	Readable    []string // what a subprocess may read, as paths on disk
	Actions     []string // that its code may call
	Allow       Allow
	// RepeatableByID allows a tool what Allow.RetryInDoubt does not, at a server that finds
	// repeats: the file leaves it to the tool.
	RepeatableByID bool
	Limits         AgentLimits // of one call; Timeout is its Turn, and it has no budget
	Files          Files
	Partners       []string // that it reaches, for a source gateway:
	Pos            Pos
}

// Effects of actions.
const (
	EffectRead  = "read" // changes nothing
	EffectWrite = "write"
)

// effect reads one of the effects, or none.
func (t *table) effect(key string) string {
	if t.text(key, "") == "" {
		return ""
	}
	return t.oneOf(key, "", EffectWrite, EffectRead)
}

func (d *decoder) actions(t *table) (out []Action) {
	names, subs := t.named("actions")
	d.known.actions = names
	for i, sub := range subs {
		out = append(out, d.action(names[i], sub))
	}
	return out
}

// settings are in the order of a composition's JSON, by whose digest it is known.
// The settings of [Files] stand in the same table.
func (a *Action) Settings() []Setting {
	return []Setting{
		readElsewhere(&a.Source, "source", "string", "Who does it: the code, as for an agent, or `human`, `builtin:fs/ACTION`, `gateway:GATEWAY/VERB` or `mcp:SERVER/TOOL`.").neededElsewhere(),
		field(&a.SHA256, "sha256", "digest", (*table).digest, "Digest of the module in hexadecimal digits; code with another one is refused."),
		text(&a.Description, "description", "What it does, for models and people."),
		field(&a.Parameters, "parameters", "table", (*table).params, "JSON Schema of its arguments; for `human`, else the code has it."),
		field(&a.Params, "params", "table", (*table).params, "What its code is given with each call, as it is.").sameAsFile(),
		choice(&a.Effect, "effect", "", []string{EffectWrite, EffectRead}, "`read` if it changes nothing: who has no permission to write may have it run by `bundled:tool`, and gateways show it. By default what its code says.").
			readBy(func(t *table, s Setting) { a.Effect = t.effect(s.Key) }).by(Grant),
		span(&a.Timeout, "timeout", 2*time.Minute, time.Millisecond, day, "Wall time of one call.").by(Grant),
		field(&a.Actions, "actions", "list of actions", (*table).actionNames, "Actions that its code may call.").by(Grant),
		section("allow", a.Allow.Settings(), "What it may do beyond mail, as an agent's."),
		section("limits", a.Limits.ofCalls(), "What one call may use.").readBy(callLimits).by(Fixed),
		boolean(&a.Trusted, "trusted", false, "Its program may run outside the sandbox; for `exec:` sources.").by(Grant).ofOperator(),
		readElsewhere(&a.Readable, "readable", "list of paths", "Files and directories its process may read; for `exec:` sources.").by(Grant).ofOperator(),
		field(&a.Partners, "partners", "list of partners", (*table).texts, "Partners of the gateway that it reaches; for `gateway:` sources.").by(Grant).ofOperator(),
	}
}

func (d *decoder) action(name string, t *table) Action {
	switch {
	case mail.ReservedTool(name):
		d.atKey(t.location, fmt.Sprintf("an action must not be called %q, which is a MAIL tool", name))
	case !actionName.MatchString(name):
		d.atKey(t.location, fmt.Sprintf("the name of an action must be 1 to 64 of a-z, 0-9 and \"_\", beginning with a letter, not %q", name))
	}
	a := Action{Name: name, Pos: d.pos(t.location)}
	t.read(a.Settings())
	a.Limits.Turn = a.Timeout
	d.resolveParamGrants(t, a.Params, &a.Allow)
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
	} else if d.acted(t) {
		d.gatewayAction(&a, t)
	} else if d.tool(t) {
		d.toolAction(&a, t, d.known.mcp)
	} else {
		a.Source = d.source(t, a.SHA256, a.Trusted)
	}
	a.Readable = d.readable(t, a.Source)
	d.checkProcess(t, a.Source)
	d.checkParams(t, a.Source)
	d.untrusted(t, a.Trusted, a.Source)
	if t.has("partners") && a.Source.Kind != SourceGateway && a.Source.Kind != "" {
		d.atKey(t.child("partners"), "partners is only for gateway: sources; it names whom they reach")
	}
	t.refuseUnknown()
	return a
}

// callLimits reads the limits of one call of an action. Its wall time is timeout,
// and what it spends counts to the agent whose turn it is.
func callLimits(t *table, limits Setting) {
	t = t.table(limits.Key)
	for _, s := range new(AgentLimits).Settings() {
		if s.Agents && t.has(s.Key) {
			t.d.atKey(t.child(s.Key), fmt.Sprintf("%s.%s is for agents; the time of an action is bounded by timeout, and what it spends is its caller's", t.path, s.Key))
			s.read(t, s)
		}
	}
	t.read(limits.Nested)
	t.refuseUnknown()
}

// used are the settings that its source has a use for.
func (a *Action) used() []Setting {
	all := slices.DeleteFunc(a.Settings(), func(s Setting) bool { return s.Key == "limits" && !a.Source.Kind.Coded() })
	for i := range all {
		all[i].always = all[i].Key == "parameters" && a.Source.Kind == SourceHuman // one for people needs some, be they empty
	}
	return all
}

// human reports whether a person answers an action, or is meant to.
func (d *decoder) human(t *table) bool {
	raw, sp, _ := t.lookUp("source")
	text, _ := raw.(string)
	if text == string(SourceHuman) {
		return true
	}
	near := spelling.Nearest(text, []string{string(SourceHuman)})
	if near != "" {
		d.atValue(sp, fmt.Sprintf("%s must be \"human\", or begin with %s", sp.path, d.schemes(actionSchemes))).suggest(near)
	}
	return near != ""
}
