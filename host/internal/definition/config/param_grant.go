package config

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
)

// ParamGrant is a grant of HTTP that refers to params, as "GET {params.base}".
type ParamGrant struct {
	Key   string // of the allow table
	Text  string // as it is in the file
	Grant string // what it stands for
}

// Marks of a reference to params in the place of a URL.
const (
	paramsPrefix = "{params."
	paramsSuffix = "}"
)

// resolveParamGrants replaces references to the params of the same table by the URLs
// there. A composition holds no references: whoever changes params in a definition over
// the network changes no grant of the file.
func (d *decoder) resolveParamGrants(t *table, params json.RawMessage, allow *Allow) {
	if d.remote != nil && d.remote.literal {
		return
	}
	at := t.table("allow")
	for _, s := range allow.Settings() {
		list, ok := s.Value().([]string)
		if !ok || s.Rule != Web {
			continue
		}
		for i, text := range list {
			grant, reason := FromParams(text, params)
			if reason != "" {
				d.atValue(at.child(s.Key).elem(i), fmt.Sprintf("the grant %q: %s.%s", text, t.path, reason))
			} else if grant != text {
				allow.FromParams = append(allow.FromParams, ParamGrant{s.Key, text, grant})
			}
			list[i] = grant
		}
	}
}

// FromParams returns a grant with the URL that it refers to in params. A grant without a
// reference stays as it is. The reason says why there is no such URL; it begins with the
// param.
func FromParams(grant string, params json.RawMessage) (resolved, reason string) {
	methods, location, hasMethods := strings.Cut(grant, " ")
	if !hasMethods {
		methods, location = "", grant
	}
	path, isReference := referenced(location)
	if !isReference {
		return grant, ""
	}
	at := paramAt(path, params)
	if at == nil {
		return grant, fmt.Sprintf("params.%s is missing", path)
	}
	text, _ := at.(string)
	if !isBaseURL(text) {
		return grant, fmt.Sprintf(`params.%s is no URL as in "https://api.example.com"`, path)
	}
	if hasMethods {
		return methods + " " + text, ""
	}
	return text, ""
}

// ScopeFromParams returns a scope of kv, or the one to which it refers in params. The reason says why
// there is none there.
func ScopeFromParams(scope string, params json.RawMessage) (resolved, reason string) {
	path, isReference := referenced(scope)
	if !isReference {
		return scope, ""
	}
	text, _ := paramAt(path, params).(string)
	if text == "" {
		return scope, fmt.Sprintf("params.%s is missing", path)
	}
	return text, ""
}

// referenced is the path of a reference to params.
func referenced(text string) (path string, isReference bool) {
	path, begins := strings.CutPrefix(text, paramsPrefix)
	path, ends := strings.CutSuffix(path, paramsSuffix)
	return path, begins && ends
}

// paramAt is the value at a path of params, nil for none.
func paramAt(path string, params json.RawMessage) (at any) {
	if len(params) > 0 && json.Unmarshal(params, &at) != nil {
		return nil
	}
	for name := range strings.SplitSeq(path, ".") {
		table, _ := at.(map[string]any)
		at = table[name]
	}
	return at
}

// isBaseURL reports whether a text is the URL of one host. Patterns of grants are none:
// they stand in the allow table.
func isBaseURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil && !strings.ContainsAny(text, "*?# ")
}
