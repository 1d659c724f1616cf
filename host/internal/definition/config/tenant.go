package config

import (
	"fmt"
	"strconv"

	"skep/spec/mail"
)

// Tenant is one [tenants.NAME] table. A quota of zero is unlimited.
type Tenant struct {
	Name           string
	Turns          int
	TurnsPerSecond int
	Tasks          int
	Queue          int
	MessagesPerDay int64
	TokensPerDay   int64
	USDPerDay      float64
	Memory         Size
	Storage        Size
	Weight         int
	Definitions    int
	Pos            Pos
}

func (n *Tenant) Settings() []Setting {
	return allLimits(
		count(&n.Turns, "turns", 0, 1, 1e9, "Turns that run at once.").unlimited(),
		count(&n.TurnsPerSecond, "turns_per_second", 0, 1, 1e9, "Turns that begin.").unlimited().planned("tenants.turns_per_second").noLimit(),
		count(&n.Tasks, "tasks", 0, 1, 1e9, "Tasks that run at once.").unlimited(),
		count(&n.Queue, "queue", 0, 1, 1e9, "Waiting messages of all its instances.").unlimited(),
		count(&n.MessagesPerDay, "messages_per_day", 0, 1, 1e15, "Messages made in a day of UTC.").unlimited(),
		count(&n.TokensPerDay, "tokens_per_day", 0, 1, 1e15, "Tokens of models in a day of UTC.").unlimited(),
		money(&n.USDPerDay, "usd_per_day", "Dollars for models in a day of UTC."),
		size(&n.Memory, "memory", 0, 1, 1e15, "Memory of its turns.").unlimited().planned("tenants.memory").noLimit(),
		size(&n.Storage, "storage", 0, 1, 1e15, "What is kept of it in the store.").unlimited(),
		count(&n.Weight, "weight", 1, 1, 1000, "Its share of turns and computing time relative to other tenants.").restarts(),
		count(&n.Definitions, "definitions", 64, 1, 10_000, "Definitions of its own that are kept, which it has loaded over the network."),
	)
}

// tenants reads the [tenants] table. The tenant "default" is there without
// being named.
func (d *decoder) tenants(t *table) (out []Tenant, names []string) {
	names, subs := t.named("tenants")
	for i, sub := range subs {
		out = append(out, d.tenant(names[i], sub))
	}
	for _, name := range names {
		if name == mail.DefaultTenant {
			return out, names
		}
	}
	own := d.tenant(mail.DefaultTenant, &table{location: t.location, d: d})
	return append([]Tenant{own}, out...), append(names, mail.DefaultTenant)
}

func (d *decoder) tenant(name string, t *table) Tenant {
	if !principalID.MatchString(name) {
		d.atKey(t.location, fmt.Sprintf(`the name of a tenant must be 1 to 128 letters, digits, ".", "_", "~" or "-", not %q`, name))
	}
	n := Tenant{Name: name, Pos: d.pos(t.location)}
	t.read(n.Settings())
	t.refuseUnknown()
	return n
}

// Tenant returns the tenant of that name.
func (c *Config) Tenant(name string) (Tenant, bool) {
	for _, t := range c.Tenants {
		if t.Name == name {
			return t, true
		}
	}
	return Tenant{}, false
}

// amount reads a number that may have a fraction.
func (t *table) amount(key string, most float64) float64 {
	v, sp, ok := t.lookUp(key)
	if !ok {
		return 0
	}
	var amount float64
	switch v := v.(type) {
	case int64:
		amount = float64(v)
	case float64:
		amount = v
	default:
		t.wrong(sp, "an amount such as 5 or 0.5", v)
		return 0
	}
	if !(amount >= 0 && amount <= most) {
		t.d.atValue(sp, fmt.Sprintf("%s must be from 0 to %s; %s is out of range",
			sp.path, strconv.FormatFloat(most, 'f', -1, 64), strconv.FormatFloat(amount, 'g', -1, 64)))
		return 0
	}
	return amount
}
