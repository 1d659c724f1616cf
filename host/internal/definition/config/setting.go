package config

import (
	"strconv"
	"time"
)

// Setting declares one key of a table and is bound to the field that holds its
// value. Reading the file, validate --explain, plan, definitions over the network
// and the page host/docs/settings.md all go by it: a new setting is a field, and a
// Setting in the list of its table.
type Setting struct {
	Key   string
	About string // for the page: what it is and what happens at a limit
	Rule  Rule

	// Kind, Default and Allowed are for the page: the type of the value, what an
	// absent key means, and what the value may be.
	Kind, Default, Allowed string
	// Nested are the settings of a table within the table.
	Nested []Setting

	Limit    bool // validate --explain lists it
	Sandbox  bool // bounds modules, not processes
	Agents   bool // of agents, not of actions
	Operator bool // only in the operator's file
	Same     bool // over the network as in the file, or absent
	Restart  bool // a running host cannot change it
	Required bool // its table needs the key

	always     bool   // a composition gives it, be it empty
	missing    bool   // a table without the key is refused by read
	advice     string // follows "… is missing"
	fileHas    bool   // a definition over the network that leaves it out leaves it to the file
	capability string // what it needs, a key of [unimplemented]
	zeroWhere  func() bool
	options    []string  // of a choice, in the order in which they grant more
	quantity   *quantity // of a whole number
	bounds     bounds
	read       func(t *table, s Setting)
	get        func() any
	set        func(any)
}

// Rule is when a value grants more than another one: what a definition over the
// network is refused for, and what plan calls widened.
type Rule int

// The rules of settings.
const (
	Free   Rule = iota // never
	Grant              // a larger number, true instead of false, a later choice, one more entry
	Web                // a grant of HTTP that the others do not cover
	Except             // one entry fewer
	Fixed              // any other value
	Pinned             // any other value, once there is one
	Subset             // one more entry, or none, which means all
	Less               // a smaller number
)

// integer is what whole numbers are kept in.
type integer interface{ ~int | ~int64 | ~uint64 }

// size declares a number of bytes.
func size[N integer](to *N, key string, def, least, most N, about string) Setting {
	return whole(to, key, sizes, def, least, most, about)
}

// count declares a whole number.
func count[N integer](to *N, key string, def, least, most N, about string) Setting {
	return whole(to, key, counts, def, least, most, about)
}

// span declares a duration.
func span(to *time.Duration, key string, def, least, most time.Duration, about string) Setting {
	return whole(to, key, durations, def, least, most, about)
}

func whole[N integer](to *N, key string, q quantity, def, least, most N, about string) Setting {
	b := bounds{min: int64(least), max: int64(most)}
	s := bound(to, key, about, func(t *table, s Setting) N {
		return N(t.number(s.Key, q, int64(defaultOf(t, s, def)), s.bounds))
	})
	s.Limit, s.quantity, s.bounds = true, &q, b
	s.Kind, s.Default, s.Allowed = q.name, q.print(int64(def)), q.print(b.min)+" to "+q.print(b.max)
	return s
}

// money declares an amount of dollars; 0, the default, is unlimited.
func money(to *float64, key string, about string) Setting {
	s := amount(to, key, 1e9, about)
	s.Limit, s.Default, s.bounds.off = true, unlimited, true
	return s
}

// amount declares a number that may have a fraction, in dollars.
func amount(to *float64, key string, most float64, about string) Setting {
	s := bound(to, key, about, func(t *table, s Setting) float64 { return t.amount(s.Key, most) })
	s.Kind, s.Default, s.Allowed = "dollars", "0", "0 to "+strconv.FormatFloat(most, 'f', -1, 64)
	return s
}

// portion declares a number from 0 to 1.
func portion(to *float64, key string, def float64, about string) Setting {
	s := bound(to, key, about, func(t *table, s Setting) float64 {
		if !t.has(s.Key) {
			return defaultOf(t, s, def)
		}
		return t.amount(s.Key, 1)
	})
	s.Kind, s.Default, s.Allowed = "number", strconv.FormatFloat(def, 'f', -1, 64), "0 to 1"
	return s
}

// boolean declares true or false.
func boolean(to *bool, key string, def bool, about string) Setting {
	s := bound(to, key, about, func(t *table, s Setting) bool { return t.boolean(s.Key, defaultOf(t, s, def)) })
	s.Kind, s.Default = "boolean", strconv.FormatBool(def)
	return s
}

// choice declares one of several words.
func choice(to *string, key, def string, options []string, about string) Setting {
	s := bound(to, key, about, func(t *table, s Setting) string { return t.oneOf(s.Key, def, options...) })
	s.Kind, s.Default, s.options, s.Allowed = "string", def, options, listOf(options)
	return s
}

// text declares a string.
func text[S ~string](to *S, key string, about string) Setting {
	s := bound(to, key, about, func(t *table, s Setting) S { return S(t.text(s.Key, "")) })
	s.Kind = "string"
	return s
}

// secretText declares a secret, which should not stand in the file itself.
func secretText(to *Secret, key, about string) Setting {
	s := bound(to, key, about, func(t *table, s Setting) Secret { return t.secret(s.Key) })
	s.Kind = "string"
	return s
}

// headerSecret declares a secret that is sent as the value of a header, or in it.
func headerSecret(to *Secret, key, about string) Setting {
	return field(to, key, "string", (*table).headerSecret, about)
}

// field declares a setting of any other kind, and how it is read.
func field[V any](to *V, key, kind string, read func(*table, string) V, about string) Setting {
	s := bound(to, key, about, func(t *table, s Setting) V { return read(t, s.Key) })
	s.Kind = kind
	return s
}

// section declares a table within the table.
func section(key string, nested []Setting, about string) Setting {
	return Setting{
		Key: key, About: about, Kind: "table", Nested: nested,
		read: func(t *table, s Setting) { t.section(s.Key, s.Nested) },
		get:  func() any { return nil },
	}
}

// readElsewhere declares a setting that the reader of its table takes care of.
func readElsewhere[V any](to *V, key, kind, about string) Setting {
	s := bound(to, key, about, func(t *table, s Setting) V {
		t.has(s.Key)
		return *to
	})
	s.Kind = kind
	return s
}

// bound declares a setting that is kept in a field.
func bound[V any](to *V, key, about string, read func(*table, Setting) V) Setting {
	return Setting{
		Key: key, About: about,
		read: func(t *table, s Setting) { *to = read(t, s) },
		get:  func() any { return *to },
		set:  func(v any) { *to = v.(V) },
	}
}

// defaultOf is what an absent key means.
func defaultOf[V any](t *table, s Setting, def V) V {
	if s.fileHas && t.d.remote != nil || s.zeroWhere != nil && s.zeroWhere() {
		return *new(V)
	}
	return def
}

// read fills the fields of a table.
func (t *table) read(settings []Setting) {
	for _, s := range settings {
		if s.missing && t.values != nil && !t.has(s.Key) {
			t.missing(s.Key, s.advice)
		}
		s.read(t, s)
		if s.capability != "" {
			t.needs(s.capability, s.Key)
		}
		if s.Operator {
			t.d.notRemote(t, s.Key)
		}
	}
}

// section reads a table of which the settings say everything.
func (t *table) section(key string, settings []Setting) {
	sub := t.table(key)
	sub.read(settings)
	sub.refuseUnknown()
}

// unlimited allows 0, which means that there is no limit.
func (s Setting) unlimited() Setting {
	s.bounds.off = true
	s.Allowed += ", or 0 for unlimited"
	if s.Default == "0" || s.Default == "0s" {
		s.Default = unlimited
	}
	return s
}

// zero makes the default 0 where a condition holds.
func (s Setting) zero(where func() bool, inWords string) Setting {
	s.zeroWhere, s.Default = where, s.Default+"; "+inWords
	return s
}

// withDefaultText sets the default on the page, for a setting with a reader of its own.
func (s Setting) withDefaultText(def string) Setting {
	s.Default = def
	return s
}

// by gives the setting a rule.
func (s Setting) by(r Rule) Setting {
	s.Rule = r
	return s
}

// readBy has a section read by another function.
func (s Setting) readBy(read func(*table, Setting)) Setting {
	s.read = read
	return s
}

// needed refuses a table without the key; advice follows "… is missing".
func (s Setting) needed(advice string) Setting {
	s.Required, s.missing, s.advice = true, true, advice
	return s
}

// neededElsewhere is for a key that another check misses, with words of its own.
func (s Setting) neededElsewhere() Setting {
	s.Required = true
	return s
}

// leftToFile makes an absent key of a definition over the network the zero value,
// in place of which narrowing puts what the file has.
func (s Setting) leftToFile() Setting {
	s.fileHas = true
	return s
}

// planned refuses the setting as long as its capability is not built.
func (s Setting) planned(capability string) Setting {
	s.capability = capability
	return s
}

// noLimit keeps a number out of validate --explain.
func (s Setting) noLimit() Setting {
	s.Limit = false
	return s
}

// ofModules is for limits of what runs in the sandbox alone.
func (s Setting) ofModules() Setting {
	s.Sandbox = true
	return s
}

// ofAgents is for limits that one call of an action does not have.
func (s Setting) ofAgents() Setting {
	s.Agents = true
	return s
}

// ofOperator is for settings that no definition over the network may have.
func (s Setting) ofOperator() Setting {
	s.Operator = true
	return s
}

// sameAsFile is for settings that a definition over the network may only repeat.
func (s Setting) sameAsFile() Setting {
	s.Same = true
	return s
}

// restarts is for limits that a running host cannot change.
func (s Setting) restarts() Setting {
	s.Restart = true
	return s
}

// allLimits makes every setting a limit: a larger number grants more, unless it has a rule
// already, and a definition over the network that leaves it out gets what the file has,
// see leftToFile.
func allLimits(settings ...Setting) []Setting {
	for i, s := range settings {
		if s.Rule == Free {
			s = s.by(Grant)
		}
		settings[i] = s.leftToFile()
	}
	return settings
}
