package config

import (
	"fmt"
	"strconv"

	"skep/spec/mail"
)

// Tenant is one [tenants.NAME] table. A quota of zero is unlimited.
type Tenant struct {
	Name           string
	Turns          int   // that run at once
	TurnsPerSecond int   // that begin
	Tasks          int   // that run at once
	Queue          int   // waiting rows of all instances
	MessagesPerDay int64 // rows made in a day of UTC
	TokensPerDay   int64
	USDPerDay      float64
	Memory         Size
	Storage        Size // of what is kept in the store
	Weight         int  // share of turns and computing time relative to other tenants
	Pos            Pos
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
	own := d.tenant(mail.DefaultTenant, &table{spot: t.spot, d: d})
	return append([]Tenant{own}, out...), append(names, mail.DefaultTenant)
}

func (d *decoder) tenant(name string, t *table) Tenant {
	if !principalID.MatchString(name) {
		d.atKey(t.spot, fmt.Sprintf(`the name of a tenant must be 1 to 128 letters, digits, ".", "_", "~" or "-", not %q`, name))
	}
	off := bounds{min: 1, max: 1e15, off: true}
	few := bounds{min: 1, max: 1e9, off: true}
	n := Tenant{
		Name:           name,
		Turns:          t.count("turns", 0, few),
		TurnsPerSecond: t.count("turns_per_second", 0, few),
		Tasks:          t.count("tasks", 0, few),
		Queue:          t.count("queue", 0, few),
		MessagesPerDay: t.number("messages_per_day", counts, 0, off),
		TokensPerDay:   t.number("tokens_per_day", counts, 0, off),
		USDPerDay:      t.money("usd_per_day"),
		Memory:         t.size("memory", 0, off),
		Storage:        t.size("storage", 0, off),
		Weight:         t.count("weight", 1, bounds{min: 1, max: 1000}),
		Pos:            d.pos(t.spot),
	}
	for _, key := range []string{"turns_per_second", "memory"} {
		t.needs("tenants."+key, key)
	}
	t.done()
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

// money reads an amount of dollars, which may have a fraction.
func (t *table) money(key string) float64 { return t.amount(key, 1e9) }

// amount reads a number that may have a fraction.
func (t *table) amount(key string, most float64) float64 {
	v, sp, ok := t.take(key)
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
