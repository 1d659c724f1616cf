package metrics

// Batch collects reports that are not counted yet. The zero value is empty. It is not
// safe for concurrent use.
type Batch struct {
	reports map[string]*Report
	order   []string
}

// Put adds a report to the batch. undo removes it again, if nothing was put since.
func (b *Batch) Put(r Report) (undo func()) {
	id := r.id()
	if has := b.reports[id]; has != nil {
		was := has.Value
		if has.Value = r.Value; !r.Gauge {
			has.Value = was + r.Value
		}
		return func() { has.Value = was }
	}
	if b.reports == nil {
		b.reports = map[string]*Report{}
	}
	b.reports[id] = &r
	b.order = append(b.order, id)
	return func() {
		delete(b.reports, id)
		b.order = b.order[:len(b.order)-1]
	}
}
