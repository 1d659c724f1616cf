package cli

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"skep/host/internal/gateway/uamp/hub"
)

// hubPartner is a host whose agents count, as a partner.
type hubPartner struct {
	Name         string            `json:"name"`
	URL          string            `json:"url"`
	IDs          []string          `json:"ids"`
	Keys         []json.RawMessage `json:"keys"`                 // JSON Web Keys
	AuthToken    string            `json:"auth_token,omitempty"` // where the token is
	CA           string            `json:"ca,omitempty"`
	AllowPrivate bool              `json:"allow_private"`

	about []string // what each of IDs is for
	// mixed is set when an agent has a key that another one does not have.
	mixed bool
}

// partnersOf puts the agents that count together by their hosts, which sign for all of theirs.
func partnersOf(agents []hub.Agent, base *url.URL, flags hubFlags) (list []*hubPartner) {
	byHost, names := map[string]*hubPartner{}, map[string]bool{}
	for _, one := range agents {
		if one.Err != nil {
			continue
		}
		host := one.DID.Host()
		p := byHost[host]
		if p == nil {
			p = &hubPartner{Name: realmName(host), URL: "https://" + host, AllowPrivate: flags.allowPrivate && host == base.Host}
			for names[p.Name] {
				p.Name += "-"
			}
			byHost[host], names[p.Name] = p, true
			list = append(list, p)
		}
		known := len(p.Keys)
		for _, k := range one.Keys {
			p.pin(k.JWK())
		}
		p.mixed = p.mixed || len(p.IDs) > 0 && (len(p.Keys) > known || len(p.Keys) > len(one.Keys))
		p.IDs, p.about = append(p.IDs, one.Name), append(p.about, one.Manifest.Description)
	}
	return list
}

// maxRealmName bounds a name, in bytes. A hyphen is added for each host whose name begins alike.
const maxRealmName = 64

// realmName returns the name of the partner for a host.
func realmName(host string) string {
	name := strings.NewReplacer(".", "-", ":", "-").Replace(strings.ToLower(host))
	return name[:min(len(name), maxRealmName)]
}

// pin adds a key that the partner does not have.
func (p *hubPartner) pin(key json.RawMessage) {
	for _, known := range p.Keys {
		if string(known) == string(key) {
			return
		}
	}
	p.Keys = append(p.Keys, key)
}

// table is the partner's table in swarm.toml. Texts of others stand in it as strings, or escaped
// in a comment.
func (p *hubPartner) table() string {
	var out strings.Builder
	fmt.Fprintf(&out, "[gateways.uamp.partners.%s]\nurl = %q\nids = [\n", p.Name, p.URL)
	for i, id := range p.IDs {
		fmt.Fprintf(&out, "  %q, # %s\n", id, clip(inLineVisible(p.about[i]), 80))
	}
	out.WriteString("]\n")
	if p.mixed {
		out.WriteString("# Its agents have keys of their own, and each of these signs for each of ids: an agent that may\n# not speak for the others needs a table of its own, with another credential.\n")
	}
	out.WriteString("keys = [\n")
	for _, key := range p.Keys {
		fmt.Fprintf(&out, "  '%s',\n", key)
	}
	out.WriteString("]\n")
	if p.AuthToken != "" {
		fmt.Fprintf(&out, "auth_token = %q\n", p.AuthToken)
	} else {
		fmt.Fprintf(&out, "# auth_token = \"env::...\" is what %s is shown.\n", p.Name)
	}
	if p.CA != "" {
		fmt.Fprintf(&out, "ca = %q\n", p.CA)
	}
	if p.AllowPrivate {
		out.WriteString("allow_private = true\n")
	}
	fmt.Fprintf(&out, "# What it shows here is a key of [[auth.keys]] with id = %q and role = \"agent\".\n", p.Name)
	return out.String()
}
