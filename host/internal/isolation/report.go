package isolation

// Report is what came of all attempts.
type Report struct {
	Passed   int       `json:"passed"`
	Failed   int       `json:"failed"`
	Attempts []Attempt `json:"attempts"`
}

// Attempt is one thing that a tenant has tried against another.
type Attempt struct {
	Name string `json:"name"`
	// About is what was tried.
	About string `json:"about"`
	// Pass: the attempt came to nothing.
	Pass bool `json:"pass"`
	// Detail is what went wrong.
	Detail string `json:"detail,omitempty"`
}

func (r *Report) add(t try, err error) {
	a := Attempt{Name: t.name, About: t.about, Pass: err == nil}
	if err != nil {
		a.Detail = err.Error()
		r.Failed++
	} else {
		r.Passed++
	}
	r.Attempts = append(r.Attempts, a)
}
