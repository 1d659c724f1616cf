package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"skep/plugins/internal/question"
)

// Bounds of a plan. Texts are in bytes: the state of the workflow, which has 64 KiB, repeats
// its id and name, and each step the id of its agent.
const (
	maxSteps  = 1000
	maxEdges  = 20_000
	maxDepth  = 32  // of its JSON
	maxFaults = 20  // that an answer names
	maxFault  = 400 // of each of them
	maxID     = 128
	maxName   = 256      // of the workflow, and of an agent
	maxUndo   = 24 << 10 // of the ids of all steps with compensate
)

// payload is the payload of a workflow_start. Members without a field pass.
type payload struct {
	ID           string        `json:"workflow_id"`
	Name         string        `json:"workflow_name"`
	Participants []participant `json:"participants"`
	Plan         struct {
		Steps        []json.RawMessage          `json:"steps"`
		Dependencies json.RawMessage            `json:"dependencies"`
		Timeouts     map[string]json.RawMessage `json:"timeouts"`
		Mode         string                     `json:"mode"`
	} `json:"execution_plan"`
}

type participant struct {
	Agent            string   `json:"agent_id"`
	Role             string   `json:"role"`
	Responsibilities []string `json:"responsibilities"`
}

// step is one step of a plan, or what undoes one.
type step struct {
	ID          string                     `json:"id,omitempty"`
	Name        string                     `json:"name,omitempty"`
	Agent       string                     `json:"agent_id,omitempty"`
	Role        string                     `json:"role,omitempty"`
	Capability  string                     `json:"capability,omitempty"`
	TaskType    string                     `json:"task_type,omitempty"`
	Tool        string                     `json:"tool_name,omitempty"`
	Description string                     `json:"description,omitempty"`
	Parameters  json.RawMessage            `json:"parameters,omitempty"`
	Inputs      map[string]json.RawMessage `json:"inputs,omitempty"`
	Timeout     float64                    `json:"timeout,omitempty"` // seconds
	Retries     int                        `json:"retries,omitempty"`
	Retry       *retry                     `json:"retry,omitempty"`
	OnFailure   string                     `json:"on_failure,omitempty"`
	DependsOn   []string                   `json:"depends_on,omitempty"`
	When        string                     `json:"when,omitempty"`
	Compensate  *step                      `json:"compensate,omitempty"`
}

// retry says how often a failed step is tried again. The pause doubles each time.
type retry struct {
	Times int     `json:"times"`
	Delay float64 `json:"delay"` // seconds
}

// record is a step as the workflow keeps it.
type record struct {
	Step step `json:"step"`
	// After are the steps it waits for, Next those that wait for it.
	After []int `json:"after,omitempty"`
	Next  []int `json:"next,omitempty"`
	// Steps are the places of the steps that it refers to or waits for.
	Steps map[string]int `json:"steps,omitempty"`
}

// plan is a workflow that has been checked.
type plan struct {
	ID, Name string
	Steps    []record
	Timeout  float64 // seconds of the whole, 0 for none
}

// faults are what is wrong with a plan, all of it.
type faults struct {
	list []string
	more int
}

func (f *faults) add(format string, args ...any) {
	if len(f.list) == maxFaults {
		f.more++
		return
	}
	f.list = append(f.list, question.Clip(fmt.Sprintf(format, args...), maxFault))
}

func (f *faults) err() error {
	if len(f.list) == 0 {
		return nil
	}
	text := strings.Join(f.list, "; ")
	if f.more > 0 {
		text += fmt.Sprintf("; and %d more", f.more)
	}
	return errors.New(text)
}

// planner checks a plan and makes its records.
type planner struct {
	faults
	payload
	places map[string]int
	steps  []record
}

// readPlan checks the payload of a workflow_start. Its error names each fault by step
// and member. own is the name of the agent that runs it; may reports whether it may
// write to an agent.
func readPlan(raw json.RawMessage, own string, may func(agent string) bool) (plan, error) {
	p := &planner{places: map[string]int{}}
	if depthOf(raw) > maxDepth {
		return plan{}, fmt.Errorf("the plan nests more than %d levels", maxDepth)
	}
	if err := json.Unmarshal(raw, &p.payload); err != nil {
		return plan{}, fmt.Errorf("payload: %s", question.Clip(typeFault(err), maxFault))
	}
	if n := len(p.Plan.Steps); n == 0 || n > maxSteps {
		return plan{}, fmt.Errorf("execution_plan.steps has %d steps, 1 to %d are possible", n, maxSteps)
	}
	for i, raw := range p.Plan.Steps {
		p.read(i, raw)
	}
	p.coordinate(own)
	for i := range p.steps {
		p.resolve(i, &p.steps[i].Step, "", own, may)
	}
	p.linkSteps()
	out := plan{ID: p.ID, Name: p.payload.Name, Steps: p.steps, Timeout: p.timeouts()}
	switch {
	case out.ID == "":
		p.add("workflow_id is missing")
	case len(out.ID) > maxID:
		p.add("workflow_id has %d bytes, at most %d", len(out.ID), maxID)
	}
	if n := len(out.Name); n > maxName {
		p.add("workflow_name has %d bytes, at most %d", n, maxName)
	}
	undo := 0
	for i := range p.steps {
		if s := &p.steps[i].Step; s.Compensate != nil {
			undo += len(s.ID)
		}
	}
	if undo > maxUndo {
		p.add("the ids of the steps with compensate have %d bytes, at most %d", undo, maxUndo)
	}
	if p.err() == nil {
		p.order()
	}
	return out, p.err()
}

// coordinate adds the step in which a coordinator combines all results, unless it is
// this agent or has a step of its own.
func (p *planner) coordinate(own string) {
	i := slices.IndexFunc(p.Participants, func(q participant) bool { return q.Role == "coordinator" })
	const id = "combine"
	if _, taken := p.places[id]; i < 0 || taken || p.Participants[i].Agent == own {
		return
	}
	s := step{ID: id, Agent: p.Participants[i].Agent, TaskType: id, Inputs: map[string]json.RawMessage{}}
	for i := range p.steps {
		other := p.steps[i].Step
		if other.Agent == s.Agent || other.Role == "coordinator" {
			return
		}
		s.Inputs[other.ID] = json.RawMessage(`"${steps.` + other.ID + `.result}"`)
	}
	p.places[id] = len(p.steps)
	p.steps = append(p.steps, record{Step: s, Steps: map[string]int{}})
}

// label names a step in a fault.
func (p *planner) label(i int) string {
	if id := p.steps[i].Step.ID; id != "" {
		return fmt.Sprintf("steps[%d] %q", i, id)
	}
	return fmt.Sprintf("steps[%d]", i)
}

// read takes a step. One that is a text is a responsibility of a participant.
func (p *planner) read(i int, raw json.RawMessage) {
	var s step
	p.steps = append(p.steps, record{Steps: map[string]int{}})
	if json.Unmarshal(raw, &s.TaskType) == nil && s.TaskType != "" {
		s.ID, s.Description, s.Capability = idOf(s.TaskType), s.TaskType, s.TaskType
	} else {
		s.TaskType = ""
		d := json.NewDecoder(bytes.NewReader(raw))
		d.DisallowUnknownFields()
		if err := d.Decode(&s); err != nil {
			p.steps[i].Step.ID = s.ID
			p.add("%s: %s", p.label(i), typeFault(err))
		}
	}
	p.steps[i].Step = s
	switch other, taken := p.places[s.ID]; {
	case !isID(s.ID):
		p.add("steps[%d].id must have 1 to 64 letters, digits, _ and -, and is %.70q", i, s.ID)
	case taken:
		p.add("%s: id is that of steps[%d], too", p.label(i), other)
	default:
		p.places[s.ID] = i
	}
}

// idOf is the id of a step that is a text.
func idOf(text string) string {
	id := strings.Map(func(r rune) rune {
		if isID(string(r)) {
			return r
		}
		return '_'
	}, text)
	return id[:min(len(id), 64)]
}

// resolve finds who does a step, and checks its members. at is "compensate." for what
// undoes one.
func (p *planner) resolve(i int, s *step, at, own string, may func(string) bool) {
	bad := func(member, format string, args ...any) {
		p.add("%s: %s%s %s", p.label(i), at, member, fmt.Sprintf(format, args...))
	}
	p.performer(s, bad)
	switch {
	case len(s.Agent) > maxName:
		bad("agent_id", "has %d bytes, at most %d", len(s.Agent), maxName)
	case s.Agent == own:
		bad("agent_id", "is this agent, which cannot ask itself")
	case s.Agent != "" && !may(s.Agent):
		bad("agent_id", "%q is not in the comm_targets of agent %q", s.Agent, own)
	case s.Tool == "" && s.TaskType == "":
		bad("task_type", "or tool_name is missing")
	case s.Tool != "" && s.TaskType != "":
		bad("tool_name", "and task_type exclude each other")
	}
	if s.Timeout < 0 || s.Timeout > 1e9 {
		bad("timeout", "must be seconds from 0 to 1e9")
	}
	if r := s.Retry; r != nil {
		if r.Delay < 0 || r.Delay > 1e6 {
			bad("retry.delay", "must be seconds from 0 to 1e6")
		}
		s.Retries = max(s.Retries, r.Times)
	}
	if s.Retries < 0 || s.Retries > 100 {
		bad("retries", "must be 0 to 100")
	}
	if !slices.Contains([]string{"", "abort", "continue", "skip_dependents"}, s.OnFailure) {
		bad("on_failure", "is %.40q; it is abort, continue or skip_dependents", s.OnFailure)
	}
	p.parameters(i, s, bad)
	if s.When != "" {
		e, err := parseExpression(s.When)
		if err != nil {
			bad("when", "%v", err)
		} else {
			e.references(func(r reference) { p.addReference(i, at+"when", r) })
		}
	}
	if c := s.Compensate; c != nil {
		if at != "" || c.Compensate != nil || c.When != "" || c.DependsOn != nil || c.ID != "" || c.OnFailure != "" {
			bad("compensate", "must not have id, depends_on, when, on_failure or compensate")
			return
		}
		p.resolve(i, c, "compensate.", own, may)
	}
}

// performer finds the agent of a step by role, capability or responsibility.
func (p *planner) performer(s *step, bad func(member, format string, args ...any)) {
	var fits func(participant) bool
	member := "agent_id"
	switch {
	case s.Agent != "":
		known := slices.ContainsFunc(p.Participants, func(q participant) bool { return q.Agent == s.Agent })
		if len(p.Participants) > 0 && !known {
			bad(member, "%q is none of the participants", s.Agent)
		}
		return
	case s.Role != "":
		member, fits = "role", func(q participant) bool { return q.Role == s.Role }
	case s.Capability != "":
		member, fits = "capability", func(q participant) bool { return slices.Contains(q.Responsibilities, s.Capability) }
	case s.Tool != "":
		return // an action of this agent
	default:
		fits = func(q participant) bool {
			return slices.Contains(q.Responsibilities, s.ID) || slices.Contains(q.Responsibilities, s.TaskType)
		}
	}
	i := slices.IndexFunc(p.Participants, fits)
	if i < 0 {
		bad(member, "is missing, or no participant has it: nobody does the step")
		return
	}
	s.Agent = p.Participants[i].Agent
}

// parameters checks parameters and inputs, and finds what they refer to.
func (p *planner) parameters(i int, s *step, bad func(member, format string, args ...any)) {
	visit := func(name string, raw json.RawMessage) {
		value, err := decodeJSON(raw)
		if err == nil {
			_, err = fill(value, func(r reference) (any, error) { p.addReference(i, name, r); return "", nil })
		}
		if err != nil {
			bad(name, "%v", err)
		}
	}
	if len(s.Parameters) > 0 {
		if s.Parameters[0] != '{' {
			bad("parameters", "must be an object")
		}
		visit("parameters", s.Parameters)
	}
	for _, name := range sortedKeys(s.Inputs) {
		visit("inputs."+name, s.Inputs[name])
	}
	if err := textReferences(s.Description, func(r reference) { p.addReference(i, "description", r) }); err != nil {
		bad("description", "%v", err)
	}
}

// addReference notes a reference: a step comes after those it refers to. What undoes a step
// may refer to the step itself.
func (p *planner) addReference(i int, name string, r reference) {
	place, ok := p.places[r.Step]
	if !ok {
		p.add("%s: %s refers to %q, which is no step", p.label(i), name, r.Step)
		return
	}
	p.steps[i].Steps[r.Step] = place
}

// timeouts gives each step its timeout and returns the workflow's timeout.
func (p *planner) timeouts() (whole float64) {
	var common float64
	for _, name := range sortedKeys(p.Plan.Timeouts) {
		var seconds float64
		if json.Unmarshal(p.Plan.Timeouts[name], &seconds) != nil || seconds < 0 || seconds > 1e9 {
			p.add("timeouts.%s must be seconds from 0 to 1e9", name)
			continue
		}
		switch place, isStep := p.places[name]; {
		case name == "default":
			common = seconds
		case name == "workflow" || name == "total":
			whole = seconds
		case !isStep:
			p.add("timeouts.%s names no step, and is none of default, workflow and total", name)
		case p.steps[place].Step.Timeout == 0:
			p.steps[place].Step.Timeout = seconds
		}
	}
	for i := range p.steps {
		s := &p.steps[i].Step
		for ; s != nil; s = s.Compensate {
			if s.Timeout == 0 {
				s.Timeout = common
			}
		}
	}
	return whole
}
