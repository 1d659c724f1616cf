package wasmbin

// Frames returns the frame of each defined function.
func Frames(m *Module) []uint32 {
	var fs []uint32
	for _, b := range m.bodies {
		fs = append(fs, b.frame)
	}
	return fs
}

// ExactMeter writes a module that takes the units of each piece of straight code
// right before it, so that the total is that of the instructions executed and not
// of the longest ways. It is slow, and an oracle for the cost pass.
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
	var c coster
	var most uint32
	for i := range m.bodies {
		s.scan(&m.bodies[i])
		most = max(most, c.charge(s.events, s.targets))
		for _, e := range s.events {
			most = max(most, e.cost)
		}
	}
	return most
}

// Plus and Times are how estimates are added up.
var Plus, Times = plus, times
