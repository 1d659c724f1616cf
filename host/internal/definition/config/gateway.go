package config

import (
	"fmt"
	"slices"
)

// Gateway is one [gateways.NAME] table.
type Gateway struct {
	Name string
	Pos  Pos
}

func (d *decoder) gateways(t *table) []Gateway {
	var out []Gateway
	group := t.table("gateways")
	for _, name := range group.names() {
		at := group.child(name)
		d.needs("gateways", at)
		if !slices.Contains(gatewayNames, name) {
			f := d.atKey(at, fmt.Sprintf("unknown gateway %q", name))
			f.near(name, gatewayNames)
			continue
		}
		out = append(out, Gateway{Name: name, Pos: d.pos(at)})
	}
	return out
}
