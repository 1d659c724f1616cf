package narrowing

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"skep/host/internal/definition/config"
	"skep/spec/mail"
)

// File is what an operator grants. It is not changed and may be shared.
type File struct {
	Config *config.Config
	// Modules are the digests of the modules of the file's agents, by name, and of
	// its actions, by "actions/" and their name.
	Modules map[string]string
	// Reaches reports whether some grants of HTTP cover another one.
	Reaches func(grants []string, asked string) bool
}

// Reason is why a definition is refused, at the path of a setting.
type Reason struct{ Path, Text string }

// Refused are the reasons against a definition.
type Refused []Reason

// maxReasons is how many reasons an error names.
const maxReasons = 10

// Error gives the first reasons, each with its path.
func (r Refused) Error() string {
	var b strings.Builder
	for i, one := range r {
		if i == maxReasons {
			fmt.Fprintf(&b, "; and %d more", len(r)-i)
			break
		}
		if i > 0 {
			b.WriteString("; ")
		}
		if one.Path != "" && !strings.HasPrefix(one.Text, one.Path) {
			b.WriteString(one.Path + ": ")
		}
		b.WriteString(one.Text)
	}
	return b.String()
}

// Own returns the file's own composition, every module named by its digest.
func (f File) Own() config.Composition {
	x := f.Config.Composition()
	for i := range x.Agents {
		x.Agents[i].SHA256 = f.Modules[x.Agents[i].Name]
	}
	for i := range x.Actions {
		if a := &x.Actions[i]; f.coded(a.Name) {
			a.SHA256 = cmp.Or(f.Modules[actionModule+a.Name], a.SHA256)
		}
	}
	return x
}

// actionModule begins the name of an action's module.
const actionModule = "actions/"

// Admit reads a definition that came over the network and completes it from the file: the
// digests of modules, and the limits of its agents. Its error is [Refused].
func (f File) Admit(text []byte) (config.Composition, error) {
	x, err := f.Config.ParseComposition(text)
	var faults config.Faults
	if errors.As(err, &faults) {
		var r Refused
		for _, fault := range faults {
			r = append(r, Reason{fault.Path, fault.Message})
		}
		return config.Composition{}, r
	}
	if err != nil {
		return config.Composition{}, err
	}
	r := f.admitSwarm(&x.Swarm, x.Actions)
	for i := range x.Actions {
		r = append(r, f.admitAction(&x.Actions[i])...)
	}
	for i := range x.Agents {
		r = append(r, f.admitAgent(&x.Agents[i])...)
	}
	if len(r) > 0 {
		return config.Composition{}, r
	}
	return x, nil
}

// admitSwarm also adds the breakpoints of the file.
func (f File) admitSwarm(s *config.Swarm, actions []config.Action) (r Refused) {
	own := f.Config.Swarm
	if s.Name != own.Name {
		r = append(r, Reason{"swarm.name", fmt.Sprintf("the name of the swarm is %q and stays so", own.Name)})
	}
	if s.EnableInterswarm && !own.EnableInterswarm {
		r = append(r, Reason{"swarm.enable_interswarm", "the operator's file does not grant it"})
	}
	if s.AllowAgentDiscovery && !own.AllowAgentDiscovery {
		r = append(r, Reason{"swarm.allow_agent_discovery", "the operator's file does not grant it"})
	}
	if s.Public && !own.Public {
		r = append(r, Reason{"swarm.public", "the operator's file does not grant it"})
	}
	f.addBreakpoints(s, actions)
	return r
}

// addBreakpoints keeps what the file lets people decide, as far as the composition has
// such tools.
func (f File) addBreakpoints(s *config.Swarm, actions []config.Action) {
	tools := slices.DeleteFunc(slices.Clone(f.Config.Swarm.BreakpointTools), func(tool string) bool {
		return !slices.Contains(mail.Tools(), tool) && !slices.ContainsFunc(actions, func(a config.Action) bool { return a.Name == tool })
	})
	s.BreakpointTools = withAll(s.BreakpointTools, tools)
}

// withAll returns a list with those of others that it lacks. It does not change the list.
func withAll(list, others []string) []string {
	list = slices.Clip(list)
	for _, one := range others {
		if !slices.Contains(list, one) {
			list = append(list, one)
		}
	}
	return list
}

// admitAction lets people answer what they like, and code be what the file has
// under the same name.
func (f File) admitAction(a *config.Action) Refused {
	at := "actions." + a.Name
	i := slices.IndexFunc(f.Config.Actions, func(own config.Action) bool { return own.Name == a.Name })
	if a.Source.Kind == config.SourceHuman {
		if f.coded(a.Name) {
			return Refused{{at, "the operator's file has an action of this name that has code"}}
		}
		return nil
	}
	if i < 0 || !f.coded(a.Name) {
		return Refused{{at, "the operator's file has no action of this name with code"}}
	}
	own := f.Config.Actions[i]
	r := f.wider(at, a.Allow, own.Allow, own.Name)
	digest := cmp.Or(f.Modules[actionModule+own.Name], own.SHA256)
	if a.Source.Kind != "" && a.Source != own.Source || a.SHA256 != "" && a.SHA256 != own.SHA256 && a.SHA256 != digest {
		r = append(r, Reason{at, "its code is not that of the operator's file"})
	}
	r = append(r, over(at, a.Limits, own.Limits, own.Name)...)
	r = append(r, missing(at+".actions", slices.DeleteFunc(slices.Clone(a.Actions), func(name string) bool { return !f.coded(name) }), own.Actions, own.Name)...)
	if len(a.Parameters) > len("{}") && !same(a.Parameters, own.Parameters) {
		r = append(r, Reason{at + ".parameters", "what its arguments must be is the operator's file's to say; leave it out"})
	}
	if len(a.Params) > len("{}") && !same(a.Params, own.Params) {
		r = append(r, Reason{at + ".params", "what its code is given is the operator's file's to say; leave it out"})
	}
	if a.Timeout > own.Timeout {
		r = append(r, Reason{at + ".timeout", fmt.Sprintf("the operator's file allows %v", own.Timeout)})
	}
	if len(r) == 0 {
		if own.Source.Kind == config.SourceMCP { // its code does not say what it is
			a.Description = cmp.Or(a.Description, own.Description)
		}
		a.Parameters, a.Params = own.Parameters, own.Params
		a.Source, a.SHA256, a.Trusted, a.Limits = own.Source, digest, own.Trusted, narrowLimits(a.Limits, own.Limits)
		a.Limits.Turn, a.Files, a.Partners = a.Timeout, own.Files, own.Partners
	}
	return r
}

// same reports whether two JSON documents say the same.
func same(a, b json.RawMessage) bool {
	var one, other any
	return json.Unmarshal(a, &one) == nil && json.Unmarshal(b, &other) == nil && reflect.DeepEqual(one, other)
}

// coded reports whether the file has an action with code of that name.
func (f File) coded(name string) bool {
	return slices.ContainsFunc(f.Config.Actions, func(a config.Action) bool {
		return a.Name == name && a.Source.Kind != config.SourceHuman
	})
}

// admitAgent completes an agent from its yardstick.
func (f File) admitAgent(a *config.Agent) Refused {
	at := "agents." + a.Name
	own, ok := f.yardstick(*a)
	if !ok {
		return Refused{{at + ".sha256", "no agent of the operator's file runs on this module"}}
	}
	if own.Source.Kind == config.SourceExec && own.Name != a.Name {
		return Refused{{at, fmt.Sprintf("it would run outside the sandbox, which the operator's file allows agent %q alone", own.Name)}}
	}
	if r := f.exceeds(at, *a, own); len(r) > 0 {
		return r
	}
	f.complete(a, own)
	return nil
}

// yardstick is the agent of the file that an agent is held against, if one runs
// on its module.
func (f File) yardstick(a config.Agent) (first config.Agent, ok bool) {
	module := f.module(a)
	for _, own := range f.Config.Agents {
		switch {
		case module == "" || f.Modules[own.Name] != module:
		case own.Name == a.Name:
			return own, true
		case !ok:
			first, ok = own, true
		}
	}
	return first, ok
}

// module is the digest of the module that an agent names, empty if the file has
// no such. The file may have one module under two sources.
func (f File) module(a config.Agent) string {
	for _, own := range f.Config.Agents {
		named := a.Source.Kind == "" || a.Source.Kind == own.Source.Kind && a.Source.Ref == own.Source.Ref
		if digest := f.Modules[own.Name]; named && (a.SHA256 == "" || a.SHA256 == digest) {
			return digest
		}
	}
	return ""
}

func (f File) complete(a *config.Agent, own config.Agent) {
	a.Source, a.SHA256, a.Trusted = own.Source, f.Modules[own.Name], own.Trusted
	a.Limits = narrowLimits(a.Limits, own.Limits)
	a.ExcludeTools = withAll(a.ExcludeTools, own.ExcludeTools)
}
