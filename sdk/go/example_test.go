package skep_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	skep "skep/sdk/go"
	"skep/sdk/go/skeptest"
)

// Greeter answers every request with a greeting.
type Greeter struct{}

func (Greeter) Turn(t *skep.Turn) error {
	if t.Message.Type != skep.TypeRequest {
		return nil // nothing to say
	}
	return t.SendResponse(t.Message.Sender.Name, "Hello", "Hello, "+t.Message.Body+"!")
}

// An agent is a type with a Turn method. In a module it is registered with Run;
// in a test it is played with skeptest.
func Example() {
	out := skeptest.Run(Greeter{}, skeptest.Input{Message: skep.Message{
		Sender: skep.Address{Type: skep.AddressAgent, Name: "host"}, Body: "bees",
	}})
	fmt.Println(out.Mail[0].Tool, "to", out.Mail[0].Target+":", out.Mail[0].Body)
	// Output: send_response to host: Hello, bees!
}

// Counter counts the words of a task.
type Counter struct{}

func (Counter) Turn(t *skep.Turn) error {
	var total int
	if err := t.State(&total); err != nil {
		return err
	}
	total += len(strings.Fields(t.Message.Body))
	if err := t.SetState(total); err != nil {
		return err
	}
	return t.TaskComplete(fmt.Sprintf("%d words so far", total))
}

// What must last from turn to turn goes into the state.
func ExampleTurn_SetState() {
	in := skeptest.Input{CanComplete: true, Message: skep.Message{Body: "the bees are busy"}}
	for range 2 {
		out := skeptest.Run(Counter{}, in)
		fmt.Println(out.Mail[0].Finish)
		in.State = out.State
	}
	// Output:
	// 4 words so far
	// 8 words so far
}

// Kettle waits, and counts over all tasks what it has made.
type Kettle struct{}

func (Kettle) Turn(t *skep.Turn) error {
	if !t.Message.FromTimer() {
		if _, err := t.SetTimer(4*time.Minute, t.Message.Body); err != nil {
			return err
		}
		return t.AwaitMessage("it draws")
	}
	kv, made := t.KV(skep.ScopeAgent), 0
	text, err := kv.Get("made")
	if err == nil {
		made, err = strconv.Atoi(text)
	}
	if err != nil && !errors.Is(err, skep.NotFound) {
		return err
	}
	made++
	if err := kv.Put("made", strconv.Itoa(made)); err != nil {
		return err
	}
	return t.TaskComplete(fmt.Sprintf("%s is ready, pot %d", t.Message.Body, made))
}

// What must last beyond a task goes into values, and what must wait sets a timer.
// A test fires it.
func ExampleTurn_SetTimer() {
	world := &skeptest.World{KV: skep.ScopeAgent}
	for _, tea := range []string{"Assam", "Sencha"} {
		in := skeptest.Input{World: world, CanComplete: true, Message: skep.Message{Task: tea, Body: tea}}
		in.State = skeptest.Run(Kettle{}, in).State
		in.Message, _ = world.Fire()
		fmt.Println(skeptest.Run(Kettle{}, in).Mail[0].Finish)
	}
	// Output:
	// Assam is ready, pot 1
	// Sencha is ready, pot 2
}

// Prices answers the action price_of, and the same question by mail.
type Prices struct{}

func (Prices) price(item string) (int, error) {
	if item != "tea" {
		return 0, skep.Errorf(skep.NotFound, "no price for %s", item)
	}
	return 250, nil
}

func (p Prices) Turn(t *skep.Turn) error {
	cents, err := p.price(t.Message.Body)
	if err != nil {
		return t.TaskComplete(err.Error())
	}
	return t.TaskComplete(fmt.Sprint(cents, " cents"))
}

func (p Prices) Action(c *skep.ActionCall) (any, error) {
	var args struct{ Item string }
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return nil, skep.Errorf(skep.Invalid, "%v", err)
	}
	cents, err := p.price(args.Item)
	return map[string]int{"cents": cents}, err
}

// An action is a method that answers with a value, listed in the descriptor.
func ExampleActor() {
	_ = skep.Descriptor{Name: "prices", Version: "1.0.0", Actions: []skep.ActionInfo{{
		Name: "price_of", Description: "The price of an item, in cents.",
		Parameters: json.RawMessage(`{"type":"object","properties":{"item":{"type":"string"}},"required":["item"]}`),
	}}}
	answer, _ := skeptest.Act(Prices{}, "price_of", map[string]string{"item": "tea"})
	fmt.Println(string(answer))
	_, err := skeptest.Act(Prices{}, "price_of", map[string]string{"item": "gold"})
	fmt.Println(err)
	// Output:
	// {"cents":250}
	// NOT_FOUND: no price for gold
}

// Poet has a model write, and shows the text as it comes.
type Poet struct{}

func (Poet) Turn(t *skep.Turn) error {
	answer, err := t.ChatStream(skep.ChatRequest{Model: "default", Messages: []skep.ChatMessage{
		{Role: skep.RoleSystem, Content: "Write one line of verse."},
		{Role: skep.RoleUser, Content: t.Message.Body},
	}}, func(p skep.ChatPiece) error {
		_, err := t.EmitChunk(p.Delta)
		return err
	})
	if err != nil {
		return err
	}
	return t.TaskComplete(answer.Text)
}

// A model is asked by its name in the operator's file; World.LLM plays it.
func ExampleTurn_ChatStream() {
	world := &skeptest.World{LLM: func(r skep.ChatRequest) (skep.ChatResponse, error) {
		return skep.ChatResponse{Text: "O " + r.Messages[1].Content, Finish: skep.FinishStop}, nil
	}}
	out := skeptest.Run(Poet{}, skeptest.Input{World: world, CanComplete: true, Message: skep.Message{Body: "bees"}})
	for _, e := range out.Emits {
		fmt.Printf("%q\n", e.Text)
	}
	fmt.Println(out.Mail[0].Finish)
	// Output:
	// "O "
	// "bees"
	// O bees
}
