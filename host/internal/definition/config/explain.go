package config

import "fmt"

// Limit is one limit in force.
type Limit struct {
	Key   string `json:"key"`   // as in the file: agents.calc.limits.memory
	Value string `json:"value"` // in the units of the file, or "unlimited"
	Set   bool   `json:"set"`   // by the file; otherwise it is the default
}

const unlimited = "unlimited"

// Effective is a limit in force and its declaration.
type Effective struct {
	Limit
	Setting Setting
}

// Explain lists every limit that is in force, where bundled modules come from, and what
// grants that refer to params and declarations of messages stand for.
func Explain(c *Config) (out []Limit) {
	for _, l := range InForce(c) {
		out = append(out, l.Limit)
	}
	for _, a := range c.Agents {
		out = append(out, explainSource(a.Source, "agents."+a.Name)...)
		out = append(out, explainGrants(a.Allow, "agents."+a.Name)...)
	}
	for _, a := range c.Actions {
		out = append(out, explainSource(a.Source, "actions."+a.Name)...)
		out = append(out, explainGrants(a.Allow, "actions."+a.Name)...)
	}
	for _, g := range c.Gateways {
		if own, ok := g.Protocol.(*ACP); ok {
			out = append(out, own.explain()...)
		}
	}
	return out
}

// explain shows what the file of dsl declares.
func (a *ACP) explain() (out []Limit) {
	for _, d := range a.Declared() {
		out = append(out, Limit{Key: "gateways.acp.dsl." + d.Name, Value: d.Text, Set: true})
	}
	return out
}

// explainSource shows where a bundled module comes from.
func explainSource(s Source, table string) []Limit {
	if s.Kind != SourceBundled {
		return nil
	}
	return []Limit{{Key: table + ".source", Value: "bundled:" + s.Ref + ", " + s.where(), Set: true}}
}

// explainGrants shows what references to params stand for.
func explainGrants(a Allow, table string) (out []Limit) {
	for _, g := range a.FromParams {
		out = append(out, Limit{Key: table + ".allow." + g.Key, Value: fmt.Sprintf("%q is %s", g.Text, g.Grant), Set: true})
	}
	return out
}

// InForce lists every limit that is in force with its declaration.
func InForce(c *Config) []Effective {
	e := &explainer{c: c}
	e.list(c.Limits.Settings(), "limits")
	e.list(c.Server.Settings(), "server")
	e.list(c.Store.Settings(), "store")
	if c.Cluster.Advertise != "" {
		e.list(c.Cluster.Settings(), "cluster")
	}
	for _, t := range c.Tenants {
		if c.root.child("tenants").child(t.Name) != nil {
			e.list(t.Settings(), "tenants", t.Name)
		}
	}
	for _, a := range c.Agents {
		e.process = a.Source.Kind == SourceExec
		e.list(a.Settings(), "agents", a.Name)
	}
	for _, a := range c.Actions {
		if a.Source.Kind != SourceHuman { // people have no bound
			e.process = a.Source.Kind == SourceExec
			e.list(a.used(), "actions", a.Name)
			e.list(a.Files.InEffect(), "actions", a.Name)
		}
	}
	for _, m := range c.MCP {
		e.list(m.Settings(), "mcp", m.Name)
	}
	for _, g := range c.Gateways {
		e.list(g.Settings(), "gateways", g.Name)
		for _, p := range g.Partners {
			e.list(p.Settings(), "gateways", g.Name, "partners", p.Name)
		}
	}
	return e.out
}

// explainer collects limits in the order in which they are listed.
type explainer struct {
	c       *Config
	process bool // limits of the sandbox do not hold
	out     []Effective
}

func (e *explainer) list(settings []Setting, path ...string) {
	at := location{node: e.c.root}
	for _, name := range path {
		at = at.child(name)
	}
	for _, s := range settings {
		if here := at.child(s.Key); s.Limit && !(e.process && s.Sandbox) {
			e.out = append(e.out, Effective{Limit{here.path, s.Text(), e.c.root != nil && !here.absent}, s})
		}
		e.list(s.Nested, append(path[:len(path):len(path)], s.Key)...)
	}
}
