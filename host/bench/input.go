package main

import (
	"encoding/json"
	"time"

	"skep/abi"
	"skep/host/internal/schema"
	"skep/spec/mail"
)

// turnInput is a turn's input as the runtime makes it for a supervisor.
func turnInput(body string) []byte {
	const id = "8d2f6b0e-6f0e-4a39-9f5e-0d2c6a1c7b11"
	m := mail.Message{
		ID: id, Timestamp: mail.FormatTime(time.Now()), Type: mail.Request,
		Payload: mail.Payload{
			TaskID: "t", ID: id, Sender: mail.Address{Type: mail.User, Name: "alice"},
			Recipients: []mail.Address{{Type: mail.Agent, Name: "boss"}}, Subject: "q", Body: body,
		},
	}
	raw, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	set, err := schema.Load()
	if err != nil {
		panic(err)
	}
	in := abi.TurnInput{
		V: abi.Version, Turn: 1, Task: abi.Task{ID: "t", Owner: "user:alice@hive", Contributors: []string{"user:alice@hive"}},
		Agent:   abi.Agent{Address: "boss", Swarm: "hive", Instance: "user:alice", CommTargets: []string{"math"}, CanCompleteTasks: true},
		Message: raw, History: abi.History{Tail: []abi.HistoryEntry{}}, DeadlineMS: 600_000,
	}
	for _, t := range set.Tools() {
		in.Tools = append(in.Tools, abi.Tool{Name: t.Name, Description: t.Description, Parameters: t.Parameters})
	}
	out, err := json.Marshal(in)
	if err != nil {
		panic(err)
	}
	return out
}
