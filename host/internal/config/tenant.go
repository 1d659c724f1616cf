package config

import (
	"fmt"
	"strconv"

	"skep/spec/mail"
)

// Tenant is one [tenants.NAME] table. A quota of zero is unlimited.
type Tenant struct {
	Name           string
	TurnsPerSecond int
	MessagesPerDay int64
	TokensPerDay   int64
	USDPerDay      float64
	Memory         Size
	Storage        Size
	Weight         int // share of computing time relative to other tenants
	Pos            Pos
}

func (d *decoder) tenants(t *table) []Tenant {
	var out []Tenant
	names, subs := t.named("tenants")
	for i, sub := range subs {
		out = append(out, d.tenant(names[i], sub))
		if names[i] != mail.DefaultTenant {
			d.needs("tenants", sub.spot)
		}
	}
	for _, o := range out {
		if o.Name == mail.DefaultTenant {
			return out
		}
	}
	return append([]Tenant{d.tenant(mail.DefaultTenant, &table{spot: t.spot, d: d})}, out...)
}

func (d *decoder) tenant(name string, t *table) Tenant {
	if !principalID.MatchString(name) {
		d.atKey(t.spot, fmt.Sprintf(`the name of a tenant must be 1 to 128 letters, digits, ".", "_", "~" or "-", not %q`, name))
	}
	off := bounds{min: 1, max: 1e15, off: true}
	n := Tenant{
		Name:           name,
		TurnsPerSecond: t.count("turns_per_second", 0, bounds{min: 1, max: 1e9, off: true}),
		MessagesPerDay: t.number("messages_per_day", counts, 0, off),
		TokensPerDay:   t.number("tokens_per_day", counts, 0, off),
		USDPerDay:      t.money("usd_per_day"),
		Memory:         t.size("memory", 0, off),
		Storage:        t.size("storage", 0, off),
		Weight:         t.count("weight", 1, bounds{min: 1, max: 1000}),
		Pos:            d.pos(t.spot),
	}
	for _, key := range t.known {
		if t.has(key) {
			d.needs("quotas", t.child(key))
		}
	}
	t.done()
	return n
}

// money reads an amount, which may have a fraction.
func (t *table) money(key string) float64 {
	const most = 1e9
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
