package dsl

// checkEndless refuses names that lead to themselves, and records that no message could have
// because they contain themselves. It goes over the trees, so that no types are made for a
// file that is refused here.
func (r *resolver) checkEndless() {
	for _, it := range r.declared {
		if it.isAlias() && len(r.faults) < maxFaults {
			r.checkAlias(it, 0)
		}
	}
	for _, it := range r.declared {
		switch {
		case len(r.faults) >= maxFaults:
			return
		case it.isAlias():
			elem, _ := inList(it.Type)
			r.checkRecord(it, elem.Record, false)
		case it.Type != nil:
			r.checkDeclared(it)
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

const (
	tooNested = "lists and maps are nested deeper than 16 here, those behind names counted"
	tooLong   = "a type leads over more than 64 others"
)

// checkAlias follows what an alias stands for, also into lists: another name is replaced by
// what it stands for wherever it is used.
func (r *resolver) checkAlias(it *Item, depth uint8) {
	switch {
	case it.state == done:
		return
	case it.state == entered:
		r.replace(it, "the type "+clip(it.Name.Text)+" stands for itself")
		return
	case depth > MaxDepth:
		it.state = done
		r.replace(it, tooLong)
		return
	}
	it.state = entered
	elem, nested := inList(it.Type)
	var hops uint8
	if next := r.find(elem.Name); next != nil && next.isAlias() {
		r.checkAlias(next, depth+1)
		hops, nested = next.hops+1, nested+int(next.nested)
	}
	switch {
	case nested > MaxNested:
		r.replace(it, tooNested)
	case hops > MaxDepth:
		r.replace(it, tooLong)
	default:
		it.hops, it.nested = hops, uint8(nested)
	}
	it.state = done
}

// replace reports a fault of an alias, and makes it one that has none.
func (r *resolver) replace(it *Item, message string) {
	r.refuse(it, it.Name, message)
	it.Type = &TypeExpr{Pos: it.Type.Pos, Name: "String"}
}

func (r *resolver) refuse(it *Item, at Word, message string) {
	r.source = it.source
	r.failWord(at, "%s", message)
}

// inList is what lists and maps in one another hold at last, and how many they are.
func inList(e *TypeExpr) (elem *TypeExpr, nested int) {
	for ; builtIn[e.Name] >= List && len(e.Args) > 0; e = e.Args[len(e.Args)-1] {
		nested++
	}
	return e, nested
}

// checkDeclared follows the fields that every message of a record has.
func (r *resolver) checkDeclared(it *Item) {
	switch it.state {
	case unseen:
		it.state = entered
		r.checkRecord(it, it.Type.Record, true)
		it.state = done
	case entered:
		r.refuse(it, it.Name, "a "+clip(it.Name.Text)+" would contain another one without end: make a field on the way optional, or a list")
	}
}

// checkRecord checks the fields of a record in a declaration, and follows them where each
// message of the declaration has them.
func (r *resolver) checkRecord(in *Item, e *RecordExpr, always bool) {
	if e == nil {
		return
	}
	for _, f := range e.Fields {
		elem, nested := inList(f.Type)
		follow := always && nested == 0 && !f.Type.Optional
		next := r.find(elem.Name)
		if next != nil {
			nested += int(next.nested)
		}
		for next != nil && next.isAlias() {
			next = r.find(next.Type.Name)
		}
		if nested > MaxNested {
			r.refuse(in, f.Name, tooNested)
		}
		r.checkRecord(in, elem.Record, follow)
		if follow && next != nil && next.Type != nil {
			r.checkDeclared(next)
		}
	}
}
