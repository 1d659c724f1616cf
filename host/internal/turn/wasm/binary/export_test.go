package binary

// ExactMeter writes a module that takes the units of each piece of straight code
// right before it, so that the total counts the instructions executed and not
// the longest paths. It is slow, and an oracle for the cost pass.
func ExactMeter(m *Module) []byte {
	w := m.newRewriter(Options{Stack: DefaultStack})
	s := &scanner{m: m, helpers: w.helpers}
	for i := range m.bodies {
		b := &m.bodies[i]
		s.scan(b)
		events, entry := exact(s.events)
		var one buf
		w.emit.function(&one, b, &m.Types[m.Functions[i]], events, entry)
		w.code.u32(uint32(len(one)))
		w.code.raw(one)
	}
	w.helperCode()
	w.module()
	return w.out
}

func exact(events []event) (out []event, entry uint32) {
	units := func(e *event) uint32 { return uint32(e.run) + uint32(e.weight) }
	for i := range events[:len(events)-1] {
		e := events[i]
		behind := event{kind: evMark, off: e.end, end: e.end, cost: units(&events[i+1])}
		out = append(out, e, behind)
	}
	return append(out, events[len(events)-1]), units(&events[0])
}

// LargestCharge returns the most units that any fixed charge of the module takes.
func LargestCharge(m *Module) uint32 {
	w := m.newRewriter(Options{Stack: DefaultStack})
	s := &scanner{m: m, helpers: w.helpers}
	var c chargePlanner
	var most uint32
	for i := range m.bodies {
		s.scan(&m.bodies[i])
		most = max(most, c.planCharges(s.events, s.targets))
		for _, e := range s.events {
			most = max(most, e.cost)
		}
	}
	return most
}

// Plus and Times are how estimates are added up.
var Plus, Times = plus, times
