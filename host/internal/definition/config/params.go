package config

import (
	"encoding/json"
	"math"
	"strings"
	"time"
)

// params reads a table that is passed on as it is. file:: is resolved in it;
// env:: is not, because params are recorded with every turn and shown.
func (t *table) params(key string) json.RawMessage {
	sub := t.table(key)
	if len(sub.values) == 0 {
		return json.RawMessage("{}")
	}
	raw, err := json.Marshal(t.d.plain(sub.location, sub.values))
	if err != nil {
		t.d.atValue(sub.location, sub.path+" cannot be written as JSON: "+err.Error())
	}
	return raw
}

// plain turns a TOML value into what its JSON form needs.
func (d *decoder) plain(sp location, v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, sub := range v {
			out[key] = d.plain(sp.child(key), sub)
		}
		return out
	case []map[string]any:
		out := make([]any, len(v))
		for i, sub := range v {
			out[i] = d.plain(sp.elem(i), sub)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, sub := range v {
			out[i] = d.plain(sp.elem(i), sub)
		}
		return out
	case float64:
		if math.IsInf(v, 0) || math.IsNaN(v) {
			d.atValue(sp, sp.path+" has no form in JSON: it is not a finite number")
			return nil
		}
		return v
	case string:
		return d.plainText(sp, v)
	case time.Time:
		return plainTime(v)
	}
	return v
}

func (d *decoder) plainText(sp location, s string) string {
	if d.remote != nil {
		v, _ := d.resolve(sp, s)
		return v.text
	}
	if strings.HasPrefix(s, envPrefix) {
		d.atValue(sp, sp.path+" must not use env::, because it is recorded and shown; grant a model or a secret instead")
		return ""
	}
	path, ok := strings.CutPrefix(s, filePrefix)
	if !ok {
		return s
	}
	text, err := d.readFile(path)
	d.refer(d.path(path), false)
	if err != nil {
		d.atValue(sp, err.Error()).suggestFile(err, filePrefix, path)
	}
	return text
}

// plainTime writes a time as TOML does. The parser marks the kinds without a
// time zone by the name of their location.
func plainTime(t time.Time) string {
	switch t.Location().String() {
	case "datetime-local":
		return t.Format("2006-01-02T15:04:05.999999999")
	case "date-local":
		return t.Format(time.DateOnly)
	case "time-local":
		return t.Format("15:04:05.999999999")
	}
	return t.Format(time.RFC3339Nano)
}
