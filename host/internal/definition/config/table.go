package config

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// table reads the keys of one TOML table. It remembers which keys were asked
// for: refuseUnknown reports the others. An absent table reads as an empty one, so that
// defaults are applied in one place only.
type table struct {
	location
	d      *decoder
	values map[string]any
	known  []string
}

// has reports whether a key is present, and makes it known.
func (t *table) has(key string) bool {
	_, _, ok := t.lookUp(key)
	return ok
}

func (t *table) lookUp(key string) (any, location, bool) {
	if !slices.Contains(t.known, key) {
		t.known = append(t.known, key)
	}
	v, ok := t.values[key]
	return v, t.child(key), ok
}

// refuseUnknown reports the keys that were not looked up.
func (t *table) refuseUnknown() {
	for _, key := range slices.Sorted(maps.Keys(t.values)) {
		if slices.Contains(t.known, key) {
			continue
		}
		where := ""
		if t.path != "" {
			where = " in " + t.path
		}
		f := t.d.atKey(t.child(key), fmt.Sprintf("unknown key %q%s", key, where))
		f.suggest(nearestKey(key, t.known))
	}
}

// missing reports a required key that is absent.
func (t *table) missing(key, advice string) {
	t.d.atKey(t.child(key), fmt.Sprintf("%s is missing%s", t.child(key).path, advice))
}

// isSet reports whether key means more than its absence, right or wrong.
func (t *table) isSet(key string) bool {
	v, _, ok := t.lookUp(key)
	return ok && !neutral(v)
}

func (t *table) wrong(sp location, want string, got any) {
	t.d.atValue(sp, fmt.Sprintf("%s must be %s, not %s", sp.path, want, kindOf(got)))
}

// needs refuses key, if it is present and asks for anything at all.
func (t *table) needs(capability, key string) {
	if t.isSet(key) {
		t.d.needs(capability, t.child(key))
	}
}

// value reads a string. ok is false if it is absent or was reported as faulty.
func (t *table) value(key string) (value, bool) {
	v, sp, ok := t.lookUp(key)
	if !ok {
		return value{location: sp}, false
	}
	raw, isString := v.(string)
	if !isString {
		t.wrong(sp, "a string", v)
		return value{location: sp}, false
	}
	return t.d.resolve(sp, raw)
}

func (t *table) text(key, def string) string {
	if v, ok := t.value(key); ok {
		return v.text
	}
	return def
}

// secret reads a secret. One that stands in the file itself is a warning.
func (t *table) secret(key string) Secret {
	v, ok := t.value(key)
	if !ok {
		return ""
	}
	t.d.warnLiteral(v)
	return Secret(v.text)
}

// headerSecret reads a secret of a partner or a peer, which is sent in a header. One with a line end
// could be sent with no request (https://www.rfc-editor.org/rfc/rfc9110#section-5.5). What calls
// models, tool servers and secrets' hosts checks its own.
func (t *table) headerSecret(key string) Secret {
	if v, ok := t.value(key); ok && strings.ContainsFunc(v.text, unicode.IsControl) {
		t.d.atValue(v.location, v.path+" has a line end or another control character, which no HTTP header may have")
	}
	return t.secret(key)
}

// oneOf reads a string out of a closed set.
func (t *table) oneOf(key, def string, options ...string) string {
	v, ok := t.value(key)
	if !ok {
		return def
	}
	if !slices.Contains(options, v.text) {
		f := t.d.atValue(v.location, fmt.Sprintf("%s must be %s, not %s", v.path, listOf(options), v.shown))
		f.near(v.text, options)
		return def
	}
	return v.text
}

func (t *table) boolean(key string, def bool) bool {
	v, sp, ok := t.lookUp(key)
	if !ok {
		return def
	}
	if b, ok := v.(bool); ok {
		return b
	}
	ref, isRef, ok := t.reference(sp, v)
	if !isRef {
		t.wrong(sp, "true or false", v)
		return def
	}
	b, err := strconv.ParseBool(ref.text)
	if ok && err != nil {
		t.d.atValue(sp, fmt.Sprintf("%s must be true or false, which %s is not", sp.path, ref.shown))
	}
	return b && ok
}

// reference resolves a string that stands where another type is expected. Only
// env:: and file:: may: what they give is always text.
func (t *table) reference(sp location, v any) (ref value, isRef, ok bool) {
	raw, _ := v.(string)
	if !strings.HasPrefix(raw, envPrefix) && !strings.HasPrefix(raw, filePrefix) {
		return value{}, false, false
	}
	ref, ok = t.d.resolve(sp, raw)
	return ref, true, ok
}

// list reads an array of strings, and reports what stands in it twice.
func (t *table) list(key string) []value {
	v, sp, ok := t.lookUp(key)
	if !ok {
		return nil
	}
	items, isArray := v.([]any)
	if !isArray {
		t.wrong(sp, "an array of strings", v)
		return nil
	}
	var out []value
	for i, item := range items {
		at := sp.elem(i)
		raw, isString := item.(string)
		if !isString {
			t.wrong(at, "a string", item)
			continue
		}
		if v, ok := t.d.resolve(at, raw); ok {
			out = append(out, v)
		}
	}
	return t.unique(out)
}

func (t *table) unique(items []value) []value {
	var out []value
	seen := map[string]bool{}
	for _, v := range items {
		if seen[v.text] {
			t.d.atValue(v.location, fmt.Sprintf("%s is listed twice", v.shown))
			continue
		}
		seen[v.text] = true
		out = append(out, v)
	}
	return out
}

func (t *table) texts(key string) []string { return textsOf(t.list(key)) }

func textsOf(items []value) []string {
	out := make([]string, len(items))
	for i, v := range items {
		out[i] = v.text
	}
	return out
}

// table reads a sub-table; one that is absent reads as empty.
func (t *table) table(key string) *table {
	v, sp, ok := t.lookUp(key)
	sub := &table{location: sp, d: t.d}
	if !ok {
		return sub
	}
	values, isTable := v.(map[string]any)
	if !isTable {
		t.wrong(sp, "a table", v)
	}
	sub.values = values
	return sub
}

// tables reads an array of tables.
func (t *table) tables(key string) []*table {
	v, sp, ok := t.lookUp(key)
	if !ok {
		return nil
	}
	var out []*table
	each := func(i int, values map[string]any) {
		out = append(out, &table{location: sp.elem(i), d: t.d, values: values})
	}
	switch v := v.(type) {
	case []map[string]any:
		for i, values := range v {
			each(i, values)
		}
	case []any:
		for i, item := range v {
			if values, ok := item.(map[string]any); ok {
				each(i, values)
				continue
			}
			t.wrong(sp.elem(i), "a table", item)
		}
	default:
		t.wrong(sp, fmt.Sprintf("an array of tables, [[%s]]", sp.path), v)
	}
	return out
}

// names lists the keys of the table in the order of the file.
func (t *table) names() []string {
	order := make(map[string]int, len(t.node.names))
	for i, name := range t.node.names {
		order[name] = i
	}
	return slices.SortedFunc(maps.Keys(t.values), func(a, b string) int {
		return cmp.Compare(order[a], order[b])
	})
}

// named reads a table of tables in the order of the file.
func (t *table) named(key string) (names []string, subs []*table) {
	v, sp, ok := t.lookUp(key)
	if !ok {
		return nil, nil
	}
	values, isTable := v.(map[string]any)
	if !isTable {
		t.wrong(sp, fmt.Sprintf("keyed tables, [%s.NAME]", sp.path), v)
		return nil, nil
	}
	group := &table{location: sp, d: t.d, values: values}
	for _, name := range group.names() {
		if sub := group.table(name); sub.values != nil {
			names = append(names, name)
			subs = append(subs, sub)
		}
	}
	return names, subs
}
