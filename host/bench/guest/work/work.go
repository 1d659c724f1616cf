// Package work owns what the guests of all hosts do with a message: the same
// code in each, so that a comparison compares the hosts. It must not know a host.
package work

import "encoding/json"

// Envelope is a document of ten strings; as JSON it is also a valid result of a
// skep turn.
type Envelope struct {
	State Message `json:"state"`
}

// Message has the members of a mail message, as strings.
type Message struct {
	ID      string `json:"id"`
	Time    string `json:"time"`
	Type    string `json:"type"`
	Task    string `json:"task"`
	Sender  string `json:"sender"`
	To      string `json:"to"`
	Subject string `json:"subject"`
	Swarm   string `json:"swarm"`
	Trace   string `json:"trace"`
	Body    string `json:"body"`
}

// JSON decodes a document, answers it, and encodes it.
func JSON(doc []byte) ([]byte, error) {
	var e Envelope
	if err := json.Unmarshal(doc, &e); err != nil {
		return nil, err
	}
	e.State.Sender, e.State.To = e.State.To, e.State.Sender
	return json.Marshal(e)
}
