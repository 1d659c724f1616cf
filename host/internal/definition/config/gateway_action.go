package config

import (
	"fmt"
	"slices"
	"strings"

	"skep/host/internal/gateway/verb"
	"skep/host/internal/spelling"
)

// actionSchemes are the beginnings of sources that only actions have.
const actionSchemes = "builtin:, gateway:, mcp:, "

// acted reports whether an action is done at partners of a gateway.
func (d *decoder) acted(t *table) bool {
	v, _, _ := t.lookUp("source")
	text, _ := v.(string)
	return strings.HasPrefix(text, string(SourceGateway)+":")
}

// gatewayAction reads what an action has that is done at partners of a gateway.
func (d *decoder) gatewayAction(a *Action, t *table) {
	a.Limits = AgentLimits{}
	for _, key := range []string{"sha256", "params", "actions", "limits"} {
		if t.has(key) {
			d.atKey(t.child(key), fmt.Sprintf("%s.%s is for actions with a module; a partner does this one", t.path, key))
		}
	}
	if a.Allow.any() || a.Allow.HTTPPrivate {
		d.atKey(t.child("allow"), fmt.Sprintf("%s.allow has retry_in_doubt alone for an action that a partner does", t.path))
	}
	if d.remote != nil {
		if a.Source = d.remoteSource(t, ""); d.remote.literal {
			a.Source = Source{Kind: SourceGateway, Ref: strings.TrimPrefix(t.text("source", ""), string(SourceGateway)+":")}
		}
		d.notRemote(t, "partners")
		return
	}
	v, ok := t.value("source")
	if !ok {
		return
	}
	a.Source = Source{Kind: SourceGateway, Ref: strings.TrimPrefix(v.text, string(SourceGateway)+":")}
	gateway, does := a.Verb()
	names := verb.Names(gateway)
	switch {
	case !slices.Contains(gatewayNames, gateway):
		f := d.atValue(v.location, fmt.Sprintf(`%s must name a gateway and a verb, as in "gateway:a2a/send", which %s does not`, v.path, v.shown))
		if near := spelling.Nearest(gateway, gatewayNames); near != "" {
			f.suggest(v.suggest(string(SourceGateway) + ":" + near + "/" + does))
		}
	case gateway == "mcp":
		d.atValue(v.location, `the gateway mcp has no verbs: tools of MCP servers are actions by source = "mcp:SERVER/TOOL"`)
	case len(names) == 0:
		d.atValue(v.location, fmt.Sprintf("the gateway %s has no verbs for actions", gateway))
	case !slices.Contains(names, does):
		f := d.atValue(v.location, fmt.Sprintf("the gateway %s has no verb %q; it has %s", gateway, does, listOf(names)))
		if near := spelling.Nearest(does, names); near != "" {
			f.suggest(v.suggest(string(SourceGateway) + ":" + gateway + "/" + near))
		}
	case len(a.Partners) == 0:
		t.missing("partners", fmt.Sprintf(`; it names those of [gateways.%s.partners] that the action reaches, as in partners = ["shop"]`, gateway))
	}
}

// Verb is the gateway and the verb of a source "gateway:GATEWAY/VERB".
func (a Action) Verb() (gateway, name string) {
	gateway, name, _ = strings.Cut(a.Source.Ref, "/")
	return gateway, name
}

// checkPartners refuses partners of an action that no gateway of the file has.
func (d *decoder) checkPartners(t *table, c *Config) {
	for _, a := range c.Actions {
		if _, known := verb.Find(a.Verb()); a.Source.Kind != SourceGateway || !known {
			continue
		}
		name, _ := a.Verb()
		at := t.child("actions").child(a.Name).child("partners")
		var known []string
		for _, g := range c.Gateways {
			for _, p := range g.Partners {
				if g.Name == name {
					known = append(known, p.Name)
				}
			}
		}
		for i, partner := range a.Partners {
			if !slices.Contains(known, partner) {
				d.atValue(at.elem(i), fmt.Sprintf("%s is %q, and there is no [gateways.%s.partners.%s]", at.elem(i).path, partner, name, partner)).near(partner, known)
			}
		}
	}
}
