package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"skep/host/bench/guest/work"
)

// documentSize is what a guest gets and gives, in bytes.
const documentSize = 1024

// document is the text that the guests of every host work on.
func document() ([]byte, error) {
	e := work.Envelope{State: work.Message{
		ID: "8d2f6b0e-6f0e-4a39-9f5e-0d2c6a1c7b11", Time: "2026-03-01T09:30:00.000000+00:00", Type: "request",
		Task: "5b0c1b0a-52a3-4f5e-8f64-3d1e9a7c2e90", Sender: "supervisor", To: "calculator", Subject: "Part 1 of \"two\"",
		Swarm: "hive", Trace: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
	}}
	short, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	if len(short) > documentSize {
		return nil, fmt.Errorf("a document of %d bytes without a body", len(short))
	}
	e.State.Body = strings.Repeat("what is to be worked out ", documentSize)[:documentSize-len(short)]
	return json.Marshal(e)
}
