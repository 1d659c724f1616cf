package conform

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"skep/abi"
	"skep/host/internal/turn"
	"skep/host/internal/turn/wasm/binary"
)

// admission reports how near the caps the module is. One beyond them was not
// loaded.
func admission(_ context.Context, s *subject) finding {
	var parts []string
	nearest, most := "", int64(-1)
	limits := s.caps.Named()
	for i, used := range s.admitted.Usage().Named() {
		limit := max(limits[i].Value, 1)
		if share := used.Value * 100 / limit; share > most {
			nearest, most = used.Key, share
		}
		if slices.Contains([]string{"size", "functions", "body"}, used.Key) {
			parts = append(parts, fmt.Sprintf("%s %d of %d", used.Key, used.Value, limit))
		}
	}
	f := finding{detail: fmt.Sprintf("%s; the nearest cap is %s, at %d %%", strings.Join(parts, ", "), nearest, most)}
	if most >= 90 {
		f.notef("[limits.module] %s is nearly used up: a new compiler may go beyond it", nearest)
	}
	return f
}

// contract lists what the module exports and imports. What is mandatory is
// there, with its type, or the module was not loaded.
func contract(_ context.Context, s *subject) finding {
	var own []string
	f := finding{}
	for _, e := range s.admitted.Exports {
		switch {
		case slices.Contains(knownExports, e.Name):
			own = append(own, e.Name)
		case strings.HasPrefix(e.Name, "skep_"):
			f.notef("it exports %s, which means nothing to a host; is another name meant?", e.Name)
		}
	}
	f.detail = fmt.Sprintf("exports %s; %d imports", strings.Join(own, ", "), len(s.admitted.Imports))
	return f
}

var knownExports = []string{
	fmt.Sprint(abi.MarkerPrefix, abi.Version), abi.ExportTurn, abi.ExportDescribe, abi.ExportInitialize,
	abi.ExportWarm, abi.ExportAction, abi.ExportMemory,
}

// start looks at the first turn of all, which began with the module's start.
func start(ctx context.Context, s *subject) finding {
	o := s.beginning(ctx)
	if !o.began {
		return finding{problems: []string{o.end()}}
	}
	var has []string
	for _, name := range []string{abi.ExportInitialize, abi.ExportWarm} {
		if _, ok := s.admitted.Export(name); ok {
			has = append(has, name)
		}
	}
	if s.admitted.Start >= 0 {
		has = append([]string{"a start section"}, has...)
	}
	if len(has) == 0 {
		return finding{detail: "nothing runs before the first turn"}
	}
	return finding{detail: fmt.Sprintf("runs %s in %d units of fuel, of %d",
		strings.Join(has, ", "), o.startFuel, turn.DefaultLimits().Start)}
}

// equalJSON reports whether two texts are the same value.
func equalJSON(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y) || bytes.Equal(a, b)
}

// section returns the module's descriptor section, if it has one.
func section(m *binary.Module) []byte {
	for _, s := range m.Custom(abi.DescriptorSection) {
		return s
	}
	return nil
}
