package plan

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"skep/host/internal/definition/config"
)

func items(c *config.Config) (out []item) {
	for _, s := range c.Swarm.Settings() {
		out = append(out, of("swarm", s.Key, s))
	}
	for _, a := range c.Agents {
		out = append(out, table("agent", a.Name, a, a.Settings(), "name", "allow", "limits", "source"))
		out[len(out)-1].source(a.Source)
		out = append(out, grants(a.Name, a.Allow)...)
	}
	for _, a := range c.Actions {
		out = append(out, table("action", a.Name, a, a.Settings(), "name", "allow", "source", "files"))
		out[len(out)-1].source(a.Source)
		out = append(out, grants("actions."+a.Name, a.Allow)...)
		out = append(out, files("actions."+a.Name, a.Files)...)
	}
	out = append(out, limits(c)...)
	for _, m := range c.Models {
		m := table("model", m.Name, m, nil, "name")
		m.grants = false // agents that may ask it are what grants it
		out = append(out, m)
	}
	for _, s := range c.Secrets {
		out = append(out, table("secret", s.Name, s, s.Settings(), "name"))
	}
	for _, m := range c.MCP {
		out = append(out, table("mcp", m.Name, m, m.Settings(), "name", "tools", "in_use"))
	}
	for _, p := range c.Peers {
		out = append(out, table("peer", p.Name, p, p.Settings(), "name", "tls"))
	}
	for _, t := range c.Tenants {
		out = append(out, tenantItems(t)...)
	}
	for _, g := range c.Gateways {
		out = append(out, fixed(table("gateway", g.Name, g, g.Settings())))
		for _, p := range g.Partners {
			out = append(out, table("partner", g.Name+"."+p.Name, p, p.Settings()))
		}
	}
	return append(out, server(c)...)
}

// of makes an item of one setting.
func of(kind, name string, s config.Setting) item {
	v := reflect.ValueOf(s.Value())
	return item{kind: kind, name: name, shown: plain(v, false), exact: plain(v, true), setting: &s, restart: s.Restart}
}

// grants are what an agent or action is given at all, lists first and then the
// others.
func grants(holder string, a config.Allow) (out []item) {
	all := a.Settings()
	slices.SortStableFunc(all, func(a, b config.Setting) int { return form(a) - form(b) })
	for _, s := range all {
		it := of("grant", holder+"."+s.Key, s)
		it.always = s.Default == "true"
		if given := s.Amount() > 0 || len(strs(it.exact)) > 0; given || it.always {
			out = append(out, it)
		}
	}
	return out
}

// form orders settings by what their values are: lists, words, flags.
func form(s config.Setting) int {
	switch s.Value().(type) {
	case string:
		return 1
	case bool:
		return 2
	}
	return 0
}

// files are what a file action reaches and how much it may move.
func files(action string, f config.Files) (out []item) {
	for _, s := range f.InEffect() {
		it := of("grant", action+"."+s.Key, s)
		if s.Limit {
			it.kind, it.shown, it.exact, it.always = "limit", s.Text(), s.Text(), true
		}
		if s.Amount() > 0 || s.Rule == config.Fixed {
			out = append(out, it)
		}
	}
	return out
}

// limits are the limits of turns, tasks and modules.
func limits(c *config.Config) (out []item) {
	for _, l := range config.InForce(c) {
		if strings.HasPrefix(l.Key, "limits.") || strings.HasPrefix(l.Key, "agents.") {
			out = append(out, item{kind: "limit", name: l.Key, shown: l.Value, exact: l.Value, setting: &l.Setting, always: true, restart: l.Setting.Restart})
		}
	}
	return out
}

// tenantItems returns an item for a tenant, and one for each of its settings.
func tenantItems(t config.Tenant) []item {
	out := []item{fixed(table("tenant", t.Name, t, nil, "name"))}
	out[0].exact = map[string]any{} // its keys are compared one by one
	for _, s := range t.Settings() {
		out = append(out, item{kind: "limit", name: "tenants." + t.Name + "." + s.Key, shown: s.Text(), exact: s.Text(), setting: &s, always: true, restart: s.Restart})
	}
	return out
}

// server is all that the rest of the file says.
func server(c *config.Config) []item {
	out := fields("", c.Server)
	out = append(out, fields("auth.", c.Auth)...)
	out = append(out, fields("store.", c.Store)...)
	out = append(out, fields("cluster.", c.Cluster)...)
	for _, s := range c.Telemetry.Settings() {
		out = append(out, of("server", "telemetry."+s.Key, s))
	}
	for _, s := range c.Console.Settings() {
		out = append(out, of("server", "console."+s.Key, s))
	}
	for _, s := range c.Questions.Settings() {
		out = append(out, of("server", "questions."+s.Key, s))
	}
	return out
}

func fixed(it item) item {
	it.restart = true
	return it
}

// source shows where code comes from as the file does.
func (it *item) source(s config.Source) {
	text := string(s.Kind) + ":" + s.Ref
	it.shown.(map[string]any)["source"], it.exact.(map[string]any)["source"] = text, text
}

// table makes one item of a table, which is compared by the rules of some settings.
func table(kind, name string, v any, rules []config.Setting, without ...string) item {
	shown, exact := plain(reflect.ValueOf(v), false).(map[string]any), plain(reflect.ValueOf(v), true).(map[string]any)
	for _, key := range without {
		delete(shown, key)
		delete(exact, key)
	}
	return item{kind: kind, name: name, shown: shown, exact: exact, rules: rules, grants: true}
}

// fields makes an item of every key of a table that takes a restart.
func fields(prefix string, v any) (out []item) {
	shown, exact := plain(reflect.ValueOf(v), false).(map[string]any), plain(reflect.ValueOf(v), true).(map[string]any)
	for i := range reflect.TypeOf(v).NumField() {
		if key := snake(reflect.TypeOf(v).Field(i).Name); exact[key] != nil {
			out = append(out, item{kind: "server", name: prefix + key, shown: shown[key], exact: exact[key], restart: true})
		}
	}
	return out
}

const redacted = "[secret]"

// plain gives a value the form of JSON. Exact forms hold what secrets are.
func plain(v reflect.Value, exact bool) any {
	switch v := v.Interface().(type) {
	case config.Secret:
		if exact {
			return v.Reveal()
		}
		if v == "" {
			return nil
		}
		return redacted
	case json.RawMessage:
		return string(v)
	case interface{ String() string }:
		return v.String()
	}
	if form := fileForm(v.Interface(), exact); form != nil {
		return form
	}
	switch v.Kind() {
	case reflect.Struct:
		return plainStruct(v, exact)
	case reflect.Array: // of a digest
		if exact {
			return v.Interface()
		}
		return redacted
	case reflect.Slice:
		list := []any{}
		for i := range v.Len() {
			list = append(list, plain(v.Index(i), exact))
		}
		return list
	case reflect.Map:
		table := map[string]any{}
		for _, key := range v.MapKeys() {
			table[key.String()] = plain(v.MapIndex(key), exact)
		}
		return table
	}
	return v.Interface()
}

// plainStruct leaves out where in the file a table stands. What is embedded has no table
// of its own.
func plainStruct(v reflect.Value, exact bool) map[string]any {
	table := map[string]any{}
	for i := range v.NumField() {
		switch f := v.Type().Field(i); {
		case !f.IsExported(), f.Type == reflect.TypeFor[config.Pos]():
		case f.Anonymous:
			maps.Copy(table, plainStruct(v.Field(i), exact))
		default:
			table[snake(f.Name)] = plain(v.Field(i), exact)
		}
	}
	return table
}

// snake writes the name of a field as the key in the file.
func snake(name string) string {
	var b strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		if unicode.IsUpper(r) && i > 0 && (unicode.IsLower(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
