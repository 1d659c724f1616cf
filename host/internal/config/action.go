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
	Trusted     bool
	Allow       Allow
	Pos         Pos
}

func (d *decoder) actions(t *table, k known) (out []Action, names []string) {
	names, subs := t.named("actions")
	for i, sub := range subs {
		a := d.action(names[i], sub, k)
		out = append(out, a)
		if a.Source.Kind != SourceHuman {
			d.needs("actions", sub.spot)
		}
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
		Allow:       d.allow(t.table("allow"), k),
		Pos:         d.pos(t.spot),
	}
	d.notRemote(t, "trusted")
	if d.human(t) {
		a.Source = Source{Kind: SourceHuman}
		for _, key := range []string{"description", "parameters"} {
			if !t.has(key) {
				t.missing(key, "; a human action has no code that could give it")
			}
		}
	} else {
		a.Source = d.source(t, a.SHA256, a.Trusted)
	}
	t.done()
	return a
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
		d.atValue(sp, fmt.Sprintf("%s must be \"human\", or begin with file:, bundled:, exec: or oci://", sp.path)).suggest(near)
	}
	return near != ""
}
