package narrowing

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"skep/host/internal/definition/config"
)

// exceeds lists what an agent asks for beyond one agent of the file.
func (f File) exceeds(at string, a, own config.Agent) Refused {
	r := f.wider(at, a.Allow, own.Allow, own.Name)
	r = append(r, over(at, a.Limits, own.Limits, own.Name)...)
	mine := own.Settings()
	for i, s := range a.Settings() {
		if _, isFlag := s.Value().(bool); isFlag && !s.Operator && s.Rule == config.Grant && s.Exceeds(mine[i]) {
			r = append(r, Reason{at + "." + s.Key, refusal("it", own.Name)})
		}
	}
	r = append(r, missing(at+".expose", a.Expose, own.Expose, own.Name)...)
	remote := slices.DeleteFunc(slices.Clone(a.CommTargets), func(t string) bool { return !strings.Contains(t, "@") })
	r = append(r, missing(at+".comm_targets", remote, own.CommTargets, own.Name)...)
	coded := slices.DeleteFunc(slices.Clone(a.Actions), func(name string) bool { return !f.coded(name) })
	return append(r, missing(at+".actions", coded, own.Actions, own.Name)...)
}

// over lists the limits beyond what one agent or action of the file has.
func over(at string, asked, own config.AgentLimits, name string) (r Refused) {
	section, _, _ := strings.Cut(at, ".")
	most := own.Settings()
	for i, s := range asked.Settings() {
		if s.Exceeds(most[i]) {
			r = append(r, Reason{at + ".limits." + s.Key, fmt.Sprintf("more than the %v of %s.%s in the operator's file", shown(most[i]), section, name)})
		}
	}
	return r
}

// shown is a limit in a message: an amount of money in millionths, as it is counted.
func shown(limit config.Setting) any {
	if usd, isMoney := limit.Value().(float64); isMoney {
		return math.Ceil(usd*1e6) / 1e6
	}
	return limit.Value()
}

// wider lists the grants beyond what one agent or action of the file has.
func (f File) wider(at string, a, own config.Allow, name string) (r Refused) {
	asked, has := sorted(a.Settings()), sorted(own.Settings())
	for i, s := range asked {
		path := at + ".allow." + s.Key
		switch v := s.Value().(type) {
		case []string:
			for _, one := range v {
				if !f.given(has[i], one, own) {
					r = append(r, Reason{path, refusal(fmt.Sprintf("%q", one), name)})
				}
			}
		case string:
			if s.Exceeds(has[i]) {
				r = append(r, Reason{path, refusal(fmt.Sprintf("%q", v), name)})
			}
		default:
			if s.Exceeds(has[i]) {
				r = append(r, Reason{path, refusal("it", name)})
			}
		}
	}
	return r
}

// sorted puts grants into the order in which they are refused: names, addresses,
// scopes, flags.
func sorted(grants []config.Setting) []config.Setting {
	place := func(s config.Setting) int {
		switch s.Value().(type) {
		case string:
			return 2
		case bool:
			return 3
		}
		return map[config.Rule]int{config.Web: 1}[s.Rule]
	}
	slices.SortStableFunc(grants, func(a, b config.Setting) int { return place(a) - place(b) })
	return grants
}

// given reports whether the file's own grants have one entry of the same list. What
// may be asked without a key may be asked with one.
func (f File) given(has config.Setting, entry string, own config.Allow) bool {
	list := has.Value().([]string)
	if has.Rule == config.Web {
		return f.Reaches(slices.Concat(list, own.HTTPNoKey), entry)
	}
	return slices.Contains(list, entry)
}

func missing(at string, asked, has []string, name string) (r Refused) {
	for _, v := range asked {
		if !slices.Contains(has, v) {
			r = append(r, Reason{at, refusal(fmt.Sprintf("%q", v), name)})
		}
	}
	return r
}

func refusal(what, name string) string {
	return fmt.Sprintf("the operator's file does not grant %s to %q, which runs on this module", what, name)
}

// Narrow returns what is left of a composition that was granted once, by what
// the file grants today, with what the file excepts today: breakpoints and excluded
// tools. Nothing is refused: tasks were begun with it, and they can
// still come to their end. Own is set where it was the operator's: its agents keep
// their names when their modules change.
func (f File) Narrow(x config.Composition, own bool) config.Composition {
	begun := x
	x.Swarm.EnableInterswarm = x.Swarm.EnableInterswarm && f.Config.Swarm.EnableInterswarm
	x.Swarm.AllowAgentDiscovery = x.Swarm.AllowAgentDiscovery && f.Config.Swarm.AllowAgentDiscovery
	f.addBreakpoints(&x.Swarm, x.Actions)
	x.Agents, x.Actions = slices.Clone(x.Agents), slices.Clone(x.Actions)
	for i := range x.Agents {
		a := &x.Agents[i]
		today, ok := f.today(*a, own)
		if !ok {
			f.keepLocal(a)
			continue
		}
		a.Allow = f.narrowAllow(a.Allow, today.Allow)
		a.Limits = narrowLimits(a.Limits, today.Limits)
		f.narrowPart(a, today)
	}
	f.narrowActions(x, own)
	finishable(x, begun)
	return x
}

// today finds the agent of the file that an older one is held against.
func (f File) today(a config.Agent, own bool) (config.Agent, bool) {
	if named, ok := f.Config.Agent(a.Name); own && ok {
		return named, true
	}
	a.Source = config.Source{} // the module decides
	return f.yardstick(a)
}

// narrowAllow leaves of grants what others have too.
func (f File) narrowAllow(a, own config.Allow) config.Allow {
	has := own.Settings()
	for i, s := range a.Settings() {
		if list, isList := s.Value().([]string); isList {
			s.Set(slices.DeleteFunc(slices.Clone(list), func(v string) bool { return !f.given(has[i], v, own) }))
		} else {
			s.Narrow(has[i])
		}
	}
	return a
}

// narrowLimits leaves the smaller of two limits. One of 0 asks for all that the
// other one has.
func narrowLimits(a, own config.AgentLimits) config.AgentLimits {
	most := own.Settings()
	for i, s := range a.Settings() {
		s.Narrow(most[i])
	}
	return a
}
