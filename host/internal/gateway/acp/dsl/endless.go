package dsl

// checkEndless refuses aliases that lead to themselves, and records that no message
// could have because they contain themselves. It ends with the last fault that is reported.
func (r *resolver) checkEndless() {
	c := &cycles{r}
	for _, t := range r.schema.Types {
		if len(r.faults) >= maxFaults {
			return
		}
		if t.Kind == Alias {
			c.alias(t, 0)
		}
	}
	if len(r.faults) > 0 {
		return
	}
	for _, t := range r.schema.Types {
		if t.Kind == Record {
			c.record(t)
		}
	}
}

// cycleState is the state of an alias or a record while cycles are looked for.
type cycleState byte

const (
	unseen cycleState = iota
	entered
	done
)

type cycles struct{ *resolver }

func (c *cycles) report(t *Type, message string) {
	if len(c.faults) < maxFaults {
		c.faults = append(c.faults, t.Fault("", message))
	}
}

// alias follows what an alias stands for, also into lists: another name is replaced by
// what it stands for wherever it is used.
func (c *cycles) alias(t *Type, depth int) {
	if depth > MaxDepth {
		c.report(t, "a type leads over more than 64 others")
		t.Elem = &Type{Kind: String}
		return
	}
	switch t.state {
	case entered:
		c.report(t, "the type "+clip(t.Name)+" stands for itself")
		t.Elem = &Type{Kind: String}
		return
	case done:
		return
	}
	t.state = entered
	for elem, d := t.Elem, depth+1; elem != nil; elem, d = elem.Elem, d+1 {
		if elem.Kind == Alias {
			c.alias(elem, d)
			break
		}
	}
	t.state = done
}

// record follows the fields that every message of the record has.
func (c *cycles) record(t *Type) {
	switch t.state {
	case entered:
		c.report(t, "a "+clip(t.Name)+" would contain another one without end: make a field on the way optional, or a list")
		return
	case done:
		return
	}
	t.state = entered
	for _, f := range t.Fields {
		if inner := f.Type.Plain(); inner.Kind == Record && !f.Optional {
			c.record(inner)
		}
	}
	t.state = done
}
