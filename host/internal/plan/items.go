package plan

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"skep/host/internal/config"
)

// never is for what allows nothing by itself, always for what does when it is new.
func never(any, any) bool { return false }

func whenNew(before, _ any) bool { return before == nil }

func items(c *config.Config, reaches Reaches) (out []item) {
	out = append(out, fields("swarm", "", c.Swarm, false, swarmWider)...)
	for _, a := range c.Agents {
		out = append(out, whole("agent", a.Name, a, agentWider, "name", "allow", "limits", "source"))
		out[len(out)-1].source(a.Source)
		out = append(out, grants(a.Name, a.Allow, reaches)...)
	}
	for _, a := range c.Actions {
		out = append(out, whole("action", a.Name, a, actionWider, "name", "allow", "source", "files"))
		out[len(out)-1].source(a.Source)
		out = append(out, grants("actions."+a.Name, a.Allow, reaches)...)
		out = append(out, files("actions."+a.Name, a.Files)...)
	}
	out = append(out, limits(c)...)
	for _, m := range c.Models {
		out = append(out, whole("model", m.Name, m, never, "name"))
	}
	for _, s := range c.Secrets {
		out = append(out, whole("secret", s.Name, s, gains("hosts"), "name"))
	}
	for _, m := range c.MCP {
		out = append(out, whole("mcp", m.Name, m, serverWider, "name", "tools", "in_use"))
	}
	for _, p := range c.Peers {
		out = append(out, whole("peer", p.Name, p, peerWider, "name"))
	}
	for _, t := range c.Tenants {
		out = append(out, fixed(whole("tenant", t.Name, t, whenNew, "name")))
	}
	for _, g := range c.Gateways {
		out = append(out, fixed(whole("gateway", g.Name, g, whenNew, "name")))
	}
	return append(out, server(c)...)
}

// server is all that the rest of the file says.
func server(c *config.Config) []item {
	out := fields("server", "", c.Server, true, nil)
	out = append(out, fields("server", "auth.", c.Auth, true, nil)...)
	out = append(out, fields("server", "store.", c.Store, true, nil)...)
	for _, it := range fields("server", "telemetry.", c.Telemetry, true, nil) {
		it.restart = it.name != "telemetry.log_level"
		out = append(out, it)
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

// whole makes one item of a table.
func whole(kind, name string, v any, wider func(before, after any) bool, without ...string) item {
	shown, exact := plain(reflect.ValueOf(v), false).(map[string]any), plain(reflect.ValueOf(v), true).(map[string]any)
	for _, key := range without {
		delete(shown, key)
		delete(exact, key)
	}
	return item{kind: kind, name: name, shown: shown, exact: exact, wider: wider}
}

// fields makes an item of every key of a table.
func fields(kind, prefix string, v any, restart bool, wider func(key string) func(before, after any) bool) (out []item) {
	shown, exact := plain(reflect.ValueOf(v), false).(map[string]any), plain(reflect.ValueOf(v), true).(map[string]any)
	for i := range reflect.TypeOf(v).NumField() {
		key := snake(reflect.TypeOf(v).Field(i).Name)
		if _, there := exact[key]; !there {
			continue
		}
		it := item{kind: kind, name: prefix + key, shown: shown[key], exact: exact[key], wider: never, restart: restart}
		if wider != nil {
			it.wider = wider(key)
		}
		it.restart = restart || kind == "swarm" && key == "name"
		out = append(out, it)
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

// plainStruct leaves out where in the file a table stands.
func plainStruct(v reflect.Value, exact bool) map[string]any {
	table := map[string]any{}
	for i := range v.NumField() {
		if f := v.Type().Field(i); f.IsExported() && f.Type != reflect.TypeFor[config.Pos]() {
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

// strs are the strings of a list.
func strs(v any) (out []string) {
	list, _ := v.([]any)
	for _, one := range list {
		text, _ := one.(string)
		out = append(out, text)
	}
	return out
}

// gained reports whether a list has what another one has not.
func gained(before, after any) bool {
	had := strs(before)
	return slices.ContainsFunc(strs(after), func(v string) bool { return !slices.Contains(had, v) })
}

// gains is for tables of which a list decides.
func gains(key string) func(before, after any) bool {
	return func(before, after any) bool {
		b, _ := before.(map[string]any)
		a, _ := after.(map[string]any)
		return gained(b[key], a[key])
	}
}
