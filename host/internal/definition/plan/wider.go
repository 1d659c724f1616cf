package plan

import (
	"reflect"
	"slices"
	"strings"

	"skep/host/internal/definition/config"
)

// wider reports whether an item allows more than it did before, by the rules of its
// settings. The item before is empty for a new one.
func (it item) wider(before item, reaches Reaches) bool {
	if s := it.setting; s != nil {
		return grown(*s, before, it, reaches)
	}
	b, _ := before.exact.(map[string]any)
	a, _ := it.exact.(map[string]any)
	return it.kind == "action" && repinned(b, a) || slices.ContainsFunc(it.rules, func(s config.Setting) bool {
		return changed(s.Rule, b[s.Key], a[s.Key])
	})
}

// grown compares two values of one setting.
func grown(s config.Setting, before, after item, reaches Reaches) bool {
	switch _, isList := after.exact.([]any); {
	case s.Rule == config.Web:
		had := strs(before.exact)
		return slices.ContainsFunc(strs(after.exact), func(g string) bool { return !reaches(had, g) })
	case s.Rule == config.Less:
		return before.setting != nil && s.Amount() < before.setting.Amount()
	case s.Rule == config.Grant && !isList:
		return before.setting == nil || s.Amount() > before.setting.Amount()
	}
	return changed(s.Rule, before.exact, after.exact)
}

// changed compares two values of a key by a rule.
func changed(r config.Rule, before, after any) bool {
	switch r {
	case config.Grant:
		return after == true && before != true || gained(before, after)
	case config.Subset:
		return gained(before, after) || len(strs(after)) == 0 && len(strs(before)) > 0
	case config.Except:
		return gained(after, before)
	case config.Fixed:
		return !reflect.DeepEqual(before, after)
	case config.Pinned:
		return before != "" && before != after
	}
	return false
}

// repinned reports whether an action has another tool than the one that was
// approved before.
func repinned(b, a map[string]any) bool {
	source, _ := a["source"].(string)
	return strings.HasPrefix(source, string(config.SourceMCP)+":") && b["sha256"] != a["sha256"]
}

// gained reports whether a list has what another one has not.
func gained(before, after any) bool {
	had := strs(before)
	return slices.ContainsFunc(strs(after), func(v string) bool { return !slices.Contains(had, v) })
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
