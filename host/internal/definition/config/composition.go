package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
)

// Composition is what of a configuration may come over the network: which agents
// there are, and how they work together.
type Composition struct {
	Swarm   Swarm
	Agents  []Agent // in their order, as the actions
	Actions []Action
}

// Bounds of a composition that comes as JSON.
const (
	maxComposition = 512 << 10 // bytes
	maxComposed    = 256       // agents, and actions
)

// Composition returns the composition of the file.
func (c *Config) Composition() Composition {
	return Composition{Swarm: c.Swarm, Agents: slices.Clone(c.Agents), Actions: slices.Clone(c.Actions)}
}

// With returns the configuration with another composition. Places of faults are
// places in the file.
func (c *Config) With(x Composition) *Config {
	with := *c
	with.Swarm, with.Agents, with.Actions = x.Swarm, x.Agents, x.Actions
	return &with
}

// Digest is the sha256 of the composition's JSON in hexadecimal digits.
func (x Composition) Digest() string {
	sum := sha256.Sum256(x.JSON())
	return hex.EncodeToString(sum[:])
}

// remote is how a composition is read that is not a part of the file.
type remote struct {
	// sources are those that the file names, by their text.
	sources map[string]Source
	// literal texts are as the file's references gave them.
	literal bool
}

// ParseComposition reads a composition that came over the network: JSON of the
// shape of [swarm], [agents] and [actions]. The names of models and secrets, and
// sources, are the ones in c. It refers to nothing outside: no file, no variable,
// no program. A limit that it does not name is 0, a grant none. Its error is
// [Faults].
func (c *Config) ParseComposition(text []byte) (Composition, error) {
	return c.parseComposition(text, false)
}

// RecallComposition reads what [Composition.JSON] gave, maybe of another
// configuration.
func (c *Config) RecallComposition(text []byte) (Composition, error) {
	return c.parseComposition(text, true)
}

func (c *Config) parseComposition(text []byte, literal bool) (Composition, error) {
	src := newSource("definition", string(text))
	values, root, fault := readJSON(src, literal)
	if fault != nil {
		return Composition{}, Faults{*fault}
	}
	d := &decoder{src: src, unimplemented: refusedCapabilities(), remote: &remote{sources: map[string]Source{}, literal: literal}}
	for _, a := range c.Agents {
		d.remote.sources[a.Source.text()] = a.Source
	}
	for _, a := range c.Actions {
		d.remote.sources[a.Source.text()] = a.Source
	}
	for _, m := range c.Models {
		d.known.models = append(d.known.models, m.Name)
	}
	for _, s := range c.Secrets {
		d.known.secrets = append(d.known.secrets, s.Name)
	}
	x := d.composition(&table{location: location{node: root}, d: d, values: values})
	if len(d.faults) > 0 {
		return Composition{}, d.result()
	}
	return x, nil
}

func (d *decoder) composition(t *table) Composition {
	for _, key := range slices.Sorted(maps.Keys(t.values)) {
		if !slices.Contains([]string{"swarm", "agents", "actions"}, key) {
			_, sp, _ := t.lookUp(key)
			d.atKey(sp, fmt.Sprintf("%s: a definition has [swarm], [agents] and [actions]; everything else is the operator's", sp.path))
		}
	}
	for _, key := range []string{"agents", "actions"} {
		if n, _ := t.values[key].(map[string]any); len(n) > maxComposed {
			d.atKey(t.child(key), fmt.Sprintf("%s has %d entries, at most %d", key, len(n), maxComposed))
			return Composition{}
		}
	}
	c := &Config{Swarm: d.swarm(t.table("swarm"))}
	c.Actions = d.actions(t)
	drafts := d.agents(t, c.Swarm)
	d.checkSwarm(c, t, drafts)
	for _, a := range drafts {
		c.Agents = append(c.Agents, a.Agent)
	}
	return c.Composition()
}

// notRemote refuses a key that only the file may have.
func (d *decoder) notRemote(t *table, key string) {
	if d.remote != nil && t.has(key) {
		d.atKey(t.child(key), t.child(key).path+": only the operator's file may say so")
	}
}

// text writes a source as the file does.
func (s Source) text() string {
	if s.Ref == "" {
		return string(s.Kind)
	}
	return string(s.Kind) + ":" + s.Ref
}

// remoteSource reads a source that is not in the file: the file has to name it
// too. Without one the code is named by its digest.
func (d *decoder) remoteSource(t *table, sha256 string) Source {
	v, ok := t.value("source")
	switch {
	case ok && d.remote.literal:
		s, known := d.remote.sources[v.text]
		if !known {
			s.Kind = SourceKind(v.text)
		}
		return s
	case !ok && !t.has("source"):
		if sha256 == "" {
			t.missing("sha256", ", and so is source; one of them names a module that the operator's file has")
		}
		return Source{}
	case !ok:
		return Source{}
	}
	s, known := d.remote.sources[v.text]
	if !known || s.Kind == SourceExec || s.Kind == SourceOCI || s.Kind == SourceHuman {
		d.atValue(v.location, fmt.Sprintf("%s is %s, which is no module that the operator's file names; a definition over the network brings no code", v.path, v.shown))
		return Source{}
	}
	return s
}
