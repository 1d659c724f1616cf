package config

import (
	"bytes"
	"encoding/json"
	"slices"
)

// JSON writes the composition in the shape that [Config.ParseComposition] reads,
// always the same way. What an absent key means is left out; limits with a default
// never are, since in a definition a limit that is left out is the file's.
func (x Composition) JSON() []byte {
	var b bytes.Buffer
	b.WriteString(`{"swarm":`)
	writeTable(&b, x.Swarm.Settings(), "exclude_tools") // it is in the agents'
	b.WriteString(`,"agents":{`)
	for i, a := range x.Agents {
		separate(&b, i > 0)
		writeKey(&b, a.Name)
		writeTable(&b, a.Settings())
	}
	b.WriteByte('}')
	if len(x.Actions) > 0 {
		b.WriteString(`,"actions":{`)
		for i, a := range x.Actions {
			separate(&b, i > 0)
			writeKey(&b, a.Name)
			writeTable(&b, a.used())
		}
		b.WriteByte('}')
	}
	b.WriteByte('}')
	return b.Bytes()
}

// writeTable writes an object of settings.
func writeTable(b *bytes.Buffer, settings []Setting, without ...string) {
	b.WriteByte('{')
	first := true
	for _, s := range settings {
		if s.Operator || slices.Contains(without, s.Key) || s.Nested == nil && !s.stated() {
			continue
		}
		separate(b, !first)
		first = false
		writeKey(b, s.Key)
		if s.Nested != nil {
			writeTable(b, s.Nested)
		} else {
			write(b, s.json())
		}
	}
	b.WriteByte('}')
}

func separate(b *bytes.Buffer, more bool) {
	if more {
		b.WriteByte(',')
	}
}

func writeKey(b *bytes.Buffer, key string) {
	write(b, key)
	b.WriteByte(':')
}

// write encodes what always encodes: params were read from a text.
func write(b *bytes.Buffer, v any) {
	raw, _ := json.Marshal(v)
	b.Write(raw)
}
