package skep_test

import (
	"encoding/json"
	"fmt"
	"strings"

	skep "skep/sdk/go"
	"skep/sdk/go/skeptest"
)

// Lookup asks one agent about several words at once.
type Lookup struct{}

func (Lookup) Turn(t *skep.Turn) error {
	asked := map[string]string{} // what each request was about, by its id
	if err := t.State(&asked); err != nil {
		return err
	}
	if t.Message.FromUser() {
		for _, word := range strings.Fields(t.Message.Body) {
			id, err := t.Ask("reader", "look up", word)
			if err != nil {
				return err // nothing was sent: the turn is undone
			}
			asked[id] = word
		}
	} else if word, ok := asked[t.Message.RefID]; ok {
		delete(asked, t.Message.RefID)
		if t.Message.FromSystem() {
			t.Note(word + " has no answer: " + t.Message.Body)
		} else {
			t.Note(word + ": " + t.Message.Body)
		}
	}
	if err := t.SetState(asked); err != nil {
		return err
	}
	if len(asked) > 0 {
		return t.AwaitMessage("answers")
	}
	return t.TaskComplete("all answered")
}

// Two requests to one agent are told apart by their ids, which their answers have. So
// has the host's report that there is no answer.
func ExampleTurn_Ask() {
	in := skeptest.Input{CanComplete: true, Message: skep.Message{Body: "skep hive"}}
	out := skeptest.Run(Lookup{}, in)
	var asked map[string]string
	if err := json.Unmarshal(out.State, &asked); err != nil {
		fmt.Println(err)
	}
	for _, word := range []string{"hive", "skep"} {
		m := skep.Message{Type: skep.TypeResponse, Sender: skep.Address{Type: skep.AddressAgent, Name: "reader"}, Body: "a home of bees"}
		if word == "skep" {
			m.Sender.Type, m.Subject, m.Body = skep.AddressSystem, "::agent_error::", "agent \"reader\" failed"
		}
		for id, about := range asked {
			if about == word {
				m.RefID = id
			}
		}
		in.Message, in.State = m, out.State
		out = skeptest.Run(Lookup{}, in)
		fmt.Println(out.Notes[0])
	}
	fmt.Println(out.Mail[0].Finish)
	// Output:
	// hive: a home of bees
	// skep has no answer: agent "reader" failed
	// all answered
}
