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

// MaxNested bounds lists and maps in one another, those behind names counted: compilers of
// some languages take minutes for sixty.
const MaxNested = 16

const tooNested = "lists and maps are nested deeper than 16 here, those behind names counted"

type cycles struct{ *resolver }

func (c *cycles) report(t *Type, field, message string) {
	if len(c.faults) < maxFaults {
		c.faults = append(c.faults, t.Fault(field, message))
	}
}

// alias follows what an alias stands for, also into lists: another name is replaced by
// what it stands for wherever it is used.
func (c *cycles) alias(t *Type, depth uint8) {
	switch {
	case t.state == done:
		return
	case t.state == entered:
		c.replace(t, "the type "+clip(t.Name)+" stands for itself")
		return
	case depth > MaxDepth:
		c.replace(t, "a type leads over more than 64 others")
		return
	}
	t.state = entered
	elem, nested := inList(t.Elem)
	if elem.Kind == Alias {
		c.alias(elem, depth+1)
		t.hops, nested = elem.hops+1, nested+int(elem.nested)
	}
	switch {
	case nested > MaxNested:
		c.replace(t, tooNested)
	case t.hops > MaxDepth:
		c.replace(t, "a type leads over more than 64 others")
	default:
		t.nested = uint8(nested)
	}
	t.state = done
}

// replace reports a fault of an alias, and makes it one that has none.
func (c *cycles) replace(t *Type, message string) {
	c.report(t, "", message)
	t.Elem, t.hops, t.nested = &Type{Kind: String}, 0, 0
}

// inList is what lists and maps in one another hold at last, and how many they are.
func inList(t *Type) (elem *Type, nested int) {
	for ; t.Kind == List || t.Kind == Map; t = t.Elem {
		nested++
	}
	return t, nested
}

// record follows the fields that every message of the record has.
func (c *cycles) record(t *Type) {
	switch t.state {
	case entered:
		c.report(t, "", "a "+clip(t.Name)+" would contain another one without end: make a field on the way optional, or a list")
		return
	case done:
		return
	}
	t.state = entered
	for _, f := range t.Fields {
		elem, nested := inList(f.Type)
		if nested+int(elem.nested) > MaxNested {
			c.report(t, f.Name, tooNested)
		}
		if inner := f.Type.Plain(); inner.Kind == Record && !f.Optional {
			c.record(inner)
		}
	}
	t.state = done
}
