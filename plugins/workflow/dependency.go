package main

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// linkSteps gives each step what it waits for: by depends_on, by the plan's dependencies,
// by what it refers to, and by its place in a sequence.
func (p *planner) linkSteps() {
	after := make([]map[int]bool, len(p.steps))
	for i := range p.steps {
		after[i] = map[int]bool{}
		for _, place := range p.steps[i].Steps {
			if place != i || !p.undoRefersToItself(i) {
				after[i][place] = true
			}
		}
		for _, id := range p.steps[i].Step.DependsOn {
			p.addEdge(after, p.label(i)+": depends_on", id, p.steps[i].Step.ID)
		}
	}
	p.dependencies(after)
	if p.sequential(after) {
		for i := 1; i < len(p.steps); i++ {
			after[i][i-1] = true
		}
	}
	edges := 0
	for i := range p.steps {
		p.steps[i].After = slices.Sorted(maps.Keys(after[i]))
		for _, j := range p.steps[i].After {
			p.steps[j].Next = append(p.steps[j].Next, i)
			p.steps[i].Steps[p.steps[j].Step.ID] = j
		}
		edges += len(p.steps[i].After)
	}
	if edges > maxEdges {
		p.add("the plan has %d dependencies, at most %d are possible", edges, maxEdges)
	}
}

// undoRefersToItself reports whether only what undoes a step refers to the step.
func (p *planner) undoRefersToItself(i int) bool {
	s := p.steps[i].Step
	if s.Compensate == nil {
		return false
	}
	s.Compensate = nil
	raw, _ := json.Marshal(s) // it came as JSON
	return !strings.Contains(string(raw), "${steps."+s.ID+".")
}

// addEdge has a step wait for another, both by id.
func (p *planner) addEdge(after []map[int]bool, where, first, then string) {
	i, known := p.places[then]
	j, also := p.places[first]
	switch {
	case !known:
		p.add("%s names %.70q, which is no step", where, then)
	case !also:
		p.add("%s names %.70q, which is no step", where, first)
	default:
		after[i][j] = true
	}
}

// dependencies reads the three forms of execution_plan.dependencies: [{"step": "b",
// "depends_on": ["a"]}], {"b": ["a"]} and ["a -> b"].
func (p *planner) dependencies(after []map[int]bool) {
	const where = "dependencies"
	raw := p.Plan.Dependencies
	if len(raw) == 0 || string(raw) == "null" {
		return
	}
	var byID map[string][]string
	if json.Unmarshal(raw, &byID) == nil {
		for _, then := range sortedKeys(byID) {
			for _, first := range byID[then] {
				p.addEdge(after, where, first, then)
			}
		}
		return
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		p.add(`%s must be an array or an object`, where)
		return
	}
	for i, raw := range list {
		var one struct {
			Step      string   `json:"step"`
			DependsOn []string `json:"depends_on"`
		}
		var arrow string
		first, then, found := "", "", false
		if json.Unmarshal(raw, &arrow) == nil {
			first, then, found = strings.Cut(arrow, "->")
			one.Step, one.DependsOn = strings.TrimSpace(then), []string{strings.TrimSpace(first)}
		}
		if !found && json.Unmarshal(raw, &one) != nil || one.Step == "" {
			p.add(`%s[%d] must be {"step": ID, "depends_on": [ID]} or "ID -> ID"`, where, i)
			continue
		}
		for _, first := range one.DependsOn {
			p.addEdge(after, where, first, one.Step)
		}
	}
}

// sequential reports whether each step waits for the one before it: by mode, or where
// all steps are texts and nothing else says an order.
func (p *planner) sequential(after []map[int]bool) bool {
	switch p.Plan.Mode {
	case "sequential":
		return true
	case "parallel":
		return false
	case "":
	default:
		p.add("execution_plan.mode is %.40q; it is sequential or parallel", p.Plan.Mode)
	}
	for i, raw := range p.Plan.Steps {
		if raw[0] != '"' || len(after[i]) > 0 {
			return false
		}
	}
	return true
}

// order finds steps that wait for each other.
func (p *planner) order() {
	open := make([]int, len(p.steps))
	var ready []int
	for i := range p.steps {
		if open[i] = len(p.steps[i].After); open[i] == 0 {
			ready = append(ready, i)
		}
	}
	for n := 0; n < len(ready); n++ {
		for _, j := range p.steps[ready[n]].Next {
			if open[j]--; open[j] == 0 {
				ready = append(ready, j)
			}
		}
	}
	var circle []string
	for i := range p.steps {
		if open[i] > 0 {
			circle = append(circle, p.steps[i].Step.ID)
		}
	}
	if len(circle) > 0 {
		p.add("steps wait for each other in a circle: depends_on of %.300s", strings.Join(circle, ", "))
	}
}
