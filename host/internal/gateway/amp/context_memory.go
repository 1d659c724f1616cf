package amp

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"skep/host/internal/gateway/wire"
)

// patch returns a value changed by a merge patch: members of objects are changed one by one,
// null removes one, and all else replaces (https://www.rfc-editor.org/rfc/rfc7396).
func patch(value, change json.RawMessage) json.RawMessage {
	changed, isObject := objectOf(change)
	if !isObject {
		return change
	}
	members, _ := objectOf(value)
	return wire.MustEncode(patchObject(members, changed))
}

func patchObject(value, change object) object {
	patched := object{}
	maps.Copy(patched, value)
	for name, to := range change {
		if string(to) == "null" {
			delete(patched, name)
		} else {
			patched[name] = patch(patched[name], to)
		}
	}
	return patched
}

func objectOf(raw json.RawMessage) (members object, isObject bool) {
	if !bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) {
		return nil, false
	}
	return members, json.Unmarshal(raw, &members) == nil
}

// join returns two objects as one, and the JSON pointers of the members that have two values:
// the later one is kept (M-061).
func join(first, later object, at string) (joined object, conflicts []string) {
	joined = object{}
	maps.Copy(joined, first)
	for _, name := range slices.Sorted(maps.Keys(later)) {
		before, known := joined[name]
		joined[name] = later[name]
		if !known || string(before) == string(later[name]) {
			continue
		}
		path := at + "/" + pointerEscapes.Replace(name)
		own, isObject := objectOf(before)
		others, areObjects := objectOf(later[name])
		if !isObject || !areObjects {
			conflicts = append(conflicts, path)
			continue
		}
		both, inner := join(own, others, path)
		joined[name] = wire.MustEncode(both)
		conflicts = append(conflicts, inner...)
	}
	return joined, conflicts
}

// pointerEscapes are the escapes of JSON pointers (https://www.rfc-editor.org/rfc/rfc6901).
var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")
