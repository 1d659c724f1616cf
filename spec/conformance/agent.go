package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Agent is what any agent module is tried with, whatever it does. README.md has
// the expected results.
type Agent struct {
	// Turns are typical inputs, Large ones that fit in no buffer made for them.
	Turns, Large []AgentTurn
	// Answers are what ops are answered with, by number.
	Answers map[int32][]byte
	// Refusals have every code but CANCELLED, once each. Their op is empty:
	// it is the call's.
	Refusals []Refusal
	// Padding is the number of bytes by which an answer is made large.
	Padding int
	// Secret is planted in one turn and looked for in the next.
	Secret string
}

// AgentTurn is one input.
type AgentTurn struct {
	Name  string
	Input []byte
	// Unknown is the same with members that no agent knows, Elsewhere the same
	// in another task of another user. Secret has the secret in its body, its
	// params and its state. Large turns have none of these.
	Unknown, Elsewhere, Secret []byte
}

// agentSuite is the form of agent.json.
type agentSuite struct {
	Base      json.RawMessage            `json:"base"`
	Turns     []agentVector              `json:"turns"`
	Large     []agentVector              `json:"large"`
	Unknown   []edit                     `json:"unknown"`
	Elsewhere []edit                     `json:"elsewhere"`
	Answers   map[string]json.RawMessage `json:"answers"`
	Refusals  []Refusal                  `json:"refusals"`
	Padding   int                        `json:"padding"`
	Secret    string                     `json:"secret"`
}

type agentVector struct {
	Name  string `json:"name"`
	Patch []edit `json:"patch"`
	// Turn is the name of the one that a large turn is made from.
	Turn string `json:"turn"`
	Grow growth `json:"grow"`
}

// growth puts a text or a value in some place, many times.
type growth struct {
	Path  string `json:"path"`
	Text  string `json:"text"`
	Value any    `json:"value"`
	Times int    `json:"times"`
}

// apply returns base with patch and the growth, whose value is encoded once: to encode
// thousands takes a second under the race detector.
func (g growth) apply(base []byte, patch []edit) ([]byte, error) {
	const place = "what grows"
	input, err := apply(base, patch, []edit{{Op: "replace", Path: g.Path, Value: place}})
	if err != nil {
		return nil, err
	}
	grown, err := g.encode()
	return bytes.Replace(input, []byte(strconv.Quote(place)), grown, 1), err
}

func (g growth) encode() ([]byte, error) {
	if g.Value == nil {
		return json.Marshal(strings.Repeat(g.Text, g.Times))
	}
	value, err := json.Marshal(g.Value)
	list := bytes.TrimSuffix(bytes.Repeat(append(value, ','), g.Times), []byte{','})
	return slices.Concat([]byte{'['}, list, []byte{']'}), err
}

// ForAgents returns the vectors for agents of every kind.
func ForAgents() (Agent, error) {
	a, err := loadAgents()
	if err != nil {
		return a, fmt.Errorf("agent.json: %w", err)
	}
	return a, nil
}

func loadAgents() (a Agent, err error) {
	raw, err := files.ReadFile("agent.json")
	if err != nil {
		return a, err
	}
	var s agentSuite
	if err := json.Unmarshal(raw, &s); err != nil {
		return a, err
	}
	a = Agent{Answers: map[int32][]byte{}, Refusals: s.Refusals, Padding: s.Padding, Secret: s.Secret}
	for _, number := range slices.Sorted(maps.Keys(s.Answers)) {
		op, err := strconv.ParseInt(number, 10, 32)
		if err != nil {
			return a, fmt.Errorf("answers: %w", err)
		}
		a.Answers[int32(op)] = compact(s.Answers[number])
	}
	for _, v := range s.Turns {
		t, err := s.turn(v)
		if err != nil {
			return a, fmt.Errorf("%s: %w", v.Name, err)
		}
		a.Turns = append(a.Turns, t)
	}
	for _, v := range s.Large {
		t, err := s.large(v)
		if err != nil {
			return a, fmt.Errorf("%s: %w", v.Name, err)
		}
		a.Large = append(a.Large, t)
	}
	return a, nil
}

// turn makes an input and what else is made from it.
func (s *agentSuite) turn(v agentVector) (AgentTurn, error) {
	t := AgentTurn{Name: v.Name}
	planted := []edit{
		{Op: "replace", Path: "/message/message/body", Value: s.Secret},
		{Op: "replace", Path: "/params", Value: map[string]string{"text": s.Secret}},
		{Op: "replace", Path: "/state", Value: map[string]string{"text": s.Secret}},
	}
	for _, variant := range []struct {
		to    *[]byte
		edits []edit
	}{{&t.Input, nil}, {&t.Unknown, s.Unknown}, {&t.Elsewhere, s.Elsewhere}, {&t.Secret, planted}} {
		input, err := apply(s.Base, v.Patch, variant.edits)
		if err != nil {
			return t, err
		}
		*variant.to = input
	}
	return t, nil
}

func (s *agentSuite) large(v agentVector) (AgentTurn, error) {
	i := slices.IndexFunc(s.Turns, func(t agentVector) bool { return t.Name == v.Turn })
	if i < 0 {
		return AgentTurn{}, fmt.Errorf("there is no turn %q", v.Turn)
	}
	input, err := v.Grow.apply(s.Base, s.Turns[i].Patch)
	return AgentTurn{Name: v.Name, Input: input}, err
}

// With returns an answer with one more member, its first.
func With(answer []byte, name, value string) []byte {
	member, err := json.Marshal(map[string]string{name: value})
	rest, object := bytes.CutPrefix(answer, []byte("{"))
	if err != nil || !object {
		return answer
	}
	member = member[:len(member)-1]
	if !bytes.HasPrefix(rest, []byte("}")) {
		member = append(member, ',')
	}
	return append(member, rest...)
}
